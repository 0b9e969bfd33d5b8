"""A real Slurm of two nodes: what behaves badly, what is lost, and what is interrupted.

The first test is for every day; the others take a minute together: `pytest -m fleet`.
"""

import json
import signal

import pytest

from ci_perf.fleet.settings import FleetRules
from ci_perf.model.comparison import Comparison, Verdict
from ci_perf.model.fleet import EngineTables, FleetFile, NodeClass, SlurmTable
from ci_perf.model.run import Run
from ci_perf.system import files
from tests import repositories
from tests.fleets import a_task, attempts, kinds, pids, run_fleet, start_controller
from tests.processes import is_alive, wait_until
from tests.projects import FAST, NAP, NAP_SETTINGS, SLOW, Project
from tests.slurm import NODES


def a_fleet(*options):
    return FleetFile(
        engine=EngineTables(slurm=SlurmTable(options=("--partition=gpu", *options))),
        classes={"cpu": NodeClass(select="gpu:1", nodes=2)},
        environment=("SLURM_CONF",),
    )


def run_on(folder, *tasks, rules=None, options=()):
    more = {} if rules is None else {"rules": rules}
    return run_fleet(folder, tasks, engine="slurm", fleet=a_fleet(*options), poll_s=0.3, **more)


def running(folder):
    return [pid for pid in pids(folder) if is_alive(pid)]


def test_units_are_measured_on_slurm_and_given_no_credential(cluster, tmp_path, monkeypatch):
    monkeypatch.setenv("A_TOKEN_OF_SOMEBODY", "secret")
    names = {"good": "measure", "garbage": "garbage"}

    result, _ = run_on(
        tmp_path, *(a_task(unit, what, folder=tmp_path) for unit, what in names.items())
    )

    assert kinds(result) == {"good": "measured", "garbage": "failed"}
    assert cluster.queue() == []
    (attempt,) = attempts(tmp_path)["good"]
    given = json.loads((attempt / "environment.json").read_text())
    assert "PATH" in given
    assert "A_TOKEN_OF_SOMEBODY" not in given


@pytest.mark.fleet
def test_whatever_a_unit_leaves_is_refused_with_a_reason(cluster, tmp_path):
    behaviours = ["crash", "refuse", "nan", "huge", "link", "pipe", "foreign", "vanish"]
    names = [*behaviours, "vanish_once"]

    result, _ = run_on(tmp_path, *(a_task(name, name, folder=tmp_path) for name in names))

    assert kinds(result) == {
        **dict.fromkeys(behaviours, "failed"),
        "vanish": "lost",
        "vanish_once": "measured",
    }
    *failed, lost_once = result.endings
    assert all(ending.reason for ending in failed)
    assert set(lost_once.nodes) == set(NODES)
    assert cluster.queue() == []
    assert running(tmp_path) == []


@pytest.mark.fleet
def test_a_unit_that_hangs_is_cancelled_on_both_nodes(cluster, tmp_path):
    rules = FleetRules(overrun_least_s=2.0, overrun_factor=1.0)

    result, _ = run_on(tmp_path, a_task("u", "hang", folder=tmp_path), rules=rules)

    (ending,) = result.endings
    assert ending.kind == "failed"
    assert set(ending.nodes) == set(NODES)
    wait_until(lambda: cluster.queue() == [])
    assert running(tmp_path) == []


@pytest.mark.fleet
def test_what_slurm_refuses_has_its_words(cluster, tmp_path):
    result, _ = run_on(tmp_path, a_task("u", folder=tmp_path), options=["--partition=nope"])

    (ending,) = result.endings
    assert ending.kind == "failed"
    assert "the engine refuses it: sbatch: exit code 1: " in ending.reason
    assert "invalid partition specified: nope" in ending.reason
    assert cluster.queue() == []


