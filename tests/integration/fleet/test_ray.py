"""A real Ray of two nodes: what is measured, what is lost, and what is interrupted.

The first test is for every day; the others take a minute or two together: `pytest -m fleet`.
"""

import contextlib
import json
import signal
import socket
import subprocess
import sys

import pytest

from ci_perf.model.comparison import Comparison, Verdict
from ci_perf.model.fleet import EngineTables, FleetFile, NodeClass, RayTable
from ci_perf.model.run import Run
from ci_perf.system import files
from tests import ray_cluster, repositories
from tests.fleets import a_task, start_controller
from tests.processes import is_alive, wait_until
from tests.projects import FAST, NAP, NAP_SETTINGS, SLOW, Project


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    notes = tmp_path_factory.mktemp("ray") / "notes"
    notes.mkdir()
    given = {"FLEET_UNIT_NOTES": str(notes), "A_TOKEN_OF_SOMEBODY": "secret"}
    with ray_cluster.running(given) as running:
        running.notes = notes
        yield running


@pytest.fixture
def project(cluster, tmp_path):
    """A checkout to send, in which units find what they return."""
    for path in cluster.notes.iterdir():
        path.unlink()
    (cluster.notes.parent / "vanished").unlink(missing_ok=True)
    return repositories.init(tmp_path / "project")


def a_fleet(cluster, python="", **more):
    return FleetFile(
        engine=EngineTables(ray=RayTable(address=cluster.address, python=python)),
        classes={"cpu": NodeClass(**{"select": "CPU", "nodes": 2, **more})},
        environment=("FLEET_UNIT_NOTES",),
    )


def start(cluster, project, *units, fleet=None, **how):
    """Start a controller for units, whose runs are committed: nodes are sent nothing else."""
    for unit in units:
        a_task(unit.partition("=")[0], folder=project.root)
    if "resume" not in how:
        project.commit()
    fleet = fleet or a_fleet(cluster)
    return start_controller(project.root, units, engine="ray", fleet=fleet, **how)


def said_by(controller):
    return json.loads(controller.communicate()[0])


def begun(cluster):
    """Return the processes of all units that have begun."""
    with contextlib.suppress(FileNotFoundError):
        return [int(line) for line in (cluster.notes / "pids").read_text().split()]
    return []


def running(cluster):
    return [pid for pid in begun(cluster) if is_alive(pid)]


def test_units_are_measured_on_ray_and_given_no_credential(cluster, project):
    units = ["good=measure:0", "garbage=garbage:0", "lost=vanish_once:0"]

    said = said_by(start(cluster, project, *units))

    endings = {"good": "measured", "garbage": "failed", "lost": "measured"}
    assert said["endings"] == endings, said["lines"]
    assert running(cluster) == []
    given = json.loads((cluster.notes / "environment.json").read_text())
    assert "PATH" in given
    assert "A_TOKEN_OF_SOMEBODY" not in given
    # What was lost was measured on the other node.
    runs = json.loads((project.root / "fleet/endings.json").read_text())["endings"]
    assert {*next(each["nodes"] for each in runs if each["unit"] == "lost")} == {"n1", "n2"}


ASKING = """
import pathlib, signal, sys
from ci_perf.errors import EngineError
from ci_perf.fleet.ray import RayEngine
from ci_perf.model.fleet import RayTable
engine = RayEngine(RayTable(address=sys.argv[1]), python="", root=pathlib.Path())
try:
    engine.poll([])
except EngineError as error:
    print(error)
is_ours = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
print("while it is asked, this goes to stderr")
engine.close()
print(is_ours)
"""


def asked(address):
    asking = [sys.executable, "-c", ASKING, address]
    return subprocess.run(asking, check=True, capture_output=True, text=True).stdout.splitlines()


def test_a_head_that_does_not_answer_is_named_at_once():
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{nobody_listens.getsockname()[1]}"

        said, *_ = asked(address)

    assert said.startswith(f"Ray at '{address}': expected a cluster of Ray 2.")
    assert "found: [Errno 111] Connection refused" in said


@pytest.mark.fleet
def test_signals_and_stdout_are_ours_after_ray_was_asked(cluster):
    assert asked(cluster.address) == ["True"]


