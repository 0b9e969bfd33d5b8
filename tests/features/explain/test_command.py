"""`ci-perf explain`: profiles of a real repository, taken now, and those of a run."""

import json

import pytest

from ci_perf.errors import ExitCode
from tests import repositories
from tests.projects import NAP_SETTINGS, Project

WORKLOAD = '''
"""Adds what the product lists."""
from ci_perf.workload import Workload
import product
def step():
    sum(product.numbers())
'''
ONCE = "def one():\n    return 1\ndef numbers():\n    return [one()]\n"
THREE_TIMES = "def one():\n    return 1\ndef numbers():\n    return [one(), one(), one()]\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A repository whose branch calls a function more often than main does."""
    git = repositories.init(tmp_path_factory.mktemp("explain") / "project")
    project = Project(git.root).workload("add", WORKLOAD)
    project.suite("add", settings=NAP_SETTINGS, device="cpu")
    (git.root / "product.py").write_text(ONCE)
    git.ask("add", "--all")
    git.commit()
    git.ask("switch", "--quiet", "--create", "branch")
    (git.root / "product.py").write_text(THREE_TIMES)
    git.commit()
    return project


def test_base_and_head_are_profiled_in_turns_and_compared_by_function(project):
    done = project.run("explain", "add", "--against", "main", "--format", "json")

    assert done.code == ExitCode.OK, done.err
    answer = json.loads(done.out)
    (workload,) = answer["workloads"]
    explanation = workload["explanation"]
    # On a busy machine the times of so small a step may differ as well, and by more.
    every = [*explanation["causes"], *explanation.get("others", ())]
    (cause,) = [each for each in every if each["evidence"] == "exact"]
    assert (len(answer["base"]), workload["explanation"]["pairs"]) == (40, 3)
    assert (cause["kind"], cause["place"]["function"]) == ("calls", "one")
    assert (cause["calls_base"], cause["calls_head"]) == (1.0, 3.0)
    assert done.err == "add: profiling a step\n"  # what happens several times in a row is told once


def test_without_a_base_the_head_is_profiled_once(project):
    done = project.run("explain", "--operators", "--format", "markdown")

    assert done.code == ExitCode.OK, done.err
    assert done.out.startswith("**1 workload of `smoke` explained**\n")
    assert "What limits a step is not known: " in done.out  # without torch there is no trace
    assert "no trace of torch.profiler lists its operators" in done.out
    assert done.err.count("profiling a step") == 1


@pytest.fixture
def grown(project):
    """The same project with a workload that the base lacks, and one that cannot be launched."""
    project.workload("later", WORKLOAD).workload("broken", "raise ValueError('no data')\n")
    yield project.suite("broken", "add", "later", settings=NAP_SETTINGS, device="cpu")
    project.suite("add", settings=NAP_SETTINGS, device="cpu")


def test_a_base_without_the_workload_is_said(grown):
    done = grown.run("explain", "later", "--against", "main")

    assert done.code == ExitCode.OK, done.err
    assert "the base has no file of this workload" in done.out


def test_what_cannot_be_launched_is_said_and_stops_no_other_workload(grown):
    done = grown.run("explain", "broken", "add", "--format", "json")

    broken, whole = json.loads(done.out)["workloads"]
    assert (broken["trouble"], whole.get("trouble", "")) == ("ValueError: no data", "")
    assert whole["profile"]["steps"] == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run.json",), "run.json"),
        (("other",), "other"),
    ],
)
def test_wrong_use_is_refused_before_anything_is_launched(project, arguments, said):
    done = project.run("explain", *arguments)

    assert done.code == ExitCode.USAGE
    assert said in done.err
