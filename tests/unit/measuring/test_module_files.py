import os

import pytest

from ci_perf.measuring import module_files


@pytest.mark.parametrize(
    "path", ["/", "//", "/usr", "/bin", "/bin/", "/bin/sh", "/x/../y", "/x/.", "", ".", "..", "a/b"]
)
def test_a_real_path_is_that_of_the_standard_library(path):
    assert module_files.real_path(path) == os.path.realpath(path)


def test_real_paths_follow_links_to_files_and_folders_and_loops(tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/file").touch()
    for name, target in {"link": "folder", "folder/too": "file", "loop": "loop", "r": "/"}.items():
        (tmp_path / name).symlink_to(target)

    for name in (
        "link/file",
        "link/too",
        "folder/too",
        "loop",
        "loop/x",
        "link/../folder",
        "none/x",
        "r/usr",
    ):
        path = str(tmp_path / name)
        assert module_files.real_path(path) == os.path.realpath(path)
    for folder in (tmp_path, tmp_path / "folder"):
        monkeypatch.chdir(folder)
        assert module_files.real_path("too") == os.path.realpath("too")
