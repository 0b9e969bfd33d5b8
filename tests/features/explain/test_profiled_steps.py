"""What profiled pairs say by themselves: whether their steps differ, and shares of that."""

import msgspec
import pytest

from ci_perf.features.explain import explain
from ci_perf.features.explain.model import (
    Allocation,
    MemoryUse,
    ProfiledPair,
    ProfiledPairs,
)
from tests.features.explain.cause_rows import STEP_S, left, shown, step
from tests.features.explain.step_profiles import a_function, a_use, timed_pairs

ADDED = a_use("aten::sin", 4, "added", call_s=2e-3)


def explained(profiled):
    answer = explain.explain_pairs(profiled)
    return answer.step, answer.explanation


def pairs_of(*steps, head=ADDED):
    """One pair for each base and head."""
    return ProfiledPairs(
        workload="w",
        pairs=tuple(
            ProfiledPair(base=step(step_s=base_s), head=step(head, step_s=head_s))
            for base_s, head_s in steps
        ),
    )


def test_causes_have_shares_of_the_change_of_their_own_steps():
    change, explanation = explained(timed_pairs(step(), step(ADDED, step_s=1.1 * STEP_S)))

    assert (change.pairs, change.is_resolved) == (3, True)
    assert change.ratio == pytest.approx(1.1)
    (cause,) = explanation.causes
    assert cause.share.share == pytest.approx(0.8, rel=0.02)


def test_pairs_that_disagree_prove_no_change_and_give_no_shares():
    change, explanation = explained(pairs_of((0.1, 0.11), (0.1, 0.1), (0.1, 0.1)))

    assert change.interval.low < 1 < change.interval.high
    assert [cause.share for cause in explanation.causes] == [None]


@pytest.mark.parametrize(
    "steps",
    [
        [(0.1, 0.11), (0.1, 0.11)],
        [(0.1, 0.11), (0.1, 0.11), (None, 0.11)],
        [(0.1, 0.11), (0.1, 0.11), (0.1, 0.0)],
        [(1e-11, 1e9)] * 3,
    ],
)
def test_steps_that_nobody_timed_or_believes_are_no_change(steps):
    change, explanation = explained(pairs_of(*steps))

    assert change is None
    assert [cause.share for cause in explanation.causes] == [None]


def test_what_makes_a_step_shorter_comes_first_where_it_is_shorter():
    base, head = step(a_use("aten::sin", 4, "gone", call_s=2e-3)), step(step_s=0.9 * STEP_S)

    (cause,) = explained(timed_pairs(base, head))[1].causes

    assert (cause.kind, cause.share.share > 0.7) == ("gone", True)


def test_causes_of_memory_stand_below_those_of_time():
    def holding(used, size):
        line = Allocation(operator="aten::empty", caller=a_function("search"), peak_bytes=size)
        memory = MemoryUse(peak_bytes=10 * 2**20 + size, allocations=(line,))
        return msgspec.structs.replace(used, memory=memory)

    head = holding(step(ADDED, step_s=1.1 * STEP_S), 9 * 2**20)
    _, explanation = explained(timed_pairs(holding(step(), 2**20), head))

    assert shown(explanation) == [("new", "added"), ("holds_more", "search")]
    assert left(explanation) == []


def test_what_takes_less_than_a_tenth_is_shown_all_the_same_where_nothing_else_is():
    small = msgspec.structs.replace(ADDED, call_s=1e-5)

    change, explanation = explained(timed_pairs(step(), step(small, step_s=1.1 * STEP_S)))

    assert change.is_resolved
    assert shown(explanation) == [("new", "added")]


def test_sides_that_cannot_be_compared_say_so():
    profiled = ProfiledPairs(
        workload="w",
        pairs=(ProfiledPair(base=step(), head=step(cut=3, step_s=2 * STEP_S)),) * 3,
    )

    assert "too many different things" in explained(profiled)[1].trouble
