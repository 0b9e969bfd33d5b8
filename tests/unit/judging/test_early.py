"""After three pairs, a loss that each of them shows far beyond all launches is proven."""

import math

import pytest

from ci_perf.errors import ExitCode
from ci_perf.judging.early import find_early
from ci_perf.judging.policy import EARLY_PAIRS, LOOKS
from ci_perf.model.comparison import Verdict
from tests.confirmations import TIME, a_confirmation
from tests.histories import (
    HISTORY,
    in_turns,
    judged,
    pairs,
    row_of,
    said,
    scaled,
    sessions_of,
    undecided,
)
from tests.runs import STEADY, a_measured, a_run

PROVEN = (Verdict.REGRESSED, "beyond_limit")
COUNTED = sessions_of(operators=560)
QUIET = [[0.0, 0.001, -0.001]] * 5


def looked(*percent, history=QUIET, counts=False, head=(), bases=(), earlier=(), tick=0.0):
    """Take pairs that are slower by so many percent; return what is said after the last."""
    early = find_early(TIME, sessions=history, head=head, has_more_counts=counts)
    confirmation = a_confirmation(early=early, earlier=earlier, tick=tick)
    alarm = None
    for position, slower in enumerate(percent):
        base = bases[position] if bases else 0.0
        alarm = confirmation.add(math.log1p(slower / 100), base=base)
    return alarm.call if alarm else ""


def a_slower_head(ratio, *, count=EARLY_PAIRS, operators=(560, 560), **more):
    """A head that takes `ratio` times as long, and its pairs; with the operators of both sides."""
    before, after = operators
    head = a_run(a_measured("w", *scaled(STEADY, ratio), operators=after))
    return in_turns(
        head, pairs(ratio, count=count, operators=after, base={"operators": before}), **more
    )


def test_a_loss_of_as_much_again_is_proven_by_three_pairs():
    assert looked(150, 120, 100) == "regressed"
    assert looked(150, 120) == ""
    assert looked(150, 120, 99) == ""


def test_less_is_proven_where_a_count_has_grown():
    assert looked(17, 16, 15, counts=True) == "regressed"
    assert looked(17, 16, 14.9, counts=True) == ""
    assert looked(17, 16, 15) == ""


@pytest.mark.parametrize("history", [(), [[0.0, 0.0], [0.0, 0.0]]], ids=["none", "four launches"])
def test_counts_prove_no_less_without_launches_that_would_show_two_modes(history):
    assert looked(90, 90, 90, counts=True, history=history) == ""
    assert looked(110, 110, 110, counts=True, history=history) == "regressed"


@pytest.mark.parametrize(
    "gap",
    [
        {"history": [*QUIET, [0.0, 0.5]]},
        {"head": (1.9,)},  # the pairs have it at log(3), which is 1.1
        {"bases": (0.0, 0.6, 0.0)},
        {"tick": 0.6},
    ],
    ids=["history", "head", "base", "rounded"],
)
def test_each_pair_shows_twice_the_largest_gap_between_launches_of_a_side(gap):
    assert looked(150, 150, 150) == looked(200, 200, 200) == "regressed"
    assert looked(150, 150, 150, **gap) == ""


def test_a_gain_waits_for_the_other_looks():
    assert looked(-60, -60, -60) == ""


def test_a_later_run_of_the_same_commits_has_no_early_look():
    assert looked(150, 150, 150, earlier=(2,)) == ""


def test_the_interval_is_that_of_the_pairs_and_of_the_gap_between_launches():
    early = find_early(TIME, sessions=QUIET, head=(), has_more_counts=False)

    assert early.find_interval([0.0, 0.0, 0.0], [0.8, 0.9, 1.0]) == pytest.approx((0.6, 1.2))


def test_a_gap_is_how_far_two_launches_lie_apart_whatever_they_took():
    early = find_early(TIME, sessions=[[-7.0, -6.5], [-3.0]], head=(), has_more_counts=False)

    assert early.gap == pytest.approx(0.5)


def test_a_report_says_it_in_red_and_asks_for_no_more_pairs():
    run = a_slower_head(1.3, operators=(560, 762))

    comparison = judged(COUNTED, run)

    assert said(comparison) == PROVEN
    assert row_of(comparison).pairs == EARLY_PAIRS
    assert comparison.exit_code == ExitCode.REGRESSED
    assert undecided(COUNTED, run)[0] == ()


def test_counts_of_the_pairs_count_and_not_those_of_an_older_history():
    assert said(judged(HISTORY, a_slower_head(1.3, operators=(762, 762))))[0] != Verdict.REGRESSED
    assert said(judged(HISTORY, a_slower_head(2.2, operators=(762, 762)))) == PROVEN


@pytest.mark.parametrize("count", [4, LOOKS[0], LOOKS[-1]])
def test_more_pairs_never_take_it_back(count):
    row = row_of(judged(COUNTED, a_slower_head(1.3, operators=(560, 762), count=count)))

    assert (row.verdict, row.pairs) == (Verdict.REGRESSED, EARLY_PAIRS)
