"""What follows from the runs of a fleet: whose verdict counts, and which node was another one."""

import pytest

from ci_perf.fleet.controller import FleetResult
from ci_perf.gate import fleet
from ci_perf.gate.fleet import FleetVerdict
from ci_perf.system import files
from tests.comparisons import a_comparison
from tests.runs import CPU, GPU, a_run, an_environment
from tests.work_plans import a_unit


@pytest.mark.parametrize(
    ("codes", "exit_code"),
    [
        ({"h100": 0, "l4": 0}, 0),
        ({"h100": 0, "l4": 1}, 0),
        ({"h100": 3, "l4": 1}, 3),
        ({"h100": 3, "a100": 1}, 1),
        ({"h100": 0, "a100": 3}, 3),
    ],
)
def test_the_worst_of_the_classes_that_gate_is_the_exit_code(codes, exit_code):
    verdict = FleetVerdict(
        result=FleetResult(endings=(), runs={}),
        runs={},
        comparisons={name: a_comparison(exit_code=code) for name, code in codes.items()},
        gating=frozenset({"h100", "a100"}),
    )

    assert verdict.exit_code == exit_code


def test_a_unit_of_another_machine_than_most_of_its_class_is_named(tmp_path):
    machines = {"a": CPU, "b": GPU, "c": CPU, "d": GPU}
    units = {
        name: a_unit(name, id=name, machine_class="gpu" if name == "d" else "cpu")
        for name in machines
    }
    runs = {name: tmp_path / f"{name}.json" for name in machines}
    for name, machine in machines.items():
        files.write(runs[name], a_run(environment=an_environment(hard=machine)))

    strangers = fleet._strangers(units, runs)

    assert list(strangers) == ["b"]
    assert "expected CpuMachine" in strangers["b"]
    assert "found GpuMachine" in strangers["b"]
