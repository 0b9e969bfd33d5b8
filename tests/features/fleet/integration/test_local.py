"""Units of a plan on this machine: killed, interrupted, resumed, and merged into one run."""

import os
import signal
from pathlib import Path

import pytest

from ci_perf.model.comparison import Comparison, Verdict
from ci_perf.model.run import Run
from ci_perf.system import files, processes
from tests.features.fleet import fleets
from tests.processes import is_alive, is_measuring, wait_until


def units_of(controller):
    """Return the processes of the units, by the id of each."""
    commands = {}
    for child in processes.below(controller.pid):
        words = [word.decode() for word in _words(child.pid)]
        if "--unit" in words and child.parent == controller.pid:
            commands[words[words.index("--unit") + 1]] = child.pid
    return commands


def _words(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return []


@pytest.fixture
def hanging(tmp_path):
    """A fleet of which one unit is measured, and the other one hangs in a launch."""
    fleet = fleets.planned(tmp_path, hangs=True)
    # One after the other.
    controller = fleet.start("local", A_TOKEN_OF_SOMEBODY="secret", OMP_NUM_THREADS="3")
    wait_until((tmp_path / "fleet/1-of-2/run.json").exists)
    wait_until(lambda: is_measuring(controller.pid))
    yield fleet, controller
    controller.kill()
    controller.communicate()


def test_a_killed_unit_is_told_and_alone_is_measured_by_the_next_call(hanging, tmp_path):
    fleet, controller = hanging
    unit = units_of(controller)["2-of-2"]
    given = Path(f"/proc/{unit}/environ").read_text()
    assert "PATH=" in given
    assert "OMP_NUM_THREADS=3" in given
    assert "A_TOKEN_OF_SOMEBODY" not in given
    below = [process.pid for process in processes.below(unit)]
    os.kill(unit, signal.SIGKILL)
    _, err = controller.communicate(timeout=300)

    assert controller.returncode == 3
    assert "2-of-2: ended by signal 9" in err
    wait_until(lambda: not any(map(is_alive, below)))
    lost = fleet.merge()
    assert lost.code == 3
    assert "failed: b: no node has measured it: ended by signal 9" in lost.err

    first = (tmp_path / "fleet/1-of-2/run.json").read_bytes()
    fleet.waits.unlink()
    done = fleet.run("local", "--at-once", "2")

    assert done.code == 0, done.err
    assert "2 units, 1 of them to measure" in done.err
    assert (tmp_path / "fleet/1-of-2/run.json").read_bytes() == first
    assert fleet.merge().code == 0
    merged = files.read(tmp_path / "run.json", Run)
    assert [session.unit for session in merged.sessions] == ["1-of-2", "2-of-2"]
    assert "2 units, 0 of them to measure" in fleet.run("local").err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_where_the_command_ends_its_units_end_with_it(hanging, number):
    fleet, controller = hanging
    below = [process.pid for process in processes.below(controller.pid)]
    controller.send_signal(number)
    controller.communicate(timeout=300)

    assert controller.returncode == (130 if number == signal.SIGINT else -9)
    wait_until(lambda: not any(map(is_alive, below)))
    # An interrupted run is none: the unit is measured again.
    assert fleet.merge().code == 3


@pytest.mark.parametrize(
    ("option", "words", "why"),
    [
        ("sh {script}", (), "exit code 2: Usage: ci-perf fleet measure"),
        ("sh -c 'echo no such queue {name}; exit 7'  # {script}", (), "exit code 7: no such queue"),
    ],
)
def test_what_a_unit_that_was_not_measured_said_stands_in_its_row(tmp_path, option, words, why):
    fleet = fleets.planned(tmp_path)
    command = ("fleet", "run", "../plan.json", "--engine", "command", "-o", "../fleet")
    done = fleet.project.run(*command, "--option", option, *words, "--", "--nonsense")

    assert done.code == 3
    assert f"1-of-2: {why}" in done.err
    assert f"failed: a: no node has measured it: {why}" in fleet.merge().err


def test_a_regression_is_proven_by_pairs_of_each_unit(tmp_path):
    fleet = fleets.regressed(tmp_path)
    done = fleet.run("command", "--option", "sh {script}")
    assert done.code == 0, done.err

    merged = fleet.merge("--comparison", "../comparison.json")

    assert merged.code == 1, merged.err
    comparison = files.read(tmp_path / "comparison.json", Comparison)
    worse = {row.workload for row in comparison.rows if row.verdict is Verdict.REGRESSED}
    assert worse == {"a", "b"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--engine", "command"], "--option: expected one, the command of --engine command"),
        (["--engine", "command", "--option", "sh x"], "a command that submits {script} and waits"),
        (["--engine", "command", "--option", "'"], "--option: expected a command, found"),
        (["--engine", "command", "--option", "/no {script}"], "/no: cannot be started: No such"),
        (["--engine", "slurm", "--devices", "0"], "--devices: expected --engine local"),
        (["--engine", "local", "--option", "x"], "--option: expected none with --engine local"),
        (["--engine", "ray", "--at-once", "2"], "--at-once: expected none with Ray"),
        (["--engine", "ray", "--option", "x"], "as num_gpus=8 or h100=1, found 'x'"),
        (["--engine", "local", "--machine-class", "x"], "expected one of the plan: none; found x"),
    ],
)
def test_what_an_engine_would_not_heed_is_refused(planned, words, message):
    done = planned.project.run("fleet", "run", "../plan.json", "-o", "../fleet", *words)

    assert done.code in {2, 3}
    assert message in done.err
    assert "Traceback" not in done.err


def test_another_plan_needs_another_folder(planned):
    planned.project.run("fleet", "plan", "--units", "1", "-o", "../one.json")
    files.write(planned.folder / "fleet/plan.json", planned.plan)
    done = planned.project.run(
        *("fleet", "run", "../one.json", "--engine", "local", "-o", "../fleet")
    )

    assert done.code == 2
    assert "found that of another plan; name another folder with --output" in done.err


@pytest.fixture(scope="module")
def planned(tmp_path_factory):
    fleet = fleets.planned(tmp_path_factory.mktemp("planned"))
    (fleet.folder / "fleet").mkdir()
    return fleet
