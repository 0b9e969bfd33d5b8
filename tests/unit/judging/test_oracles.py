"""The answers of the judge beside those of scipy and statsmodels, which know none of its code."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats
from statsmodels.stats import weightstats

from ci_perf.judging import distributions, variability
from ci_perf.judging.confirm import Confirmation
from ci_perf.judging.policy import (
    ALPHA,
    ALPHA_BEYOND_ZERO,
    BETA_CONFIRM,
    BETA_SCREEN,
    CALM_TOGETHER_WITHOUT_HISTORY,
    CALM_WEIGHTS_WITHOUT_HISTORY,
    LOOKS,
    WEIGHT_OF_SIGNS,
    WEIGHTS,
    Policy,
)
from ci_perf.judging.screen import predict, screen
from ci_perf.judging.variability import Variance

# The same examples each time: two ways to round may differ at the very edge of a decision.
same = settings(derandomize=True)
LIMIT = 0.02
POLICY = Policy(limit=LIMIT, session_spread=0.01)
HALF = math.log1p(math.expm1(LIMIT) / 2)
# What is assumed of sessions counts as nothing, so that a textbook's test is left.
ASSUMING_NOTHING = dataclasses.replace(POLICY, prior_df=1e-13)

bases = st.lists(st.floats(0.01, 100), min_size=LOOKS[-1], max_size=LOOKS[-1])
known = st.builds(
    Variance, st.floats(-20, 3).map(math.exp), st.floats(0.5, 40) | st.integers(1, 30).map(float)
)


def sizes(least, most):
    """Differences of 18 pairs, no two alike: a spread of zero has no p-value."""
    on_a_grid = st.integers(round(1e5 * least), round(1e5 * most)).map(lambda n: n / 1e5)
    return st.lists(on_a_grid, min_size=LOOKS[-1], max_size=LOOKS[-1], unique=True)


def close(number):
    return pytest.approx(number, rel=1e-8, abs=1e-12)


# --- what a suite shares


@same
@given(st.lists(known, min_size=2, max_size=30))
def test_what_a_suite_shares_solves_the_equations_of_smyth(variances):
    """Limma's, from the definition: no bound, and scipy's own search for the inverse."""
    values, df = np.array([(v.value, v.df) for v in variances]).T
    logs = np.log(values) - special.digamma(df / 2) + np.log(df / 2)
    excess = np.var(logs, ddof=1) - np.mean(special.polygamma(1, df / 2))
    assume(excess > 1e-3)

    found = variability.prior(variances, (0.0, math.inf), assumed_df=math.inf)

    half = optimize.root_scalar(
        lambda x: np.log(special.polygamma(1, x) / excess),
        bracket=(1e-6, 1e6),
        xtol=1e-15,
        rtol=1e-14,
    ).root
    assert found.df == close(2 * half)
    assert found.value == close(np.exp(np.mean(logs) + special.digamma(half) - np.log(half)))


# --- the confirmation: a t-test against half the limit, and two one-sided tests against it


# What a side has of alpha when the screen saw the head there, on the other side, or nowhere.
SHARES = {1: (0.9, 0.1), 0: (0.5, 0.5), -1: (0.1, 0.9)}
suspicions = st.sampled_from(sorted(SHARES))


def looked_at(launches, suspected=0):
    """Confirm without a history; return the outcome and its launches of base and head."""
    confirmation = Confirmation(
        policy=POLICY, alpha=ALPHA, prior_variance=0.0, prior_df=0.0, suspected=suspected
    )
    for base, head in launches:
        if confirmation.add(math.log(head) - math.log(base)):
            break
    outcome = confirmation.finish()
    base, head = np.array(launches[: outcome.pairs]).T
    return outcome, base, head


def chance_of_equivalence(base, head):
    """The p-value of "they differ by the limit or more", of seconds that statsmodels logs."""
    return weightstats.ttost_paired(
        head, base, math.exp(-LIMIT), math.exp(LIMIT), transform=np.log
    )[0]


def chance_of_a_loss(base, head):
    """The p-value of "the head is slower by half the limit at most"."""
    return stats.ttest_1samp(np.log(head / base), HALF, alternative="greater").pvalue


def answer_of_signs(differences, suspected):
    """What the sign test of scipy says of differences that lie beyond half the limit."""
    for call, sign, share in zip(
        ("regressed", "improved"), (1, -1), SHARES[suspected], strict=True
    ):
        beyond = int(np.sum(sign * differences > HALF))
        tested = stats.binomtest(beyond, len(differences), alternative="greater")
        if tested.pvalue <= ALPHA * WEIGHT_OF_SIGNS * share:
            return call
    return None


def answer_beyond_zero(differences, suspected):
    """What scipy's t-test against zero says of a mean beyond the limit, at the last look."""
    for call, sign, share in zip(
        ("regressed", "improved"), (1, -1), SHARES[suspected], strict=True
    ):
        tested = stats.ttest_1samp(sign * differences, 0, alternative="greater")
        if sign * differences.mean() >= LIMIT and tested.pvalue < ALPHA * ALPHA_BEYOND_ZERO * share:
            return call
    return None


