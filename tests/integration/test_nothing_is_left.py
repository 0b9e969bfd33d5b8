"""Whatever a launch was: no folder of it is left, and no process; and no other one is harmed."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from ci_perf.launch.local import LocalLauncher
from ci_perf.model.process import WorkerResult
from tests import repositories
from tests.launches import BUILD, HEAD, PASS, a_task
from tests.processes import is_alive, wait_until
from tests.projects import Project


def test_a_launch_leaves_no_folder(launch, tmp_path, use_tempdir):
    (tmp_path / "tmp").mkdir()
    use_tempdir(tmp_path / "tmp")
    lock_up = "import os, sys\nos.mkdir(sys.argv[1] + '/d')\nos.chmod(sys.argv[1], 0)\n"

    launch(HEAD + PASS + BUILD)
    launch(lock_up + HEAD + PASS + BUILD)
    launch("1 / 0\n")

    assert not list((tmp_path / "tmp").iterdir())


def test_a_daemon_without_our_environment_does_not_outlive_its_launch(launch, tmp_path):
    note = tmp_path / "pid"
    source = f"""
import subprocess
child = subprocess.Popen(["sleep", "611"], env={{}}, start_new_session=True)
open({str(note)!r}, "w").write(str(child.pid))
"""

    result = launch(source + HEAD + PASS + BUILD)

    assert isinstance(result, WorkerResult)
    assert not Path("/proc", note.read_text()).exists()


def test_children_of_ours_that_a_launch_did_not_start_are_left_alone(launch, tmp_path):
    """Also an orphan that one of them makes and leaves meanwhile, which comes to us."""
    flag, note = tmp_path / "flag", tmp_path / "orphan"
    parent = (
        f"until [ -e {flag} ]; do sleep 0.01; done; sleep 611 & "
        f"echo $! > {note}.new; mv {note}.new {note}"
    )
    bystander = subprocess.Popen(
        ["bash", "-c", f"({parent}) & exec sleep 611"], start_new_session=True
    )
    wait_for_adoption = f"""
import os, pathlib, time
pathlib.Path({str(flag)!r}).touch()
note = pathlib.Path({str(note)!r})
while not note.exists():
    time.sleep(0.01)
stat = pathlib.Path("/proc", note.read_text().strip(), "stat")
while int(stat.read_text().rpartition(")")[2].split()[1]) != os.getppid():
    time.sleep(0.01)
"""
    try:
        result = launch(wait_for_adoption + HEAD + PASS + BUILD)

        assert isinstance(result, WorkerResult)
        assert bystander.poll() is None
        assert is_alive(int(note.read_text()))
    finally:
        os.killpg(bystander.pid, signal.SIGKILL)
        bystander.wait()


@pytest.mark.parametrize("detach", ["", "os.setsid(); os.fork() and os._exit(0)"])
def test_children_that_outlive_a_workload_do_not_outlive_its_launch(launch, tmp_path, detach):
    note = tmp_path / "pid"
    fork = f"""
import os, time
if os.fork() == 0:
    {detach or "pass"}
    open({str(note)!r}, "w").write(str(os.getpid()))
    time.sleep(600)
while not os.path.exists({str(note)!r}) or not os.path.getsize({str(note)!r}):
    time.sleep(0.01)
"""

    result = launch(HEAD + fork + PASS + BUILD)

    assert isinstance(result, WorkerResult)
    assert not is_alive(int(note.read_text()))


def test_a_worker_ends_with_its_parent(tmp_path, use_tempdir):
    """However the parent dies: here by SIGKILL, which no handler sees."""
    note = tmp_path / "pid"
    (tmp_path / "it.py").write_text(
        f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )
    use_tempdir(tmp_path)  # nobody is left to clean up
    parent = os.fork()
    if parent == 0:
        try:
            LocalLauncher(tmp_path).launch(a_task(tmp_path / "it.py"))
        finally:
            os._exit(0)
    wait_until(lambda: note.exists() and note.read_text())

    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)

    wait_until(lambda: not is_alive(int(note.read_text())))


def test_grandchildren_of_a_command_and_all_folders_are_gone_after_sigkill(tmp_path):
    """Those that the launch would have ended: nobody has to start ci-perf again."""
    git = repositories.init(tmp_path / "project")
    git.commit(a="1")
    git.ask("switch", "--quiet", "--create", "branch")
    git.commit(a="2")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    one, other = tmp_path / "one", tmp_path / "other"
    command = f"setsid sleep 612 & echo $! > {one}; sleep 613 & echo $! > {other}; wait"

    options = ("--against", "main", "--", "sh", "-c", command)
    with Project(git.root).start("check", *options, TMPDIR=str(temporary)) as process:
        wait_until(lambda: other.exists() and other.read_text())
        process.kill()

    wait_until(lambda: not any(is_alive(int(each.read_text())) for each in (one, other)))
    wait_until(lambda: not [*temporary.iterdir()])
