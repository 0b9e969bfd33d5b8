"""`ci-perf try` as a newcomer runs it: real programs, and folders without git."""

import json
import signal
import sys

import pytest

from ci_perf.errors import ExitCode
from tests import repositories
from tests.processes import find_running_in
from tests.projects import Project

# Sleeps, so that a busy machine changes little. It notes what is planted into it.
LOOP = """
import os, time
import ci_perf
with open("../noted", "a") as noted:
    noted.write(os.environ.get("CI_PERF_PLANT", "none") + "\\n")
for _ in ci_perf.steps(range(1000), warmup=2, steps=20):
    time.sleep(0.01)
"""
WHOLE = "import time\ntime.sleep(0.2)\n"
BENCHMARK = """
import time
def test_nap(benchmark):
    benchmark(time.sleep, 0.005)
def test_unused(benchmark):
    benchmark(time.sleep, 0.005)
"""
NAP = """
import time
from ci_perf import Workload
def step():
    time.sleep(0.005)
"""
END = "This is what your pull request would show."


@pytest.fixture
def folder(tmp_path):
    """A folder that is no repository."""
    root = tmp_path / "project"
    root.mkdir()
    return Project(root)


def tried(project, *arguments, **environment):
    return project.run("try", "--wait", "0s", "-o", "../run.json", *arguments, **environment)


def plant_of(project):
    return json.loads((project.root.parent / "run.json").read_text())["interleaved"]["planted"]


def test_a_loop_is_red_by_the_same_work_in_each_launch_of_the_head(folder):
    (folder.root / "train.py").write_text(LOOP)

    done = tried(folder, "--", sys.executable, "train.py")

    assert done.code == ExitCode.OK, done.err
    first, *_, last = done.out.strip().splitlines()
    assert "slows down the head on purpose, by about" in first
    assert "at the end of each step" in first
    assert "Fail (red job): slower: `command`" in done.out
    assert last.startswith(END)
    plant = plant_of(folder)
    assert plant["share"] >= 0.1
    noted = (folder.root.parent / "noted").read_text().split()
    assert set(noted) == {"none", str(plant["iterations"])}
    assert min(map(noted.count, set(noted))) >= 6
    assert "on purpose by ci-perf try" in folder.run("compare", "../run.json").out


def test_a_whole_command_is_slowed_down_and_told_where_no_run_can_be_kept(tmp_path):
    """The checkout stays as it is."""
    git = repositories.init(tmp_path / "project")
    git.commit(README="A newcomer's.")
    (git.root / "train.py").write_text(WHOLE)
    before = git.ask("status", "--porcelain")

    done = tried(Project(git.root), "-o", "/dev/full", "--", sys.executable, "train.py")

    assert done.code == ExitCode.NO_ANSWER, done.err
    assert "/dev/full: cannot be written: No space left on device" in done.err
    assert END in done.out
    assert "after the command, before its time is taken" in done.out.splitlines()[0]
    assert git.ask("status", "--porcelain") == before
    assert git.worktrees() == [str(git.root)]


def test_the_first_benchmark_of_pytest_is_tried(folder):
    (folder.root / "test_naps.py").write_text(BENCHMARK)

    done = tried(folder, "--pytest", "test_naps.py")

    assert done.code == ExitCode.OK, done.err
    assert "test_nap: the first of 2" in done.err
    assert plant_of(folder)["workload"] == "test_naps.test_nap"


def test_a_workload_of_the_suite_is_tried(folder):
    folder.workload("nap", NAP).suite("nap")

    done = tried(folder, "nap")

    assert done.code == ExitCode.OK, done.err
    assert plant_of(folder)["workload"] == "nap"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "expected a program, found none; next: ci-perf try -- python train.py"),
        (["--"], 2, "expected a command behind it"),
        (["--", "no-such-program"], 3, "cannot start 'no-such-program'"),
        (["--", "sh", "-c", "echo told; exit 4"], 3, "found 4; next: run it without ci-perf"),
        (["-o", "nowhere/run.json", "--", "true"], 3, "next: mkdir -p"),
        (["--pytest", "nowhere"], 2, "expected a path below"),
        (["--pytest", "empty.py"], 2, "expected a test with the fixture"),
        (["--budget", "0s", "--", "true"], 2, "expected time for 2 pairs of command, found"),
        (["--suite", "printed"], 2, "times that the command prints"),
    ],
)
def test_an_error_says_what_comes_next(folder, arguments, code, said):
    (folder.root / "empty.py").write_text("def test_nothing(): pass\n")
    if "--suite" in arguments:
        entry = '[[suites.printed.commands]]\nname = "it"\ncommand = "true"\nmetric = "a_s=(1)"\n'
        (folder.root / "workloads").mkdir()
        text = f'schema_version = 1\n[suites.printed]\ndevice = "cpu"\n{entry}'
        (folder.root / "workloads/suite.toml").write_text(text)

    done = tried(folder, *arguments)

    assert done.code == code, done.err
    assert said in done.err


@pytest.mark.parametrize(
    ("program", "phase", "is_kept"),
    [
        ("import time\ntime.sleep(600)\n", "a few launches first", False),
        (LOOP, "launching base and head", True),
    ],
)
def test_an_interrupt_ends_it_and_leaves_no_process(folder, program, phase, is_kept):
    (folder.root / "train.py").write_text(program)
    options = ("--wait", "0s", "-o", "../run.json")
    process = folder.start("try", *options, "--", sys.executable, "train.py")
    for heard in process.stderr:
        if phase in heard:
            process.send_signal(signal.SIGTERM if is_kept else signal.SIGINT)
            break

    _, err = process.communicate(timeout=60)

    assert process.returncode == ExitCode.INTERRUPTED
    assert "interrupted" in err
    assert (folder.root.parent / "run.json").exists() == is_kept
    assert find_running_in(folder.root) == []
