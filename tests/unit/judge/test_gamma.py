import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from ci_perf.judge import gamma

# 1e-6 to 1e8: far beyond what degrees of freedom can be.
arguments = st.floats(-6, 8).map(lambda exponent: 10**exponent)
WIDE = [10.0 ** (exponent / 4) for exponent in range(-24, 33)]


@pytest.mark.parametrize("x", WIDE)
def test_digamma_agrees_with_scipy(x):
    assert gamma.digamma(x) == pytest.approx(special.digamma(x), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("x", WIDE)
def test_trigamma_agrees_with_scipy(x):
    assert gamma.trigamma(x) == pytest.approx(special.polygamma(1, x), rel=1e-12)


@pytest.mark.parametrize("x", WIDE)
def test_the_inverse_finds_what_scipy_made_a_trigamma_of(x):
    assert gamma.inverse_trigamma(float(special.polygamma(1, x))) == pytest.approx(x, rel=1e-9)


@given(arguments)
def test_the_inverse_undoes_trigamma_everywhere(x):
    assert gamma.inverse_trigamma(gamma.trigamma(x)) == pytest.approx(x, rel=1e-9)


@pytest.mark.parametrize("y", [1e-300, 1e-25, 1e25, 1e300])
def test_the_inverse_is_finite_at_the_ends_of_what_floats_can_hold(y):
    x = gamma.inverse_trigamma(y)

    assert math.isfinite(x)
    assert gamma.trigamma(x) == pytest.approx(y, rel=1e-9)


@pytest.mark.parametrize("function", [gamma.digamma, gamma.trigamma, gamma.inverse_trigamma])
@pytest.mark.parametrize("x", [0.0, -1.0, math.inf, math.nan])
def test_what_has_no_answer_is_refused(function, x):
    with pytest.raises(ValueError, match="expected a finite number > 0, found"):
        function(x)
