"""Ranks that share one list of the folders to watch, within one process."""

import pytest

from ci_perf.measuring.recording import native


def paths(watch):
    return {opened.path for opened in watch.drain()}


def test_a_second_rank_watches_what_the_first_has_listed_and_opens_nothing(tmp_path):
    root, shared = tmp_path / "root", tmp_path / "shared"
    (root / "a").mkdir(parents=True)
    shared.mkdir()
    (root / "a/data").write_text("1")

    ranks = [native.OpenedFiles(str(root), shared) for _ in range(2)]

    assert [paths(rank) for rank in ranks] == [set(), set()]
    (root / "a/data").read_text()
    assert [paths(rank) for rank in ranks] == [{f"{root}/a/data"}] * 2
    for rank in ranks:
        rank.close()


def test_a_rank_does_not_wait_for_ever_for_one_that_has_begun_to_list(tmp_path, monkeypatch):
    monkeypatch.setattr(native, "_LISTING_S", 0.05)
    native.OpenedFiles(str(tmp_path), tmp_path).close()
    (listed,) = (file for file in tmp_path.glob("folders-*") if not file.suffix)
    listed.unlink()

    with pytest.raises(native.CannotWatchError, match="no rank has listed the folders"):
        native.OpenedFiles(str(tmp_path), tmp_path)
