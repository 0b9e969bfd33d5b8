import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from ci_perf.judging import distributions


@pytest.mark.parametrize("df", [0.5, *(10 ** (exponent / 5) for exponent in range(26))])
def test_student_quantiles_agree_with_scipy(df):
    """Also far beyond what is asked for."""
    for tail in [0.5, *(10 ** (-exponent / 2) for exponent in range(1, 25))]:
        expected = pytest.approx(stats.t.isf(tail, df), rel=1e-8, abs=1e-12)
        assert distributions.student_quantile(tail, df) == expected


@pytest.mark.parametrize("df", [1, 4, 25])
@pytest.mark.parametrize("t", [0.0, 0.3, 2.0, 15.0])
def test_student_tails_agree_with_scipy(t, df):
    assert distributions.student_tail(t, df) == pytest.approx(stats.t.sf(t, df), rel=1e-10)


@pytest.mark.parametrize(("tail", "df"), [(0.0, 3), (0.6, 3), (0.05, 0)])
def test_a_quantile_is_refused_where_there_is_none(tail, df):
    with pytest.raises(ValueError, match="expected 0 < tail"):
        distributions.student_quantile(tail, df)


# 1e-6 to 1e8: far beyond what degrees of freedom can be.
WIDE = [10.0 ** (exponent / 4) for exponent in range(-24, 33)]


@pytest.mark.parametrize("x", WIDE)
def test_derivatives_of_log_gamma_agree_with_scipy(x):
    trigamma = float(special.polygamma(1, x))

    assert distributions.digamma(x) == pytest.approx(special.digamma(x), rel=1e-12, abs=1e-12)
    assert distributions.trigamma(x) == pytest.approx(trigamma, rel=1e-12)
    assert distributions.inverse_trigamma(trigamma) == pytest.approx(x, rel=1e-9)


@pytest.mark.parametrize("y", [1e-300, 1e-25, 1e25, 1e300])
def test_the_inverse_is_finite_at_the_ends_of_what_floats_can_hold(y):
    x = distributions.inverse_trigamma(y)

    assert math.isfinite(x)
    assert distributions.trigamma(x) == pytest.approx(y, rel=1e-9)


@pytest.mark.parametrize(
    "function", [distributions.digamma, distributions.trigamma, distributions.inverse_trigamma]
)
@pytest.mark.parametrize("x", [0.0, -1.0, math.inf, math.nan])
def test_derivatives_of_log_gamma_are_refused_where_they_are_not_finite(function, x):
    with pytest.raises(ValueError, match="expected a finite number > 0, found"):
        function(x)


EIGHTEEN = tuple(range(18))
tails = st.floats(1e-9, 0.5)


@given(tails, tails)
def test_the_ends_of_the_sign_test_are_the_order_statistics_of_the_binomial_distribution(
    below, above
):
    low, high = distributions.median_interval(EIGHTEEN, below, above)

    for end, tail in ((low, below), (17 - high, above)):
        if math.isinf(end):
            assert tail < stats.binom.cdf(0, 18, 0.5)
        else:
            assert stats.binom.cdf(end, 18, 0.5) <= tail
            assert stats.binom.cdf(end + 1, 18, 0.5) > tail or end == 8


@pytest.mark.parametrize("order", [(3.0, 1.0, 2.0), (1.0, 2.0, 3.0)])
def test_few_values_in_any_order_have_the_ends_that_they_can_be_sure_of(order):
    assert distributions.median_interval(order, 0.2, 0.2) == (1.0, 3.0)
    assert distributions.median_interval(order, 0.1, 0.2) == (-math.inf, 3.0)
