"""However a run ends, also by a storm of signals or by SIGKILL, nothing of it is left behind."""

import itertools
import os
import signal
import subprocess
import sys
import time

import pytest

from ci_perf.model.run import Run
from ci_perf.model.validity import Status
from ci_perf.system import files
from tests.processes import is_alive, run_python, wait_until
from tests.projects import DAEMON, GOOD, Project

# Measures, and keeps the run: what comes after measuring must hear no signal either.
KEEPER = """
from pathlib import Path
from ci_perf import session, suite
from ci_perf.system import files
from ci_perf.cli import measure_options
from ci_perf.gate import lab
from ci_perf.gate.options import MeasureOptions
here = Path.cwd()
plan = suite.plan(here / "workloads", "smoke", selection=(), root=here, protocol={"processes": 1})
options = MeasureOptions(root=here, workloads=here / "workloads", device="cpu")
with lab.open(plan, options, print, measure_options.open_listener()) as opened:
    run = session.measure(opened, plan)
    files.write(here / "run.json", run)
"""


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path / "a project")
    project.root.mkdir()
    scratch(project).mkdir()
    project.workload("good").workload("slow", GOOD + DAEMON).suite("good", "slow")
    return project


def scratch(project):
    """A temporary folder that no other test uses."""
    return project.root.parent / "tmp"


def started(project):
    """Wait until the slow workload has started its daemon; return the ids of both."""
    note = project.root / "daemon"
    wait_until(note.exists)
    return [int(pid) for pid in note.read_text().split()]


def test_a_storm_of_signals_ends_a_run_as_one_signal_does(project):
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", KEEPER],
        cwd=project.root,
        env={**os.environ, **project.locks, "TMPDIR": str(scratch(project))},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    pids = started(project)

    for one in itertools.islice(itertools.cycle([signal.SIGTERM, signal.SIGINT]), 60):
        process.send_signal(one)
        time.sleep(0.003)
    _, err = process.communicate(timeout=120)

    run = files.read(project.root / "run.json", Run)
    assert "Traceback" not in err
    assert [m.workload for m in run.measured] == ["good"]
    assert run.validity.status is Status.INVALID
    assert not list(scratch(project).iterdir())
    assert not any(is_alive(pid) for pid in pids)


def test_what_sigkill_leaves_is_gone_after_the_next_run(project):
    process = project.start("run", "--processes", 1, TMPDIR=str(scratch(project)))
    worker, daemon = started(project)
    process.kill()
    process.communicate()
    wait_until(lambda: not is_alive(worker))

    project.run("run", "good", "--processes", 1, TMPDIR=str(scratch(project)))

    wait_until(lambda: not is_alive(daemon))
    assert not list(scratch(project).iterdir())


def test_the_process_that_describes_the_machine_ends_with_its_parent(project):
    """It imports torch, which may take long: here for ever."""
    (project.root / "torch.py").write_text(
        "import os, time\nopen('describing', 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )
    process = project.start("run", PYTHONPATH=str(project.root))
    note = project.root / "describing"
    wait_until(lambda: note.exists() and note.read_text())
    pid = int(note.read_text())
    assert is_alive(pid)

    process.kill()
    process.communicate()

    wait_until(lambda: not is_alive(pid))


def test_a_worker_whose_parent_is_gone_before_it_listens_ends_itself(tmp_path):
    nobody = 0

    done = run_python("-P", "-m", "ci_perf.measuring.worker", tmp_path, nobody)

    assert done.returncode == 1
    assert not list(tmp_path.iterdir())


def test_a_run_survives_the_loss_of_its_temporary_folder(project):
    bomb = "import os, shutil\nshutil.rmtree(os.environ['TMPDIR'])\n"
    project.workload("bomb", GOOD + bomb).workload("late").suite("good", "bomb", "late")

    done = project.run("run", "--processes", 1, TMPDIR=str(scratch(project)))

    run = files.read(project.root / "run.json", Run)
    assert "\nTraceback" not in done.err  # ours; a process quotes its own
    assert [m.workload for m in run.measured] == ["good"]
    assert [f.workload for f in run.failed] == ["bomb", "late"]
