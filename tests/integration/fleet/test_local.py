"""The slots of this machine, with real processes: what behaves badly, and what is interrupted."""

import json
import os
import signal

import pytest

from ci_perf.fleet.settings import FleetRules
from ci_perf.model.fleet import Expectation, FleetFile, NodeClass
from ci_perf.model.shards import WorkUnit
from ci_perf.system import files, processes
from tests.fleets import a_task, attempts, kinds, pids, run_fleet, start_controller
from tests.processes import is_alive, wait_until
from tests.runs import an_environment, some_canaries

REASONS = {
    "crash": "its command was killed by signal 9 and left no run",
    "refuse": "its command ended with exit code 1 and left no run: error: no such suite",
    "garbage": "its result is refused: run.json: expected a JSON document",
    "nan": "its result is refused: run.json: expected a JSON document",
    "huge": "its result is refused: run.json: expected at most 52428800 bytes, found more",
    "link": "its result is refused: run.json: cannot be read",
    "pipe": "its result is refused: run.json: expected a regular file",
    "foreign": "receipt.json: expected that of this attempt, found another's",
    "vanish": "2 attempts on ",
    "quit_early": "2 attempts on ",
    "refuse_node": "2 attempts on ",
}
LOST = {"vanish", "quit_early"}


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """Every way to behave badly in one fleet run, beside units that behave well."""
    folder = tmp_path_factory.mktemp("fleet")
    names = ["good", "vanish_once", "refuse_node_once", *REASONS]
    os.environ["A_TOKEN_OF_SOMEBODY"] = "secret"
    try:
        tasks = [a_task(name, name, folder=folder) for name in names]
        result, lines = run_fleet(folder, tasks, nodes=4)
    finally:
        del os.environ["A_TOKEN_OF_SOMEBODY"]
    return folder, {ending.unit: ending for ending in result.endings}, lines


def test_a_unit_that_behaves_well_is_measured_whatever_the_others_do(ended):
    _, endings, _ = ended

    assert endings["good"].kind == "measured"
    assert endings["good"].attempts == 1


@pytest.mark.parametrize("name", REASONS)
def test_a_unit_that_behaves_badly_has_one_ending_with_a_reason(ended, name):
    _, endings, _ = ended

    assert endings[name].kind == ("lost" if name in LOST else "failed")
    assert endings[name].reason.startswith(REASONS[name])


def test_a_unit_whose_node_was_lost_is_measured_on_another(ended):
    folder, endings, lines = ended

    assert endings["vanish_once"].kind == "measured"
    first, second = endings["vanish_once"].nodes
    assert first != second
    assert len(attempts(folder)["vanish_once"]) == 2
    assert any("vanish_once: its job came to no end of its own on cpu-" in line for line in lines)


def test_a_unit_that_hangs_is_cancelled_here_and_there_and_fails(tmp_path):
    rules = FleetRules(overrun_least_s=1.0, overrun_factor=1.0)

    result, _ = run_fleet(tmp_path, [a_task("u", "hang", folder=tmp_path)], rules=rules)

    (ending,) = result.endings
    assert ending.kind == "failed"
    assert set(ending.nodes) == {"cpu-0", "cpu-1"}
    assert "ran for more than 1 s on cpu-" in ending.reason
    assert [pid for pid in pids(tmp_path) if is_alive(pid)] == []


def test_an_attempt_of_every_unit_is_over(ended):
    folder, _, _ = ended

    assert len(pids(folder)) >= len(REASONS) + 2
    assert [pid for pid in pids(folder) if is_alive(pid)] == []


def test_a_unit_is_given_no_variable_that_nobody_has_named(ended):
    folder, _, _ = ended
    (attempt,) = attempts(folder)["good"]
    given = json.loads((attempt / "environment.json").read_text())

    assert "PATH" in given
    assert "A_TOKEN_OF_SOMEBODY" not in given
    assert not [n for n in given if any(w in n for w in ("TOKEN", "SECRET", "KUBE", "GITHUB"))]


