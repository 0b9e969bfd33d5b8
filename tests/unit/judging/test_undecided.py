"""Which workloads another pair may decide, and in which order."""

import pytest

from ci_perf.judging import decide
from ci_perf.judging.candidates import Candidate, Costs
from ci_perf.judging.metric_values import History
from ci_perf.judging.policy import LOOKS
from ci_perf.model.metrics import STEP_TIME
from ci_perf.model.suite import Limit, Limits
from tests.confirmations import TIME
from tests.histories import HISTORY, SLOWER, a_head, in_turns, pairs, undecided
from tests.runs import STEADY, a_measured, a_run


def test_who_is_cleared_is_launched_no_more():
    assert undecided(HISTORY, a_head()) == ((), 0)
    assert undecided(HISTORY, a_head(SLOWER)) == (("w",), 1)


@pytest.mark.parametrize(("count", "left"), [(5, ("w",)), (6, ())])
def test_pairs_are_launched_until_they_decide(count, left):
    assert undecided(HISTORY, in_turns(a_head(SLOWER), pairs(1.1, count=count)))[0] == left


def test_the_last_look_ends_it():
    wild = in_turns(a_head(SLOWER), pairs(1.015, spread=0.3))

    assert undecided(HISTORY, wild)[0] == ()


def test_a_metric_without_a_gate_is_never_worth_a_launch():
    limits = Limits(default={"step_time_s": Limit(relative=0.02, gate=False)})

    assert undecided(HISTORY, a_head(SLOWER), limits) == ((), 0)


def test_the_workload_that_lies_furthest_beyond_its_limit_comes_first():
    """By limits and not by percents: what a suite allows is no loss."""
    strict, loose = Limit(relative=0.01), Limit(relative=0.1)
    limits = Limits(
        default={}, workloads={"strict": {"step_time_s": strict}, "loose": {"step_time_s": loose}}
    )

    def slower_by(ratio):
        slower = tuple(ratio * step_s for step_s in STEADY)
        return a_run(a_measured("strict", *SLOWER), a_measured("loose", *slower))

    base = a_run(a_measured("strict", *STEADY), a_measured("loose", *STEADY))
    assert undecided([base], slower_by(1.5), limits)[0] == ("strict", "loose")
    assert undecided([base], slower_by(3.0), limits)[0] == ("loose", "strict")


def test_what_is_not_measured_in_pairs_keeps_nobody_waiting():
    """Scaling efficiency needs the single process of the same turn."""
    limits = Limits(default={"scaling_efficiency": Limit(relative=0.02)})
    head = a_run(
        a_measured("w.world_size=1", *STEADY, parameters={"world_size": 1}),
        a_measured("w.world_size=2", *SLOWER, parameters={"world_size": 2}, items_per_step=16.0),
    )
    beside = in_turns(head, pairs(1.0, count=1), workload="w.world_size=2")

    assert undecided([], head, limits)[0] == ("w.world_size=2",)
    assert undecided([], beside, limits)[0] == ()


@pytest.mark.parametrize(
    ("tick", "turns", "said"),
    [
        # Exact numbers prove this loss at the sixth pair, rounded ones at the ninth.
        (0.0, [0.027, 0.023] * 2, ("spread", 2)),
        (0.01, [0.027, 0.023] * 2, ("spread", 5)),
        (0.01, [0.027, 0.023] * 3, ("rounded", 3)),
        # Exact ones clear it at the last look, or never.
        (0.012, [0.022, 0.002] * 9, ("rounded", 0)),
        (0.012, [0.04, -0.01] * 9, ("two_modes", 0)),
    ],
)
def test_rounded_numbers_need_more_pairs_and_are_named_where_exact_ones_would_have_decided(
    tick, turns, said
):
    rounded = Candidate(
        workload="w",
        metric=STEP_TIME,
        limit=Limit(relative=0.02),
        history=None,
        head=(),
        tick=tick,
    )

    (judgement,) = decide.decide(
        [
            Costs(
                of=rounded,
                policy=TIME,
                history=None,
                head=(),
                pairs=[(0.0, each) for each in turns],
            )
        ]
    )

    assert (judgement.row.code.value, judgement.expected_pairs) == said


def test_what_only_its_history_suspects_is_expected_to_need_the_pairs_of_an_alarm():
    before = Candidate(
        workload="w",
        metric=STEP_TIME,
        limit=Limit(relative=0.02),
        history=History(current=[[1.0, 1.001]] * 5),
        head=(1.1, 1.1),
    )

    (judgement,) = decide.decide([before.as_costs()])

    assert (judgement.row.code.value, judgement.expected_pairs) == ("history_alone", LOOKS[0])