def answer_of_others(launches, suspected):
    """What the p-values say at the first look at which they say something."""
    of_loss, of_gain = SHARES[suspected]
    for look, calm in CALM_WEIGHTS_WITHOUT_HISTORY.items():
        base, head = np.array(launches[:look]).T
        alpha = ALPHA * WEIGHTS[LOOKS.index(look)] if look in LOOKS else 0.0
        if chance_of_a_loss(base, head) < alpha * of_loss:
            return "regressed", look
        if chance_of_a_loss(head, base) < alpha * of_gain:
            return "improved", look
        if look == LOOKS[-1] and (call := answer_beyond_zero(np.log(head / base), suspected)):
            return call, look
        if look == LOOKS[-1] and (call := answer_of_signs(np.log(head / base), suspected)):
            return call, look
        tail = BETA_CONFIRM * CALM_TOGETHER_WITHOUT_HISTORY * calm
        is_moved = min(chance_of_a_loss(base, head), chance_of_a_loss(head, base)) < tail
        if chance_of_equivalence(base, head) < tail and not is_moved:
            return "unchanged", look
    return "inconclusive", LOOKS[-1]


@same
@given(bases, sizes(-0.05, 0.05), st.floats(-0.1, 0.1), st.floats(0.02, 1), suspicions)
def test_pairs_are_answered_as_statsmodels_and_scipy_do(
    bases, differences, effect, spread, suspected
):
    launches = [
        (base, base * math.exp(effect + spread * difference))
        for base, difference in zip(bases, differences, strict=True)
    ]

    outcome, _, _ = looked_at(launches, suspected)

    assert (outcome.call, outcome.pairs) == answer_of_others(launches, suspected)


@same
@given(sizes(-0.005, 0.005))
def test_unchanged_is_as_sure_as_the_equivalence_test_of_statsmodels(differences):
    outcome, base, head = looked_at([(1.0, math.exp(d)) for d in differences])
    assume(outcome.call == "unchanged")

    df, weight = outcome.pairs - 1, CALM_WEIGHTS_WITHOUT_HISTORY[outcome.pairs]
    error = (outcome.high - outcome.estimate) / distributions.student_quantile(
        BETA_CONFIRM * CALM_TOGETHER_WITHOUT_HISTORY * weight, df
    )
    chance = distributions.student_tail((LIMIT - abs(outcome.estimate)) / error, df)

    assert chance == close(chance_of_equivalence(base, head))


@same
@given(sizes(0.02, 0.06), suspicions)
def test_an_alarm_is_as_sure_as_the_t_test_of_scipy_against_half_the_limit(differences, suspected):
    outcome, base, head = looked_at([(1.0, math.exp(d)) for d in differences], suspected)
    assume(outcome.call == "regressed")

    df, weight = outcome.pairs - 1, WEIGHTS[LOOKS.index(outcome.pairs)]
    tail = ALPHA * weight * SHARES[suspected][0]
    error = (outcome.estimate - outcome.low) / distributions.student_quantile(tail, df)
    chance = distributions.student_tail((outcome.estimate - HALF) / error, df)

    assert chance == close(chance_of_a_loss(base, head))


# --- screen and prediction: with one launch per session, tests of two samples


histories = st.lists(
    st.integers(-200, 200).map(lambda n: n / 1e4), min_size=3, max_size=20, unique=True
)


def screened(sessions, head):
    return screen([([[value] for value in sessions], [head])], ASSUMING_NOTHING)[0]


@same
@given(histories, st.floats(-0.03, 0.03))
def test_the_screen_passes_what_the_equivalence_test_of_statsmodels_does(sessions, head):
    """The head is one more session: two samples of one variance, of which one has one value."""
    chance, *_ = weightstats.ttost_ind(
        np.array([head]), np.array(sessions), -LIMIT, LIMIT, usevar="pooled"
    )

    found = screened(sessions, head)
    is_moved = max(found.low, -found.high) > HALF
    assert found.clears(ASSUMING_NOTHING) is bool(chance < BETA_SCREEN and not is_moved)


@same
@given(histories, st.floats(-0.03, 0.03))
def test_the_interval_of_the_screen_is_that_of_scipy(sessions, head):
    found = screened(sessions, head)

    theirs = stats.ttest_ind([head], sessions).confidence_interval(1 - 2 * BETA_SCREEN)
    assert (found.low, found.high) == close(tuple(theirs))


@same
@given(histories, st.floats(0.03, 0.2), st.sampled_from([0.05, 0.0025]))
def test_a_prediction_is_an_interval_of_scipy_beyond_half_the_limit(sessions, head, alpha):
    """Where one more session of the same code would fall, as scipy's t has it."""
    count = len(sessions)
    found = screened(sessions, head)
    assume(not found.clears(ASSUMING_NOTHING))

    expected = stats.t.interval(
        1 - alpha,
        count - 1,
        loc=np.mean(sessions),
        scale=np.std(sessions, ddof=1) * math.sqrt(1 + 1 / count),
    )

    is_beyond = head > expected[1] + HALF
    said = predict(found, ASSUMING_NOTHING, alpha)
    assert said == ("unconfirmed" if is_beyond else "inconclusive")
