"""The answers of the judge beside those of scipy and statsmodels, which know none of its code."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import optimize, special, stats
from statsmodels.stats import weightstats

from ci_perf.judging import variability
from ci_perf.judging.policy import (
    BETA_SCREEN,
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

known = st.builds(
    Variance, st.floats(-20, 3).map(math.exp), st.floats(0.5, 40) | st.integers(1, 30).map(float)
)


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
