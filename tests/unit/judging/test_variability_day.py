"""Today's variance over the history's, and what it may change: "unchanged", and never an alarm."""

import random

import pytest

from ci_perf.judging import variability
from ci_perf.judging.policy import DAY_KNOWN_DF, LARGEST_DAY
from ci_perf.judging.variability import Day
from tests.confirmations import a_confirmation, confirmed

SPREAD = 0.01
USUAL = SPREAD**2


def suspects(times, *, count=200, pairs=3, shift=0.0):
    """Suspects whose pairs differ by so many times what history says (standard deviation)."""
    noise = random.Random(5)
    return [
        (USUAL, [noise.gauss(shift, times * SPREAD) for _ in range(pairs)]) for _ in range(count)
    ]


@pytest.mark.parametrize("pairs", [1, 2, 6])
@pytest.mark.parametrize("times", [0.5, 1.0, 1.5])
def test_many_suspects_show_how_noisy_today_is(times, pairs):
    today = variability.day(suspects(times, count=3000, pairs=pairs))

    assert today.factor == pytest.approx(times**2, rel=0.1)


def test_no_pair_and_no_history_leave_a_usual_day():
    assert variability.day([(USUAL, []), (0.0, [0.1, 0.2])]) == Day(1.0, 0.0)


def test_one_suspect_says_no_more_than_twelve_times_and_a_change_of_it_nothing():
    wild = variability.day([(USUAL, [-1.0, 1.0]), *suspects(1.0)])
    changed = variability.day(suspects(1.0, shift=0.5))

    assert wild.factor == pytest.approx(
        variability.day(suspects(1.0)).factor, abs=LARGEST_DAY / 300
    )
    assert changed.factor == pytest.approx(variability.day(suspects(1.0)).factor)


def test_a_calm_day_says_unchanged_sooner_and_a_wild_one_later():
    noise = random.Random(7)
    differences = [noise.gauss(0, 0.003) for _ in range(18)]
    taken = [
        confirmed(differences, prior_variance=USUAL / 2, prior_df=30.0, day=Day(factor, 40.0)).pairs
        for factor in (0.1, 1.0, 4.0)
    ]

    assert taken == sorted(taken)
    assert taken[0] < taken[-1]


def test_no_day_changes_an_alarm():
    noise = random.Random(9)
    differences = [noise.gauss(0.03, 0.004) for _ in range(18)]

    outcomes = [
        confirmed(differences, prior_variance=USUAL / 2, day=Day(factor, 40.0))
        for factor in (0.1, 1.0, 10.0)
    ]

    assert outcomes[0].call == "regressed"
    assert outcomes.count(outcomes[0]) == len(outcomes)


@pytest.mark.parametrize(
    ("df", "one_mode", "pairs"),
    [(DAY_KNOWN_DF, True, 1), (DAY_KNOWN_DF - 1, True, 2), (DAY_KNOWN_DF, False, 2)],
)
def test_a_single_pair_says_unchanged_where_today_is_known_and_modes_are_excluded(
    df, one_mode, pairs
):
    outcome = confirmed(
        [0.001, 0.001], prior_variance=1e-6, prior_df=30.0, day=Day(1.0, df), one_mode=one_mode
    )

    assert (outcome.call, outcome.pairs) == ("unchanged", pairs)


def test_the_history_counts_more_the_more_is_known_of_today():
    reaches = [
        a_confirmation(prior_df=30.0, day=Day(1.0, df)).reach(0.01, 1) for df in (0.0, 10.0, 100.0)
    ]

    assert reaches == sorted(reaches, reverse=True)
