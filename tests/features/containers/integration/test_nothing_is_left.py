"""A session of tests with engines leaves no process, mount or folder, however it ends."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.features.containers.helpers import engines, keeper
from tests.processes import wait_for_children, wait_until

pytestmark = pytest.mark.container

OCCUPANT = Path(__file__).with_name("occupant.py")
# Tells the containers of these tests from all others.
SECONDS = f"611.{os.getpid()}"


@pytest.fixture
def folder(use_tempdir):
    """Where the session and `sweep` have their folders: short, for addresses of sockets."""
    path = Path(tempfile.mkdtemp())
    use_tempdir(path)
    yield path
    keeper.sweep()
    shutil.rmtree(path)


@pytest.fixture
def session(docker, folder):
    """A pytest of its own in which containers run, until the file `begun` is removed."""
    if not engines.folder_of(docker):
        pytest.skip("the docker of this machine answers, and stays")
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", OCCUPANT],
        env={
            **{name: value for name, value in os.environ.items() if "PYTEST" not in name},
            "TMPDIR": str(folder),
            "OCCUPANT_S": SECONDS,
            "OCCUPANT_BEGUN": str(folder / "begun"),
        },
        start_new_session=True,
    )
    wait_until(lambda: (folder / "begun").exists() or process.poll() is not None)
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def left(session, folder):
    """Say what is left of the session; before, all kinds are there."""
    names = [path.name for path in folder.glob(f"{keeper.PREFIX}*")]

    def left():
        return {
            "folders": [name for name in names if (folder / name).exists()],
            "processes": [pid for name in names for pid in keeper.processes_of(folder / name)],
            "containers": containers(),
            "mounts": [at for name in names for at in keeper.mounts_of(folder / name)],
            "control groups": [at for name in names for at in keeper.control_groups_of(name)],
            "specifications": [at for name in names for at in keeper.CDI.glob(f"{name}*")],
        }

    assert session.poll() is None
    assert all(left().values()), left()
    assert len(containers()) == 2
    return left


def containers():
    """Return what runs in the containers of the session."""
    processes = [path for path in Path("/proc").iterdir() if path.name.isdigit()]
    lines = {int(path.name): keeper.arguments(path) for path in processes}
    return [pid for pid, line in lines.items() if line.split("\0")[:2] == ["sleep", SECONDS]]


def test_podman_has_nothing_of_the_machine(podman, podman_python_image):
    found = podman.must("images", "--no-trunc", "--quiet")

    assert podman.must("info", "--format", "{{.Store.GraphRoot}}") == (
        f"{engines.folder_of(podman)}/root"
    )
    assert podman_python_image in found.splitlines()


def test_the_next_session_removes_what_is_left_when_everybody_is_killed(session, left):
    for pid in [*wait_for_children(session.pid), session.pid]:
        os.kill(int(pid), signal.SIGKILL)
    session.wait()

    wait_until(lambda: len(containers()) == 1)  # docker's end with their keeper

    def is_swept():
        """Who was killed holds the lock until the kernel has ended him."""
        keeper.sweep()
        return not any(left().values())

    wait_until(is_swept)
