"""Student's t distribution without scipy, whose import would take longer than the judging.

Checked against scipy in the tests.
"""

import functools
import math

_TINY = 1e-300
_CONVERGED = 1e-15
_MAX_TERMS = 500


def upper_quantile(tail: float, df: float) -> float:
    """Return t with P(T > t) = `tail` for `df` degrees of freedom; 0 < tail <= 0.5, df > 0."""
    if not (0 < tail <= 0.5 and df > 0):
        raise ValueError(f"expected 0 < tail <= 0.5 and df > 0, found {tail} and {df}")
    return _upper_quantile(tail, df)


# The workloads of a suite ask for the same few quantiles, each half a millisecond.
@functools.lru_cache(maxsize=1024)
def _upper_quantile(tail: float, df: float) -> float:
    low, high = 0.0, 1.0
    while upper_tail(high, df) > tail:
        high *= 2
    for _ in range(80):  # bisection, to the last digits of a float
        middle = (low + high) / 2
        if upper_tail(middle, df) > tail:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def upper_tail(t: float, df: float) -> float:
    """Return P(T > t) for t >= 0, by the regularised incomplete beta function."""
    return _incomplete_beta(df / 2, 0.5, df / (df + t * t)) / 2


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """I_x(a, b): Abramowitz and Stegun 26.5.8, the continued fraction, by Lentz's method."""
    if x in {0.0, 1.0}:
        return x
    if x > (a + 1) / (a + b + 2):  # the fraction converges quickly only on the other side
        return 1 - _incomplete_beta(b, a, 1 - x)
    log_front = (
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    return math.exp(log_front) * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            result *= c * d
        if abs(c * d - 1) < _CONVERGED:
            break
    return result


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
