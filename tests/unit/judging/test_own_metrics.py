"""Metrics of the user's own, judged as ours of the same kind."""

import pytest

from ci_perf.judging import gate_changes, suite_rules
from ci_perf.judging.policy import default_limits
from ci_perf.model.comparison import Verdict
from ci_perf.model.gate_change import GateKind
from ci_perf.model.suite import Limit, Limits
from tests.comparisons import verdicts_of
from tests.histories import a_pair, in_turns, judged, pairs
from tests.plans import a_plan
from tests.runs import STEADY, a_measured, a_run


def a_run_with(own):
    """A run of one workload whose launches have these numbers of the user's own."""
    return a_run(a_measured("a", *STEADY, metrics=own))


def paired(base, head):
    """Pairs of the same step time, each with own numbers of base and head."""
    launched = pairs(1.0, base={"metrics": base}, metrics=head)
    return in_turns(a_run_with(head), launched, workload="a")


@pytest.mark.parametrize(
    ("name", "base", "head", "verdict"),
    [
        ("time.ttft", 0.1, 0.12, Verdict.REGRESSED),
        ("time.ttft", 0.1, 0.08, Verdict.IMPROVED),
        ("time.ttft", 0.1, 0.1, Verdict.UNCHANGED),
        ("rate.tokens", 100, 80, Verdict.REGRESSED),
        ("bytes.cache", 1.0371e9, 1.1317e9, Verdict.REGRESSED),
        ("count.misses", 5, 6, Verdict.REGRESSED),
        ("score.f1", 0.8, 0.79, Verdict.REGRESSED),
        ("tail.p99", 0.1037, 0.2013, Verdict.REGRESSED),
    ],
)
def test_a_change_of_an_own_metric_is_found_in_its_direction(name, base, head, verdict):
    comparison = judged(a_run_with({name: base}), paired({name: base}, {name: head}))

    assert verdicts_of(comparison, "a")[name] is verdict
    # A tail is shown, and does not gate.
    (row,) = (row for row in comparison.rows if row.metric == name)
    assert row.gate is (name != "tail.p99")


def test_a_metric_that_the_head_has_lost_is_missing():
    comparison = judged(a_run_with({"time.ttft": 0.1}), a_run_with({}))

    assert verdicts_of(comparison, "a")["time.ttft"] is Verdict.FAILED


def test_a_metric_that_a_launch_lacks_is_absent_and_not_zero():
    own = {"count.n": 5}
    launched = [
        a_pair(1e-3, 1e-3, base={"metrics": own}, metrics=of_head) for of_head in ({}, *[own] * 17)
    ]
    comparison = judged(a_run_with(own), in_turns(a_run_with(own), launched, workload="a"))

    assert verdicts_of(comparison, "a")["count.n"] is Verdict.UNCHANGED


@pytest.mark.parametrize(
    ("of_base", "of_head", "counts"),
    [
        ({}, {"time.ttft": Limit(relative=0.5)}, 0.02),
        ({"time.ttft": Limit(relative=0.01)}, {}, 0.01),
    ],
    ids=["looser than that of its kind", "gone"],
)
def test_a_limit_of_its_own_that_is_looser_or_gone_is_told(of_base, of_head, counts):
    base, head = (
        a_plan("w", limits=Limits(default={**default_limits(), **own}))
        for own in (of_base, of_head)
    )

    (change,) = gate_changes.find(base, head)
    assert (change.kind, change.name) == (GateKind.LIMIT, "time.ttft")
    assert suite_rules.stricter(base.limits, head.limits).default["time.ttft"].relative == counts
