"""`ci-perf rehearse`: real launches of a commit beside itself."""

import json
import signal
import sys

import pytest

from ci_perf.errors import ExitCode
from tests import repositories
from tests.projects import NAP_SETTINGS, Project

# Sleeps, so that a busy machine changes little. Beyond a limit of 29 %, 15 % would pass.
SETTINGS = NAP_SETTINGS.replace("limit = 0.5", "limit = 0.29") + "step_cpu_s = { gate = false }\n"
NAP = """
import time
from ci_perf import Workload
def step():
    time.sleep(0.005)
"""
# A loop that hears of no plant: nobody slows it down.
DEAF = """
import os
os.environ.pop("CI_PERF_PLANT", None)
import time
import ci_perf
for _ in ci_perf.steps(range(1000), warmup=2, steps=20):
    time.sleep(0.01)
"""


@pytest.fixture
def project(tmp_path):
    """A repository with a commit: a suite of one workload, and a command."""
    git = repositories.init(tmp_path / "project")
    project = Project(git.root)
    project.workload("nap", NAP).suite("nap", settings=SETTINGS, device="cpu")
    (git.root / "train.py").write_text(DEAF.replace('os.environ.pop("CI_PERF_PLANT", None)', ""))
    (git.root / "deaf.py").write_text(DEAF)
    git.commit(README="Mine.")
    return project


def rehearsed(project, *arguments):
    """Return how it ended, and what it says of the first workload."""
    done = project.run("rehearse", "--wait", "0s", "--format", "json", *arguments)
    known = json.loads(done.out)["workloads"] if done.out else {}
    return done, next(iter(known.values()), None)


def test_a_workload_is_clear_beside_itself_and_finds_its_plants(project):
    done, known = rehearsed(project, "nap", "--picture", "../found.svg")

    assert done.code == ExitCode.OK, done.err + done.out
    assert known["alike"] == "clear"
    shares = [each["plant"]["share"] for each in known["attempts"]]
    assert shares == pytest.approx([1.5 * 0.29, 3 * 0.29])
    assert {each["answer"] for each in known["attempts"]} == {"found"}
    assert "<svg" in (project.root.parent / "found.svg").read_text()


def test_a_loop_of_a_command_finds_its_plant(project):
    done, known = rehearsed(project, "--plant", "100%", "--", sys.executable, "train.py")

    assert done.code == ExitCode.OK, done.err + done.out
    assert known["attempts"][0]["answer"] == "found"


def test_a_loop_that_ignores_its_plant_is_a_gate_that_cannot_fail(project):
    done, known = rehearsed(project, "--plant", "100%", "--", sys.executable, "deaf.py")

    assert done.code == ExitCode.REGRESSED, done.err + done.out
    assert "planted work of 100 % changes nothing" in known["broken"][0]


def test_held_memory_is_found(project):
    done, known = rehearsed(project, "nap", "--plant", "memory=256MiB")

    assert known["attempts"][0]["ratio"] > 2, done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--plant", "0%"], "expected more than 0 % and at most 1000 %, found 0%"),
        (["--plant", "nap"], "expected a share of a step (5%), wait"),
        (["--plant", "wait"], "--plant wait: expected a GPU"),
        (["--plant", "5%", "--against", "main"], "base and head are the same commit"),
        (["--plant", "operator", "--", "true"], "only work can be planted there"),
        (["--suite", "printed"], "which no planted work makes longer"),
        (["unknown"], "unknown"),
    ],
)
def test_bad_input_is_refused_before_anything_is_launched(project, arguments, said):
    if "printed" in arguments:
        entry = '[[suites.printed.commands]]\nname = "it"\ncommand = "true"\nmetric = "a_s=(1)"\n'
        path = project.root / "workloads/suite.toml"
        path.write_text(path.read_text() + f'[suites.printed]\ndevice = "cpu"\n{entry}')
        repositories.Repository(project.root).commit(README="With a suite that prints.")

    done = project.run("rehearse", "--wait", "0s", *arguments)

    assert done.code == ExitCode.USAGE, done.err
    assert said in done.err


def test_a_check_knows_no_plant(project):
    assert "No such option" in project.run("check", "--plant", "5%").err


@pytest.mark.parametrize("is_committed", [False, True])
def test_only_a_commit_can_be_rehearsed(tmp_path, is_committed):
    git = repositories.init(tmp_path / "new")
    Project(git.root).workload("nap", NAP).suite("nap", settings=SETTINGS)
    if is_committed:
        git.commit(README="Mine.")
        (git.root / "README").write_text("Changed.")

    done = Project(git.root).run("rehearse", GITHUB_SHA="")

    assert done.code == ExitCode.USAGE
    assert ("uncommitted changes" if is_committed else "found none; commit first") in done.err


def test_an_interrupt_keeps_what_was_found(project):
    process = project.start("rehearse", "nap", "--wait", "0s", "--format", "json")
    for heard in process.stderr:
        if "nap: A=A" in heard:
            process.send_signal(signal.SIGINT)
            break

    out, err = process.communicate(timeout=120)

    assert process.returncode == ExitCode.INTERRUPTED, err
    assert json.loads(out)["workloads"]["nap"]["alike"] == "clear"


def test_what_is_kept_is_told_by_the_next_check_once_it_is_on_main(project):
    done, _ = rehearsed(project, "nap", "--plant", "100%", "--keep")
    assert done.code == ExitCode.OK, done.err
    (file,) = project.root.rglob("rehearsed.json")
    git = repositories.Repository(project.root)
    assert f"written: {file.relative_to(project.root)}" in done.err
    git.commit(README="With what was rehearsed.")
    git.ask("checkout", "-q", "-b", "change")
    git.commit(product="Changed.")

    checked = project.run("check", "--against", "main", "--all", "--wait", "0s")

    assert "rehearsed here on `20" in checked.out, checked.err
    assert "100 % found in" in checked.out.replace("\N{NO-BREAK SPACE}", " ")
