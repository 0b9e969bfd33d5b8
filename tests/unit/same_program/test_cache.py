"""The records that a machine keeps."""

import os

import pytest

from ci_perf.same_program.records import RecordCache
from tests.programs import a_program


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache, with what it said and where it lies."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    said = []
    cache = RecordCache("smoke", said.append)
    return cache, said, tmp_path / "ci-perf/programs/smoke/bert"


def kept(cache):
    return [program.run for program in cache.read_newest_first("bert")]


def test_the_newest_record_comes_first_and_an_equal_one_is_kept_once(cache):
    cache, _, folder = cache
    for age, run in enumerate("321"):
        cache.keep(a_program(run=run))
        for file in folder.iterdir():
            status = file.stat()
            os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns - 10**9 * (age + 1)))

    cache.keep(a_program(run="1"))

    assert kept(cache)[0] == "1"
    assert sorted(kept(cache)) == ["1", "2", "3"]
    assert list(cache.read_newest_first("gpt")) == []


def test_only_the_newest_records_are_kept(cache):
    for number in range(1, 26):
        cache[0].keep(a_program(run=str(number)))

    assert len(kept(cache[0])) == 20
    assert "25" in kept(cache[0])


def test_a_damaged_record_is_named_and_hides_no_other(cache):
    cache, said, folder = cache
    cache.keep(a_program())
    (folder / "damaged.json").write_text("{")

    assert len(kept(cache)) == 1
    assert "a kept record of bert is not used" in said[0]
    assert "damaged.json" in said[0]


def test_a_folder_that_cannot_be_written_loses_the_record_and_nothing_else(cache):
    cache, said, folder = cache
    folder.parents[2].mkdir()
    folder.parents[1].write_text("a file")

    cache.keep(a_program())

    assert "the record of bert is not kept" in said[0]
