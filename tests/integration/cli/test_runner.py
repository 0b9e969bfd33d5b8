"""`calibrate` and `qualify`, with real child processes: what a runner's owner types."""

import json
import signal

import pytest

from ci_perf.errors import ExitCode
from ci_perf.model.baseline import Calibration, Qualification
from ci_perf.model.run import Run
from ci_perf.system import files
from tests.processes import wait_for_children
from tests.projects import GOOD, SLOW_STEP, Project

# Twice the step: more than the neighbours of this test do to a launch.
TWICE = 1.0


@pytest.fixture
def measured(project):
    """A project with two workloads that can be measured."""
    return project.workload("one").workload("two").suite("one", "two")


def found(project, name, kind):
    """Read the document of that name, wherever the machine's folder is."""
    (file,) = project.root.glob(f"baselines/*/{name}.json")
    return files.read(file, kind)


def test_calibrate_chooses_and_says_how_much_launches_differ(measured):
    done = measured.run("calibrate", COLUMNS="160")

    calibration = found(measured, "calibration", Calibration)
    run = files.read(measured.root / "calibration-run.json", Run)
    assert done.code == ExitCode.OK, done.err
    assert done.out.startswith(
        f"This machine: statistic {calibration.statistic}, limit {100 * calibration.limit:g} %"
    )
    assert "smallest detectable" in done.out
    assert "git add baselines/" in done.err
    assert list(calibration.workloads) == ["one", "two"]
    assert [len(one.processes) for one in run.measured] == [6, 6]


@pytest.mark.parametrize("processes", [4, 7])
def test_calibrate_wants_enough_launches_and_a_partner_for_each(measured, processes):
    done = measured.run("calibrate", "--processes", processes)

    assert done.code == ExitCode.USAGE
    assert "--processes" in done.err


def test_a_workload_that_fails_leaves_a_calibration_by_the_others(project):
    project.workload("bad", "raise ValueError('boom')\n").workload("good").suite("bad", "good")

    done = project.run("calibrate", "--format", "json")

    assert done.code == ExitCode.NO_ANSWER
    assert list(json.loads(done.out)["workloads"]) == ["good"]
    assert list(found(project, "calibration", Calibration).workloads) == ["good"]


def test_without_any_workload_that_works_there_is_no_calibration(project):
    project.workload("bad", "raise ValueError('boom')\n").suite("bad")

    done = project.run("calibrate")

    assert done.code == ExitCode.NO_ANSWER
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


def test_a_report_never_overwrites_the_run(measured):
    done = measured.run("calibrate", "-o", "calibration-run.json")

    assert done.code == ExitCode.USAGE
    assert not (measured.root / "calibration-run.json").exists()


@pytest.fixture(scope="module")
def qualified(tmp_path_factory):
    """A project with one workload in which `qualify` has run, and how that ended."""
    project = Project(tmp_path_factory.mktemp("qualified") / "a project")
    project.root.mkdir()
    project.workload("one").suite("one")
    return project, project.run("qualify", "--size", TWICE, "--rounds", 6)


def test_qualify_slows_a_step_down_and_measures_that_it_did(qualified):
    project, done = qualified

    qualification = found(project, "qualification", Qualification)
    one = qualification.workloads["one"]
    assert done.code == ExitCode.OK, done.err
    assert "This machine notices +100 % in " in done.out
    assert (one.pairs, qualification.size) == (6, TWICE)
    # Whatever else runs makes blocks longer only: the fastest ones show what was planted.
    assert fastest_block(project, "one+slower") > 1.5 * fastest_block(project, "one")


def fastest_block(project, name):
    run = files.read(project.root / "qualification-run.json", Run)
    (workload,) = (each for each in run.measured if each.workload == name)
    return min(block for process in workload.processes for block in process.timed.block_s)


def test_no_baseline_of_the_suite_comes_from_a_run_with_slowed_workloads(qualified):
    project, _ = qualified
    project.run("accept", "qualification-run.json")

    assert (project.root / "qualification-run.json").exists()
    assert not list(project.root.glob("baselines/*/smoke/*.json"))


def test_qualify_takes_markdown_for_a_job_summary(project):
    project.workload("one").suite("one")

    done = project.run("qualify", "--rounds", 6, "--format", "markdown", "-o", "summary.md")

    assert done.out == ""
    assert (project.root / "summary.md").read_text().startswith("**This machine notices +5.0 % in ")
