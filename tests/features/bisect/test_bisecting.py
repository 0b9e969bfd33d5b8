"""Which commits a bisect measures next, and what is left of the line, by the answers so far."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import bisection
from ci_perf.features.bisect import bisecting
from ci_perf.features.bisect.bisecting import Range, Search
from ci_perf.features.bisect.bisection import CommitAnswer
from ci_perf.judging.policy import default_limits
from ci_perf.model import metrics
from ci_perf.model.comparison import Verdict
from ci_perf.model.suite import Limits
from tests.comparisons import a_change, an_uncompared, judged
from tests.histories import in_turns, pairs
from tests.runs import STEADY, a_measured, a_run

GOOD, BAD = CommitAnswer.LIKE_GOOD, CommitAnswer.LIKE_BAD
UNDECIDED, FAILED = CommitAnswer.UNDECIDED, CommitAnswer.FAILED
LIMITS = Limits(default=default_limits())


def searched(last, culprit, *, silent=frozenset()):
    """Search with answers that are right, but for those that nobody can give."""
    search, sessions = Search(last), 0
    while (at := bisecting.next_position(search)) is not None:
        sessions += 1
        assert at in search.open
        answer = UNDECIDED if at in silent else BAD if at >= culprit else GOOD
        search = search.with_answer(at, answer)
    return search, sessions


@given(st.data())
def test_the_culprit_stays_in_the_range_whatever_cannot_be_measured(data):
    last = data.draw(st.integers(1, 200))
    culprit = data.draw(st.integers(1, last))
    silent = data.draw(st.sets(st.integers(1, max(1, last - 1))))

    search, _ = searched(last, culprit, silent=silent)

    left = search.range
    assert left.low < culprit <= left.high
    # What is left is what nobody could answer, and no more.
    assert set(range(left.low + 1, left.high)) <= silent


@given(st.integers(1, 2000), st.data())
def test_sessions_are_as_few_as_their_answers_allow(last, data):
    search, sessions = searched(last, data.draw(st.integers(1, last)))

    assert search.range.is_one
    assert sessions <= math.ceil(math.log2(last))


def test_the_middle_is_measured_first_and_what_nobody_can_say_is_left():
    search = Search(8)
    assert bisecting.next_position(search) == 4
    search = search.with_answer(4, BAD)
    assert bisecting.next_position(search) == 2
    search = search.with_answer(2, GOOD).with_answer(3, UNDECIDED)

    assert bisecting.next_position(search) is None
    assert search.range == Range(2, 4)


def test_a_line_that_went_bad_twice_is_searched_where_it_went_bad_last():
    search = Search(10).with_answer(2, BAD).with_answer(5, GOOD)

    assert search.range == Range(5, 10)


def test_the_time_of_a_step_is_looked_for_before_what_else_is_worse():
    time = a_change(verdict=Verdict.REGRESSED, ratio=1.1)
    memory = a_change(verdict=Verdict.REGRESSED, metric=metrics.HOST_RSS_PEAK, ratio=2)
    shown = a_change(verdict=Verdict.REGRESSED, metric=metrics.STEP_P95, gate=False, ratio=3)
    rows = (an_uncompared(), memory, shown, time)

    assert bisecting.worse(rows) is time
    assert bisecting.worse(rows[:3]) is memory
    assert bisecting.worse(rows, "step_p95_s") is shown
    assert bisecting.worse((a_change(ratio=1.2),)) is None


@pytest.mark.parametrize(
    ("ratio", "answer"), [(1.0, GOOD), (0.9, GOOD), (1.03, GOOD), (1.04, BAD), (1.2, BAD)]
)
def test_pairs_tell_on_which_side_of_a_third_of_the_loss_a_commit_lies(ratio, answer):
    effect = a_change("w", verdict=Verdict.REGRESSED, ratio=1.1)
    run = in_turns(a_run(a_measured("w", *STEADY)), pairs(ratio), workload="w")

    rows = judged(a_run(), run, limits=bisecting.divide_limits(LIMITS, effect)).rows

    assert bisecting.answer(bisecting.row_of(rows, "step_time_s")) is answer


def test_what_is_counted_is_divided_in_the_middle_between_both_counts():
    effect = a_change(verdict=Verdict.REGRESSED, metric=metrics.GRAPH_BREAKS, base=0.0, head=3.0)

    limit = bisecting.divide_limits(LIMITS, effect).of("mlp")["graph_breaks"]

    assert (limit.absolute, limit.relative, limit.gate) == (1.5, 0.0, True)


def test_only_the_metric_that_is_looked_for_gates():
    limits = bisecting.only(LIMITS, "mlp", "step_p95_s").of("mlp")

    assert [name for name, limit in limits.items() if limit.gate] == ["step_p95_s"]
    assert limits["step_p95_s"].relative == LIMITS.default["step_p95_s"].relative


def test_a_metric_without_a_row_has_no_answer():
    assert bisecting.answer(None) is UNDECIDED
    assert bisecting.row_of((an_uncompared(),), "step_time_s") is None


def test_simulated_lines_are_right_where_the_effect_is_three_spreads():
    ends = bisection.simulate(300, 100, 1 / 3)

    assert sum(end.right for end in ends) >= 297
    assert max(end.sessions for end in ends) <= 10