def test_a_unit_is_given_what_the_owner_has_named(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_PLACES", "cores")
    fleet = FleetFile(
        classes={"cpu": NodeClass(select="5,7", nodes=2)}, environment=("OMP_PLACES",)
    )

    run_fleet(tmp_path, [a_task("u", folder=tmp_path)], fleet=fleet)

    (attempt,) = attempts(tmp_path)["u"]
    given = json.loads((attempt / "environment.json").read_text())
    assert (given["OMP_PLACES"], given["CUDA_VISIBLE_DEVICES"]) == ("cores", "5")


def test_a_node_of_another_class_is_avoided_and_then_the_unit_fails(tmp_path):
    expect = Expectation(device="cuda", gpu_model="NVIDIA H100 80GB HBM3")
    fleet = FleetFile(classes={"cpu": NodeClass(expect=expect, nodes=2)})

    result, lines = run_fleet(tmp_path, [a_task("u", folder=tmp_path)], fleet=fleet)

    (ending,) = result.endings
    assert ending.kind == "failed"
    assert set(ending.nodes) == {"cpu-0", "cpu-1"}
    assert "device: expected 'cuda', found 'cpu'" in ending.reason
    assert any("it is submitted again" in line for line in lines)


def test_a_node_that_refuses_a_unit_is_avoided_and_another_one_measures_it(ended):
    folder, endings, lines = ended

    assert endings["refuse_node_once"].kind == "measured"
    first, second = endings["refuse_node_once"].nodes
    assert first != second
    assert len(attempts(folder)["refuse_node_once"]) == 2
    assert any("node is not of its class: cpu_model: expected 'x', fo" in line for line in lines)


def test_a_unit_that_every_node_refuses_says_so(ended):
    _, endings, _ = ended
    reason = endings["refuse_node"].reason

    assert reason.startswith("2 attempts on cpu-")
    assert ", none of them of its class; the last one: the node is not of its class: cpu_" in reason


def test_three_nodes_say_how_slow_a_fourth_may_be_and_the_last_one_that_is_tried_may_be_slow(
    tmp_path,
):
    fleet = FleetFile(classes={"cpu": NodeClass(expect=Expectation(device="cpu"))})
    tasks = [
        a_task(
            f"u{number}",
            "refuse_node_once" if letter == "d" else "measure",
            folder=tmp_path,
            environment=an_environment(node=letter * 12),
            canaries=some_canaries(),
        )
        for number, letter in enumerate("abcd")
    ]

    result, _ = run_fleet(tmp_path, tasks, fleet=fleet)

    assert kinds(result)["u3"] == "measured"
    told = [
        files.read(path / "unit.json", WorkUnit).node
        for path in sorted(
            (path for task in tasks for path in attempts(tmp_path)[task.id]),
            key=lambda path: (path.parent.name, path.name),
        )
    ]
    assert [check.expect.device for check in told] == ["cpu"] * 5
    assert [len(check.bounds) for check in told] == [0, 0, 0, 1, 0]
    ((name, bound),) = told[3].bounds[0].canaries.items()
    assert (name, bound.sessions) == ("matmul", 3)
    assert bound.most_s == pytest.approx(1.25 * bound.usual_s)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"commit": "0" * 40}, "expected commit 'd4e5"),
        ({"suite": "standard"}, "expected suite 'smoke', as in the plan, found 'standard'"),
        ({"unit": "v"}, "expected a unit of the plan (u), found 'v'"),
        ({"workloads": ("conv",)}, "found none for matmul"),
        ({"workloads": ("matmul", "conv")}, "found 'conv', which is not one"),
    ],
)
def test_the_run_of_something_else_is_refused(tmp_path, other, why):
    result, _ = run_fleet(tmp_path, [a_task("u", folder=tmp_path, **other)])

    (ending,) = result.endings
    assert ending.kind == "failed"
    assert why in ending.reason


def test_an_interrupt_leaves_no_process_and_a_partial_result(tmp_path):
    controller = start_controller(tmp_path, ["a=measure:0", "b=hang:0", "c=hang:0", "d=hang:0"])
    runs = tmp_path / "fleet/runs/a.json"
    wait_until(lambda: runs.exists() and len([p for p in pids(tmp_path) if is_alive(p)]) == 2)
    below = [process.pid for process in processes.below(controller.pid)]

    os.killpg(controller.pid, signal.SIGINT)
    said = json.loads(controller.communicate()[0])

    assert controller.returncode == 130
    assert said["endings"] == {"a": "measured", **dict.fromkeys("bcd", "cancelled")}
    assert [pid for pid in [*below, *pids(tmp_path)] if is_alive(pid)] == []
    assert json.loads((tmp_path / "fleet/endings.json").read_text())["endings"]


def test_a_killed_controller_leaves_no_process_and_its_fleet_run_goes_on(tmp_path):
    units = ["a=measure:0", "b=hang:0", "c=hang:0"]
    controller = start_controller(tmp_path, units)
    runs = tmp_path / "fleet/runs/a.json"
    wait_until(lambda: runs.exists() and len([p for p in pids(tmp_path) if is_alive(p)]) == 2)
    begun = pids(tmp_path)
    below = [process.pid for process in processes.below(controller.pid)]

    controller.kill()
    controller.communicate()
    wait_until(lambda: not any(is_alive(pid) for pid in [*below, *begun]))

    # What b and c do is no part of the plan that a controller goes on with.
    again = start_controller(tmp_path, [*units[:1], "b=measure:0", "c=measure:0"], resume=True)
    said = json.loads(again.communicate()[0])

    assert again.returncode == 0
    assert said["endings"] == dict.fromkeys("abc", "measured")
    assert len(attempts(tmp_path)["a"]) == 1, "what had an ending was measured again"
    # The node was not to blame, so it was the first attempt still.
    assert sorted(path.name[0] for path in attempts(tmp_path)["b"]) == ["1", "1"]
