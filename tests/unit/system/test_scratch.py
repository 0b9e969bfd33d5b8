import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ci_perf.system import scratch
from tests.processes import is_alive, wait_until


@pytest.fixture(autouse=True)
def place(tmp_path, use_tempdir):
    """A temporary folder that no other test sweeps."""
    use_tempdir(tmp_path)
    return tmp_path


def left_by_a_killed_owner(place):
    """Make a folder, and a process that bears its name, of an owner that no longer lives."""
    program = (
        "import os, signal, subprocess, sys\n"
        "from ci_perf.system import scratch\n"
        "with scratch.folder() as folder:\n"
        "    environment = {scratch.COOKIE: folder.path.name}\n"
        "    child = subprocess.Popen(['/bin/sleep', '611'], env=environment)\n"
        "    # The kernel fills in the environment a moment after exec.\n"
        "    environ = f'/proc/{child.pid}/environ'\n"
        "    while folder.path.name.encode() not in open(environ, 'rb').read():\n"
        "        pass\n"
        "    sys.stdout.write(f'{folder.path} {child.pid}')\n"
        "    sys.stdout.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    with (place / "said").open("w+") as said:  # a pipe would wait for the child
        subprocess.run(
            [sys.executable, "-c", program],
            check=False,
            env={**os.environ, "TMPDIR": str(place)},
            stdout=said,
        )
        said.seek(0)
        folder, pid = said.read().split()
    return Path(folder), int(pid)


def test_what_a_killed_owner_left_is_swept(place):
    folder, pid = left_by_a_killed_owner(place)
    assert folder.exists()
    assert is_alive(pid)
    try:
        scratch.sweep()

        assert not folder.exists()
        wait_until(lambda: not is_alive(pid))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def test_what_a_living_owner_uses_is_not_swept():
    with scratch.folder() as folder:
        scratch.sweep()

        assert folder.path.is_dir()
    assert not folder.path.exists()


def test_what_is_not_of_a_launch_is_not_swept(place):
    (place / "ci-perf-locks").mkdir()
    (place / "elsewhere").mkdir()
    (place / "ci-perf-launch-link").symlink_to(place / "elsewhere")

    scratch.sweep()

    assert (place / "ci-perf-locks").is_dir()
    assert (place / "elsewhere").is_dir()


def test_a_folder_that_was_exchanged_for_a_link_takes_nothing_else_with_it(place):
    (place / "precious").mkdir()
    with scratch.folder() as folder:
        folder.path.rmdir()
        folder.path.symlink_to(place / "precious")

    assert (place / "precious").is_dir()
    assert not folder.path.is_symlink()


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

    scratch.remove_tree(top)

    assert not top.exists()


def test_folders_without_rights_are_removed(tmp_path):
    locked = tmp_path / "top" / "locked"
    locked.mkdir(parents=True)
    (locked / "file").touch()
    locked.chmod(0o000)

    scratch.remove_tree(tmp_path / "top")

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

    scratch.remove_tree(top)
    scratch.remove_tree(link)

    assert not top.exists()
    assert not link.is_symlink()
    assert (kept / "file").exists()


def test_what_is_not_there_is_no_error(tmp_path):
    scratch.remove_tree(tmp_path / "nothing")
