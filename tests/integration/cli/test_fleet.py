"""`ci-perf fleet run` on slots of this machine: real units, one report, and what is refused."""

import signal

import pytest

from ci_perf.model.comparison import Comparison, Verdict
from ci_perf.model.fleet import Endings
from ci_perf.model.run import Run
from ci_perf.system import files, processes
from tests import repositories
from tests.processes import is_alive, is_measuring, wait_until
from tests.projects import FAST, GOOD, NAP, NAP_SETTINGS, QUICK, SLOW, Project

# Units are given what a shell needs, and what the owner names: these say that nobody waits.
FLEET = 'environment = ["CI_PERF_RUN_WAIT", "CI_PERF_RUN_RECORD"]\n[class.cpu]\nnodes = 2\n'
RUN = ("fleet", "run", "--engine", "local", "--nodes", "../fleet.toml", "-o", "../fleet")
HANGS_WHILE = """
import os, time
from ci_perf.workload import Workload
def step():
    while os.path.exists({path!r}):
        time.sleep(0.1)
    sum(range(1000))
"""


def a_project(folder, fleet=FLEET, **bodies):
    git = repositories.init(folder / "project")
    project = Project(git.root)
    for name, body in bodies.items():
        project.workload(name, *([body] if body else []))
    project.suite(
        *bodies, settings=QUICK.replace("timeout_s = 20", "timeout_s = 600"), device="cpu"
    )
    git.commit()
    (folder / "fleet.toml").write_text(fleet)
    return project


def test_a_fleet_run_is_interrupted_and_goes_on_to_one_report(tmp_path):
    waits = tmp_path / "waits"
    waits.touch()
    # One after the other, as they are planned: a has ended when b begins.
    project = a_project(
        tmp_path,
        FLEET.replace("nodes = 2", "nodes = 1"),
        a=None,
        b=HANGS_WHILE.format(path=str(waits)),
    )
    command = (*RUN, "--shards", "2", "--", "--processes", "1")
    controller = project.start(*command)
    wait_until((tmp_path / "fleet/runs").exists)
    wait_until(lambda: list((tmp_path / "fleet/runs").iterdir()) and is_measuring(controller.pid))
    below = [process.pid for process in processes.below(controller.pid)]

    controller.send_signal(signal.SIGINT)
    _, err = controller.communicate(timeout=120)

    assert controller.returncode == 130, err
    assert [pid for pid in below if is_alive(pid)] == []
    endings = files.read(tmp_path / "fleet/endings.json", Endings).endings
    assert [ending.kind for ending in endings] == ["measured", "cancelled"]
    partial = files.read(tmp_path / "fleet/run.json", Run)
    assert [measured.workload for measured in partial.measured] == ["a"]
    assert partial.failed[0].reason.endswith("interrupted")

    for more in (["--shards", "5"], ["--against", "main"], ["--suite", "smoke2"]):
        other = project.run(*RUN, "--resume", *more)
        assert other.code == 2
        assert f"{more[0]}: expected " in other.err
        assert f", found {more[1]}; --resume goes on with that plan" in other.err
    again = project.run(*command)
    assert again.code == 2
    assert "found the journal of an earlier fleet run; go on with it by --resume" in again.err

    waits.unlink()
    done = project.run(*RUN, "--resume", "--", "--processes", "1")

    run = files.read(tmp_path / "fleet/run.json", Run)
    assert [measured.workload for measured in run.measured] == ["a", "b"]
    assert len(run.merged_from) == 2
    assert len(run.measured[1].processes) == 1
    comparison = files.read(tmp_path / "fleet/comparison.json", Comparison)
    assert {row.verdict for row in comparison.rows} == {Verdict.NEW}
    # There is no baseline, and so no answer.
    assert (done.code, comparison.exit_code) == (3, 3)
    assert "2 new workloads" in done.out
    assert "[2/2] 2-of-2: measured on cpu-0" in done.err


