import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from ci_perf.judging.policy import PolicyKind, policy_of
from ci_perf.judging.screen import Screened, predict, smallest_detectable

TIME = policy_of(PolicyKind.TIME)


def a_screened(difference, *, error=0.002, df=6.0, sessions=5):
    reach = stats.t.isf(0.05, df) * error
    return Screened(
        difference=difference,
        error=error,
        df=df,
        low=difference - reach,
        high=difference + reach,
        sessions=sessions,
        launch_variance=1e-5,
        prior_variance=1e-5,
        prior_df=8.0,
    )


def predicted(difference, *, alpha=0.05, **screened):
    return predict(a_screened(difference, **screened), TIME, alpha)


@pytest.mark.parametrize(
    ("difference", "error", "expected"),
    [
        (0.1, 0.002, "unconfirmed"),
        (-0.1, 0.002, "unconfirmed"),
        (0.1, 0.05, "inconclusive"),
        (0.001, 1e-5, "unchanged"),
    ],
)
def test_a_head_is_suspected_where_sessions_do_not_explain_it(difference, error, expected):
    assert predicted(difference, error=error) == expected


@given(
    st.floats(-0.1, 0.1),
    st.floats(1e-5, 0.1),
    st.floats(1, 50),
    st.sampled_from([0.05, 0.0025, 1e-4]),
)
def test_a_prediction_agrees_with_the_t_test_of_scipy(difference, error, df, alpha):
    beyond = stats.t.sf((abs(difference) - TIME.half_limit) / error, df)

    found = predicted(difference, error=error, df=df, alpha=alpha)
    assume(found != "unchanged")

    assert found == ("unconfirmed" if beyond < alpha / 2 else "inconclusive") or (
        beyond == pytest.approx(alpha / 2)
    )


def test_the_smallest_detectable_change_is_that_of_the_t_test_of_scipy_in_four_of_five_cases():
    screened = a_screened(0.1, error=0.004, df=6.0)
    reach = stats.t.isf(0.025, 6) + stats.t.isf(0.2, 6)

    assert smallest_detectable(screened, TIME, 0.05) == pytest.approx(
        TIME.half_limit + 0.004 * reach
    )
    assert smallest_detectable(a_screened(0.1, error=1e-6), TIME, 0.05) == TIME.limit


@pytest.mark.parametrize("alpha", [0.0, 1.0, math.nan])
def test_an_alpha_that_is_no_chance_is_refused(alpha):
    with pytest.raises(ValueError, match="expected 0 < alpha < 1"):
        predicted(0.1, alpha=alpha)
