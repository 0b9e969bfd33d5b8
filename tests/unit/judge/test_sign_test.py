import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ci_perf.judge import sign_test

EIGHTEEN = tuple(range(18))
tails = st.floats(1e-9, 0.5)


@given(tails, tails)
def test_the_ends_are_the_order_statistics_of_the_binomial_distribution(below, above):
    low, high = sign_test.interval(EIGHTEEN, below, above)

    for end, tail in ((low, below), (17 - high, above)):
        if math.isinf(end):
            assert tail < stats.binom.cdf(0, 18, 0.5)
        else:
            assert stats.binom.cdf(end, 18, 0.5) <= tail
            assert stats.binom.cdf(end + 1, 18, 0.5) > tail or end == 8


def test_few_values_are_never_as_sure_as_that():
    assert sign_test.interval([1.0, 2.0, 3.0], 0.1, 0.2) == (-math.inf, 3.0)


@pytest.mark.parametrize("order", [(3.0, 1.0, 2.0), (1.0, 2.0, 3.0)])
def test_the_order_in_which_values_came_says_nothing(order):
    assert sign_test.interval(order, 0.2, 0.2) == (1.0, 3.0)