def test_a_node_that_is_not_of_its_class_launches_no_workload(tmp_path):
    launched = tmp_path / "launched"
    fleet = FLEET + 'expect = { cpu_model = "Quantum 9000" }\n'
    body = f"from pathlib import Path\nPath({str(launched)!r}).touch()\n{GOOD}"
    project = a_project(tmp_path, fleet, a=body)

    done = project.run(*RUN, "--shards", "1")

    assert done.code == 3
    (ending,) = files.read(tmp_path / "fleet/endings.json", Endings).endings
    assert ending.kind == "failed"
    assert ", none of them of its class; the last one: the node is not of its" in ending.reason
    (failed,) = files.read(tmp_path / "fleet/run.json", Run).failed
    assert "cpu_model: expected 'Quantum 9000', found " in failed.reason
    assert not launched.exists()


@pytest.mark.fleet
def test_a_loss_is_proven_by_the_second_of_two_waves(tmp_path):
    git = repositories.init(tmp_path / "project")
    project = Project(git.root).workload("calm", NAP).workload("nap", NAP)
    project.suite("calm", "nap", settings=NAP_SETTINGS, device="cpu")
    git.commit(product_py=FAST)
    git.ask("switch", "--quiet", "--create", "branch")
    git.commit(product_py=SLOW)
    (tmp_path / "fleet.toml").write_text(FLEET)

    done = project.run(*RUN, "--shards", "2", "--against", "main", "--", "--no-explain")

    assert done.code == 1, done.err
    run = files.read(tmp_path / "fleet/run.json", Run)
    assert {session.unit for session in run.sessions} == {"pairs-1-of-2", "pairs-2-of-2"}
    assert {paired.workload for paired in run.paired if paired.pairs} == {"calm", "nap"}
    screens = [files.read(path, Run) for path in (tmp_path / "fleet/screen/runs").iterdir()]
    assert [run.paired for run in screens] == [(), ()]
    comparison = files.read(tmp_path / "fleet/comparison.json", Comparison)
    proven = {row.workload for row in comparison.rows if row.verdict is Verdict.REGRESSED}
    assert proven == {"calm", "nap"}


@pytest.mark.parametrize(
    ("arguments", "fleet", "message"),
    [
        ([], FLEET, "expected one of --plan and --shards"),
        (["--resume", "--plan", "p.json", "--shards", "1"], FLEET, "expected one of --plan and"),
        (["--resume"], FLEET, "of the fleet run to go on with, found none"),
        (["--plan", "p.json", "--against", "x"], FLEET, "--against: expected none with --plan"),
        (["--shards", "1", "a"], FLEET, "expected no workloads, found a; `ci-perf plan a` plans"),
        (["--shards", "1", "--", "--bogus"], FLEET, "No such option '--bogus'"),
        (["--shards", "1", "--", "--unit", "u"], FLEET, "--unit after --: expected none, as the"),
        (["--shards", "1", "--against", "x"], FLEET, "x: expected a branch, tag or commit of"),
        (["--shards", "1"], "[class.a]\nnodes = 0", "$.class.a.nodes: expected int >= 1, found 0"),
        (["--shards", "1", "--engine", "command"], FLEET, "expected a table [engine.command]"),
    ],
)
def test_what_fits_together_nowhere_is_refused_before_anything_runs(
    tmp_path, arguments, fleet, message
):
    project = a_project(tmp_path, fleet, a=None)

    done = project.run(*RUN, *arguments)

    assert done.code == 2
    assert message in done.err
    assert not (tmp_path / "fleet/journal.jsonl").exists()


def test_an_engine_that_is_not_there_is_a_sentence(tmp_path):
    project = a_project(tmp_path, a=None)

    done = project.run(*RUN, "--shards", "1", "--engine", "slurm", PATH="/nowhere")

    assert done.code == 3
    assert (
        "squeue: cannot be started: No such file or directory; is the engine's client" in done.err
    )
