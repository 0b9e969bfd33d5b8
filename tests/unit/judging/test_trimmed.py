"""Pairs whose mean leaves out the outermost ones: where launches have heavy tails."""

import random
import statistics

import numpy as np
import pytest
from scipy import stats

from ci_perf.judging import variability
from ci_perf.judging.confirm import Confirmation
from ci_perf.judging.policy import BETA_CONFIRM, LOOKS, MOST_PAIRS, TRIMMED, TRIMMED_CALM_WEIGHTS
from tests.confirmations import TIME, a_confirmation

ALPHA = 0.05 / 3


def confirmed(differences, *, trimmed=True, **known):
    confirmation = Confirmation(
        policy=TIME, alpha=ALPHA, prior_variance=0.0, prior_df=0.0, trimmed=trimmed, **known
    )
    for difference in differences:
        if outcome := confirmation.add(difference):
            return outcome
    return confirmation.finish()


def heavy_tailed(seed, *, size=0.0, pairs=MOST_PAIRS):
    """Differences of 0.5 %, one of six of them twenty times as large."""
    draw = random.Random(seed)
    return [size + draw.gauss(0, 0.1 if draw.random() < 1 / 6 else 0.005) for _ in range(pairs)]


@pytest.mark.parametrize("pairs", [5, 6, 9, 13, 18])
def test_mean_and_error_are_those_of_scipy(pairs):
    values = heavy_tailed(pairs, pairs=pairs)

    centre = variability.trim_mean(values, TRIMMED)

    assert centre.mean == pytest.approx(stats.trim_mean(values, TRIMMED))
    # Yuen's test of two samples that are spread alike, each with this error.
    other = [value + 0.01 for value in values]
    by_scipy = stats.ttest_ind(other, values, equal_var=False, trim=TRIMMED)
    assert (2 * centre.variance / pairs) ** 0.5 == pytest.approx(0.01 / by_scipy.statistic)
    assert 2 * centre.df == pytest.approx(by_scipy.df)


@pytest.mark.parametrize("values", [[1.0], [1.0, 3.0], [1.0, 2.0, 4.0, 9.0]])
def test_of_four_values_none_is_left_out(values):
    centre = variability.trim_mean(values, TRIMMED)

    assert centre == variability.trim_mean(values, 0.0)
    assert centre.mean == statistics.fmean(values)


def test_without_a_share_it_is_the_mean_and_the_variance():
    values = heavy_tailed(1)
    centre = variability.trim_mean(values, 0.0)

    assert centre.mean == pytest.approx(np.mean(values))
    assert centre.variance == pytest.approx(np.var(values, ddof=1))
    assert centre.df == MOST_PAIRS - 1


def test_what_the_looks_spend_adds_up_to_beta():
    assert tuple(TRIMMED_CALM_WEIGHTS) == LOOKS
    assert sum(TRIMMED_CALM_WEIGHTS.values()) == pytest.approx(1)
    spent = sum(a_confirmation(trimmed=True).calm_tail(look) for look in LOOKS)
    assert spent == pytest.approx(BETA_CONFIRM)


def calls(size, *, trimmed):
    outcomes = [confirmed(heavy_tailed(seed, size=size), trimmed=trimmed) for seed in range(200)]
    return [outcome.call for outcome in outcomes]


def test_outliers_hide_neither_a_change_nor_that_there_is_none():
    unchanged, slower = calls(0.0, trimmed=True), calls(0.03, trimmed=True)

    assert unchanged.count("unchanged") > 190
    assert calls(0.0, trimmed=False).count("unchanged") < 160
    assert slower.count("regressed") > 185
    assert calls(0.03, trimmed=False).count("regressed") < 165
    assert unchanged.count("regressed") + unchanged.count("improved") == 0
    assert slower.count("unchanged") == 0


def test_a_change_as_large_as_the_limit_is_seldom_called_unchanged():
    assert calls(TIME.limit, trimmed=True).count("unchanged") <= 0.06 * 200


def test_a_history_that_is_calmer_makes_nothing_unchanged():
    differences = heavy_tailed(3)

    assert confirmed(differences) == confirmed(differences)
    calm = Confirmation(policy=TIME, alpha=ALPHA, prior_variance=1e-9, prior_df=8.0, trimmed=True)
    assert [calm.add(difference) for difference in differences[:5]] == [None] * 5


def test_the_interval_of_an_inconclusive_outcome_is_finite_after_two_pairs():
    outcome = confirmed([0.0, 0.1])

    assert outcome.call == "inconclusive"
    assert outcome.low < outcome.estimate < outcome.high
