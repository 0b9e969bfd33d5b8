"""The baselines by which ci_perf judges its own pull requests: whole, and of its suites."""

from pathlib import Path

import pytest

from ci_perf import suite
from ci_perf.baselines import layout

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "baselines").glob("*/*/*.json"))


@pytest.mark.parametrize("name", ["self", "smoke"])
def test_every_workload_of_the_suite_has_three_sessions_of_a_quiet_machine(name):
    planned = suite.plan(ROOT / "workloads", name, root=ROOT).workloads
    recorded = {path.stem: layout.read(path) for path in FILES if path.parent.name == name}

    assert recorded.keys() == {workload.id for workload in planned}
    for workload in planned:
        baseline = recorded[workload.id]
        assert len(baseline.sessions) >= 3
        assert baseline.parameters == workload.parameters
        assert not any(session.source.dirty for session in baseline.sessions)


def test_all_of_them_are_of_one_machine():
    assert len({path.parents[1].name for path in FILES}) == 1