@pytest.mark.fleet
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_no_task_and_no_process(cluster, project, number):
    controller = start(cluster, project, *(f"u{i}=hang:0" for i in range(4)))
    wait_until(lambda: len(running(cluster)) == 2)

    controller.send_signal(number)
    said = said_by(controller)

    assert controller.returncode == 130
    assert set(said["endings"].values()) == {"cancelled"}
    assert len(begun(cluster)) == 2
    assert running(cluster) == []


@pytest.mark.fleet
def test_a_killed_controller_leaves_no_process_and_its_fleet_run_goes_on(cluster, project):
    controller = start(cluster, project, "a=hang:0", "b=hang:0")
    wait_until(lambda: len(running(cluster)) == 2)

    controller.kill()
    controller.communicate()
    wait_until(lambda: running(cluster) == [])
    said = said_by(start(cluster, project, "a=measure:0", "b=measure:0", resume=True))

    assert said["endings"] == dict.fromkeys("ab", "measured")


@pytest.mark.fleet
def test_a_unit_that_hangs_is_cancelled_on_both_nodes(cluster, project):
    said = said_by(start(cluster, project, "u=hang:0", overrun_s=2))

    assert said["endings"] == {"u": "failed"}
    assert "was cancelled" in said["lines"][-1]
    assert len(begun(cluster)) == 2
    assert running(cluster) == []


@pytest.mark.fleet
@pytest.mark.parametrize(
    ("select", "python", "kind", "why"),
    [
        (
            "CPU:0.5",
            "",
            "failed",
            "expected all of a node, on which a unit is alone, found 'CPU:0.5'",
        ),
        ("CPU", "/nowhere/python", "lost", "No such file or directory: '/nowhere/python'"),
    ],
)
def test_what_no_node_of_ray_has_is_said(cluster, project, select, python, kind, why):
    fleet = a_fleet(cluster, python=python, select=select)

    said = said_by(start(cluster, project, "u=measure:0", fleet=fleet))

    assert said["endings"] == {"u": kind}
    assert why in said["lines"][-1]


@pytest.mark.fleet
@pytest.mark.parametrize("what", ["node", "raylet"])
def test_units_of_a_node_that_dies_are_measured_on_the_other(project, tmp_path, what):
    notes = tmp_path / "notes"
    notes.mkdir()
    with ray_cluster.running({"FLEET_UNIT_NOTES": str(notes)}) as mortal:
        mortal.notes = notes
        controller = start(mortal, project, *(f"u{i}=wait:0" for i in range(3)))
        wait_until(lambda: len(running(mortal)) == 2)
        mortal.loses(f"{what} n2")
        # A worker that outlives its raylet could still return a result.
        journal = project.root / "fleet/journal.jsonl"
        wait_until(lambda: "requeued" in journal.read_text())
        (tmp_path / "go").touch()
        said = said_by(controller)

    assert controller.returncode == 0
    assert said["endings"] == dict.fromkeys(["u0", "u1", "u2"], "measured")
    assert any("came to no end of its own on n2 (its node died)" in line for line in said["lines"])
    assert len(begun(mortal)) == 4
    assert running(mortal) == []


@pytest.mark.fleet
def test_a_regression_is_proven_by_pairs_on_nodes_that_share_no_folder(cluster, project, tmp_path):
    product = Project(project.root)
    for name in "ab":
        product.workload(name, NAP)
    product.suite(*"ab", settings=NAP_SETTINGS, extra='python_path = ["."]', device="cpu")
    (project.root / "product.py").write_text(FAST)
    project.commit()
    project.ask("switch", "-q", "-c", "change")
    (project.root / "product.py").write_text(SLOW)
    project.commit()
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(
        'environment = ["CI_PERF_RUN_WAIT", "CI_PERF_RUN_RECORD"]\n'
        f"[engine.ray]\naddress = '{cluster.address}'\n[class.cpu]\nselect = 'CPU'\nnodes = 2\n"
    )

    done = product.run(
        *("fleet", "run", "--engine", "ray", "--nodes", fleet, "--shards", "2"),
        *("--against", "main", "--budget", "2m", "-o", tmp_path / "out", "--", "--no-explain"),
    )

    assert done.code == 1, done.err
    comparison = files.read(tmp_path / "out/comparison.json", Comparison)
    worse = {row.workload for row in comparison.rows if row.verdict is Verdict.REGRESSED}
    assert worse == {"a", "b"}
    assert project.worktrees() == [str(project.root)]
    run = files.read(tmp_path / "out/run.json", Run)
    assert sorted(session.unit for session in run.merged_from) == ["pairs-1-of-2", "pairs-2-of-2"]
