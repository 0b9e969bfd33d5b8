import os

from ci_perf.system import trees


def test_a_tree_deeper_than_python_recurses_is_removed(tmp_path):
    top = tmp_path / "top"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)

    trees.remove(top)

    assert not top.exists()


def test_folders_without_rights_are_removed(tmp_path):
    locked = tmp_path / "top" / "locked"
    locked.mkdir(parents=True)
    (locked / "file").touch()
    locked.chmod(0o000)

    trees.remove(tmp_path / "top")

    assert not (tmp_path / "top").exists()


def test_no_link_is_followed(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    top = tmp_path / "top"
    top.mkdir()
    (top / "link").symlink_to(kept)
    link = tmp_path / "link"
    link.symlink_to(kept)

    trees.remove(top)
    trees.remove(link)

    assert not top.exists()
    assert not link.is_symlink()
    assert (kept / "file").exists()


def test_what_is_not_there_is_no_error(tmp_path):
    trees.remove(tmp_path / "nothing")