@pytest.mark.fleet
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_job_and_no_process(cluster, tmp_path, number):
    units = [f"u{i}=hang:0" for i in range(4)]
    controller = start_controller(tmp_path, units, engine="slurm", fleet=a_fleet())
    wait_until(lambda: len(running(tmp_path)) == 2)

    controller.send_signal(number)
    said = json.loads(controller.communicate()[0])

    # The controller has asked until the queue was empty.
    assert controller.returncode == 130
    assert set(said["endings"].values()) == {"cancelled"}
    assert cluster.queue() == []
    assert running(tmp_path) == []


@pytest.mark.fleet
def test_what_runs_while_nobody_controls_it_is_taken_as_it_is(cluster, tmp_path):
    units = ["a=measure:6", "b=measure:6", "c=measure:0"]
    controller = start_controller(tmp_path, units, engine="slurm", fleet=a_fleet())
    wait_until(lambda: len(running(tmp_path)) == 2)

    controller.kill()
    controller.communicate()
    again = start_controller(tmp_path, units, engine="slurm", fleet=a_fleet(), resume=True)
    said = json.loads(again.communicate()[0])

    assert again.returncode == 0
    assert said["endings"] == dict.fromkeys("abc", "measured")
    # Slurm kept them: none was measured a second time.
    assert [len(folders) for folders in attempts(tmp_path).values()] == [1, 1, 1]
    assert cluster.queue() == []


@pytest.mark.fleet
def test_units_of_a_node_that_dies_are_measured_on_the_other(cluster, tmp_path):
    fleet = a_fleet()
    units = [f"u{i}=measure:4" for i in range(3)]
    controller = start_controller(tmp_path, units, engine="slurm", fleet=fleet)
    wait_until(lambda: len(running(tmp_path)) == 2)
    try:
        cluster.loses("n1")
        said = json.loads(controller.communicate()[0])
    finally:
        cluster.start_node("n1")
        cluster.wait_until_idle()

    assert controller.returncode == 0
    assert said["endings"] == dict.fromkeys(["u0", "u1", "u2"], "measured")
    assert any("came to no end of its own on n1" in line for line in said["lines"])
    assert sum(len(folders) for folders in attempts(tmp_path).values()) == 4
    assert cluster.queue() == []


@pytest.mark.fleet
def test_a_regression_is_proven_by_pairs_on_the_nodes_of_slurm(cluster, tmp_path):
    git = repositories.init(tmp_path / "project")
    project = Project(git.root)
    for name in "ab":
        project.workload(name, NAP)
    project.suite(*"ab", settings=NAP_SETTINGS, extra='python_path = ["."]', device="cpu")
    (git.root / "product.py").write_text(FAST)
    git.commit()
    git.ask("switch", "-q", "-c", "change")
    (git.root / "product.py").write_text(SLOW)
    git.commit()
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(
        'environment = ["SLURM_CONF", "CI_PERF_RUN_WAIT", "CI_PERF_RUN_RECORD"]\n'
        "[class.cpu]\nselect = 'gpu:1'\nnodes = 2\n"
    )

    done = project.run(
        *("fleet", "run", "--engine", "slurm", "--nodes", fleet, "--shards", "2"),
        *("--against", "main", "--budget", "2m", "-o", tmp_path / "out", "--", "--no-explain"),
    )

    assert done.code == 1, done.err
    comparison = files.read(tmp_path / "out/comparison.json", Comparison)
    worse = {row.workload for row in comparison.rows if row.verdict is Verdict.REGRESSED}
    assert worse == {"a", "b"}
    # Base and head of a workload met on one node.
    run = files.read(tmp_path / "out/run.json", Run)
    assert sorted(s.unit for s in run.merged_from) == ["pairs-1-of-2", "pairs-2-of-2"]
    assert cluster.queue() == []

    found = project.run(
        *("bisect", "main", "change", "a", "--engine", "slurm", "--nodes", fleet, "--wait", "0s"),
        *("--fleet-output", tmp_path / "bisect", "-o", tmp_path / "found.txt"),
    )

    assert found.code == 0, found.err
    assert git.worktrees() == [str(git.root)], "a node has left what it checked out"
    assert cluster.queue() == []
