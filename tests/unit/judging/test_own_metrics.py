"""Metrics of the user's own, judged as ours of the same kind."""

import msgspec
import pytest

from ci_perf.judging import gate_changes, suite_rules
from ci_perf.judging.policy import default_limits
from ci_perf.model.comparison import Verdict
from ci_perf.model.gate_change import GateKind
from ci_perf.model.suite import Limit, Limits
from tests.comparisons import verdicts_of
from tests.histories import in_turns, judged, pairs
from tests.plans import a_plan
from tests.runs import STEADY, a_measured, a_run


def a_run_with(**own):
    """A run of one workload whose launches have these numbers of the user's own."""
    run = a_run(a_measured("a", *STEADY))
    return with_own(run, **own)


def with_own(run, **own):
    numbers = {name.replace("__", "."): value for name, value in own.items()}
    measured = tuple(
        msgspec.structs.replace(
            each,
            processes=tuple(
                msgspec.structs.replace(process, metrics=numbers) for process in each.processes
            ),
        )
        for each in run.measured
    )
    return msgspec.structs.replace(run, measured=measured)


def paired(base, head):
    """Pairs of the same step time, each with own numbers of base and head."""
    run = in_turns(a_run_with(**head), pairs(1.0), workload="a")
    own = [
        {name.replace("__", "."): value for name, value in side.items()} for side in (base, head)
    ]
    workload = msgspec.structs.replace(
        run.paired[0],
        pairs=tuple(
            msgspec.structs.replace(
                pair,
                base=msgspec.structs.replace(pair.base, metrics=own[0]),
                head=msgspec.structs.replace(pair.head, metrics=own[1]),
            )
            for pair in run.paired[0].pairs
        ),
    )
    return msgspec.structs.replace(run, paired=(workload,))


@pytest.mark.parametrize(
    ("name", "base", "head", "verdict"),
    [
        ("time__ttft", 0.1, 0.12, Verdict.REGRESSED),
        ("time__ttft", 0.1, 0.08, Verdict.IMPROVED),
        ("time__ttft", 0.1, 0.1, Verdict.UNCHANGED),
        ("rate__tokens", 100, 80, Verdict.REGRESSED),
        ("rate__tokens", 100, 120, Verdict.IMPROVED),
        ("bytes__cache", 1.0371e9, 1.1317e9, Verdict.REGRESSED),
        ("count__misses", 5, 6, Verdict.REGRESSED),
        ("score__f1", 0.8, 0.79, Verdict.REGRESSED),
        ("score__f1", 0.8, 0.81, Verdict.IMPROVED),
        ("tail__p99", 0.1037, 0.2013, Verdict.REGRESSED),
    ],
)
def test_a_change_of_an_own_metric_is_found_in_its_direction(name, base, head, verdict):
    comparison = judged(a_run_with(**{name: base}), paired({name: base}, {name: head}))

    assert verdicts_of(comparison, "a")[name.replace("__", ".")] is verdict


def test_a_tail_shows_and_does_not_gate():
    comparison = judged(a_run_with(tail__p99=0.1), paired({"tail__p99": 0.1}, {"tail__p99": 0.2}))

    (row,) = (row for row in comparison.rows if row.metric == "tail.p99")
    assert not row.gate


def test_a_metric_that_the_head_has_lost_is_missing():
    comparison = judged(a_run_with(time__ttft=0.1), a_run_with())

    assert verdicts_of(comparison, "a")["time.ttft"] is Verdict.FAILED


def test_a_metric_that_a_launch_lacks_is_absent_and_not_zero():
    head = paired({"count__n": 5}, {"count__n": 5})
    first, *others = head.paired[0].pairs
    without = msgspec.structs.replace(first, head=msgspec.structs.replace(first.head, metrics={}))
    workload = msgspec.structs.replace(head.paired[0], pairs=(without, *others))
    comparison = judged(a_run_with(count__n=5), msgspec.structs.replace(head, paired=(workload,)))

    assert verdicts_of(comparison, "a")["count.n"] is Verdict.UNCHANGED


LOOSE = {"time.ttft": Limit(relative=0.5)}


def test_a_limit_of_its_own_that_is_looser_than_that_of_its_kind_is_told():
    base, head = (
        a_plan("w", limits=Limits(default={**default_limits(), **own})) for own in ({}, LOOSE)
    )

    (change,) = gate_changes.find(base, head)
    assert (change.kind, change.name) == (GateKind.LIMIT, "time.ttft")
    assert suite_rules.stricter(base.limits, head.limits).default["time.ttft"].relative == 0.02


def test_a_limit_of_its_own_that_is_gone_is_told_where_that_of_its_kind_is_looser():
    tight = {"time.ttft": Limit(relative=0.01)}
    base, head = (
        a_plan("w", limits=Limits(default={**default_limits(), **own})) for own in (tight, {})
    )

    (change,) = gate_changes.find(base, head)
    assert (change.kind, change.name) == (GateKind.LIMIT, "time.ttft")
    assert change.after == default_limits()["time"]
