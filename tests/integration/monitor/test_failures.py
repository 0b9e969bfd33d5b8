"""Whatever happens to the monitor, or to who started it: no workload fails, nobody is left."""

import os
import signal
import socket
import subprocess
import time

import pytest

from ci_perf.launch import monitoring
from ci_perf.model import task
from ci_perf.system import child, scratch
from tests.processes import is_alive, wait_for_children, wait_until
from tests.watched import PYTHON, evidence_of

QUICK_WORKER = """
import sys
from pathlib import Path
from ci_perf.measuring.monitor import Marks
marks = Marks(Path(sys.argv[1]))
marks.hello()
marks.begin()
marks.end()
"""


def test_no_monitor_is_started_for_no_readings(watch, worker_under_watch, folder):
    with watch(hz=0.0) as watched:
        worker_under_watch().finished()

        assert not (folder / task.MONITOR_SOCKET).exists()
    assert watched.evidence() is None
    assert "not started" in watched.problem


# After -c come "-m", the module, and the monitor's own folder.
OTHER = "import sys; open(f'{sys.argv[3]}/evidence.json', 'w').write('[]')"


@pytest.mark.parametrize(
    ("python", "said"),
    [
        (["/nowhere/python"], ("/nowhere/python",)),
        ([*PYTHON, "-c", "raise SystemExit('so it goes')"], ("code 1", "so it goes")),
        ([*PYTHON, "-c", OTHER], ("evidence.json",)),
    ],
    ids=["does not start", "dies", "leaves another form"],
)
def test_a_monitor_that_fails_costs_no_workload_and_says_why(
    watch, worker_under_watch, python, said
):
    with watch(python=python) as watched:
        worker_under_watch().finished()

    assert watched.evidence() is None
    assert all(words in watched.problem for words in said)


def test_what_the_worker_puts_in_its_folder_is_neither_written_nor_believed(
    watch, worker_under_watch, folder, tmp_path
):
    names = [task.EVIDENCE, "monitor.stderr"]
    victim = tmp_path / "of the host"
    victim.write_text("mine")

    with watch() as watched:
        worker = worker_under_watch().past("start").at("timing")
        for name in names:
            (folder / name).symlink_to(victim)
        worker.finished()

    assert victim.read_text() == "mine"
    assert all((folder / name).is_symlink() for name in names)
    assert evidence_of(watched)


def test_a_folder_that_is_gone_costs_no_workload(tmp_path):
    with monitoring.watch_host(tmp_path / "gone", (), 5.0, PYTHON, os.environ) as watched:
        pass

    assert watched.evidence() is None
    assert "could not be started" in watched.problem


def test_junk_on_the_line_changes_nothing(watch, worker_under_watch, folder):
    junk = [b"", b"\xff" * 5000, b"begin", b"begin x", b"end 1 2", b"hello", b"dance 1"]
    with watch() as watched, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
        worker = worker_under_watch().past("start").at("timing")
        handle = os.open(folder, os.O_RDONLY)
        for one in junk * 20:
            line.sendto(one, task.monitor_address(handle))
        os.close(handle)
        worker.finished()

    assert evidence_of(watched).trouble == ""


def test_the_monitor_survives_the_cleaning_up_after_a_worker(watch, folder):
    with watch() as watched:
        child.run(
            [*PYTHON, "-c", QUICK_WORKER, str(folder)],
            cwd=str(folder),
            environment=os.environ,
            cookie=child.Cookie(variable=scratch.COOKIE, value=folder.name),
            timeout_s=60,
            interrupted=lambda: False,
        )

    assert evidence_of(watched).trouble == ""


KEEPER = """
import os, sys, time
from pathlib import Path
from ci_perf.launch import monitoring
with monitoring.watch_host(Path(sys.argv[1]), (), 5.0, [sys.executable, "-P"], os.environ):
    Path(sys.argv[1], "at_work").touch()
    time.sleep(600)
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_the_monitor_does_not_outlive_who_started_it(folder, end):
    keeper = subprocess.Popen([*PYTHON, "-c", KEEPER, str(folder)], stderr=subprocess.DEVNULL)
    wait_until((folder / "at_work").exists)
    (pid,) = wait_for_children(keeper.pid)

    keeper.send_signal(end)
    keeper.wait(timeout=60)

    wait_until(lambda: not is_alive(pid))


# Its monitor listens to the stdin of whoever started this keeper.
CARELESS_KEEPER = """
import os, socket, subprocess, sys
line = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
line.bind("")
monitor = [sys.executable, "-P", "-m", "ci_perf.measuring.monitor.server", sys.argv[1]]
ours = [str(os.getpid()), str(line.fileno()), "5"]
subprocess.Popen([*monitor, *ours], pass_fds=[line.fileno()]).wait()
"""


def test_a_monitor_whose_stdin_stays_open_still_ends_with_its_parent(folder):
    keeper = subprocess.Popen([*PYTHON, "-c", CARELESS_KEEPER, str(folder)], stdin=subprocess.PIPE)
    assert keeper.stdin
    (pid,) = wait_for_children(keeper.pid)

    keeper.kill()
    keeper.wait(timeout=60)

    wait_until(lambda: not is_alive(pid))
    keeper.stdin.close()


def test_a_driver_that_hangs_is_not_waited_for(watch):
    with watch(end_s=0.2, python=[*PYTHON, "-c", "import time; time.sleep(600)"]) as watched:
        start = time.monotonic()

    assert time.monotonic() - start < 60
    assert watched.evidence() is None
    assert "did not end within 0.2 s" in watched.problem
