"""`calibrate`, with real child processes: what a runner's owner types."""

import json
import signal

import pytest

from ci_perf.errors import ExitCode
from ci_perf.model.baseline import Calibration
from ci_perf.model.run import Run
from ci_perf.system import files
from tests.processes import wait_for_children
from tests.projects import GOOD, SLOW_STEP


@pytest.fixture
def measured(project):
    """A project with two workloads that can be measured."""
    return project.workload("one").workload("two").suite("one", "two")


def found(project):
    """Read the calibration, wherever the machine's folder is."""
    (file,) = project.root.glob("baselines/*/calibration.json")
    return files.read(file, Calibration)


def test_calibrate_chooses_and_says_how_much_launches_differ(measured):
    done = measured.run("calibrate", COLUMNS="160")

    calibration = found(measured)
    run = files.read(measured.root / "calibration-run.json", Run)
    assert done.code == ExitCode.OK, done.err
    assert done.out.startswith(
        f"This machine: statistic {calibration.statistic}, limit {100 * calibration.limit:g} %"
    )
    assert "smallest detectable" in done.out
    assert "git add baselines/" in done.err
    assert list(calibration.workloads) == ["one", "two"]
    assert [len(one.processes) for one in run.measured] == [6, 6]


@pytest.mark.parametrize("others", [("good",), ()])
def test_a_workload_that_fails_leaves_a_calibration_by_the_others_if_there_are_any(project, others):
    project.workload("bad", "raise ValueError('boom')\n").workload("good").suite("bad", *others)

    done = project.run("calibrate", "--format", "json")

    assert done.code == ExitCode.NO_ANSWER
    if others:
        assert list(json.loads(done.out)["workloads"]) == list(found(project).workloads) == ["good"]
    else:
        assert "expected at least one workload with numbers" in done.err
        assert not (project.root / "baselines").exists()


def test_an_interrupted_calibration_keeps_nothing(project):
    project.workload("slow", GOOD + SLOW_STEP).suite("slow")
    process = project.start("calibrate")
    wait_for_children(process.pid)

    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)

    assert process.returncode == ExitCode.INTERRUPTED
    assert not (project.root / "baselines").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--processes", 7), "expected an even number"),
        (("--report", "calibration-run.json"), "would overwrite calibration-run.json"),
    ],
)
def test_wrong_use_is_refused_before_anything_is_launched(measured, arguments, said):
    done = measured.run("calibrate", *arguments)

    assert done.code == ExitCode.USAGE
    assert said in done.err
    assert not (measured.root / "calibration-run.json").exists()
