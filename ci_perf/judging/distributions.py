"""The distributions that the judge needs, without scipy, whose import takes longer than judging.

Student's t, derivatives of log-gamma, the sign test, and sums of logarithms. Checked against scipy
in the tests.
"""

import functools
import math
from collections.abc import Sequence

_LARGEST = 700.0  # exp(709) is the largest float


def exponential(logarithm: float) -> float:
    """Return a number that stays finite for launches that differ beyond all measure."""
    return math.exp(max(min(logarithm, _LARGEST), -_LARGEST))


# --- Student's t

_TINY = 1e-300
_CONVERGED = 1e-15
_MAX_TERMS = 500
# Newton's steps are some five; halving alone would need some fifty.
_MOST_STEPS = 100
# Newton's steps double the digits: after one as small as this, all are right.
_CLOSE = 1e-9


def student_quantile(tail: float, df: float) -> float:
    """Return t with P(T > t) = `tail` for `df` degrees of freedom; 0 < tail <= 0.5, df > 0."""
    if not (0 < tail <= 0.5 and df > 0):
        raise ValueError(f"expected 0 < tail <= 0.5 and df > 0, found {tail} and {df}")
    return _student_quantile(tail, df)


# The workloads of a suite often ask for the same few quantiles.
@functools.lru_cache(maxsize=4096)
def _student_quantile(tail: float, df: float) -> float:
    """Solve by Newton's steps for the logarithm of the tail, which is smooth however small it is.

    A step that leaves the interval in which the solution lies is replaced by its middle.
    """
    if tail == 0.5:
        return 0.0
    low, high = 0.0, 1.0
    while student_tail(high, df) > tail:
        low, high = high, 2 * high
    log_density = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    t = (low + high) / 2
    for _ in range(_MOST_STEPS):
        seen = student_tail(t, df)
        low, high = (t, high) if seen > tail else (low, t)
        density = math.exp(log_density - (df + 1) / 2 * math.log1p(t * t / df))
        step = t + math.log(seen / tail) * seen / density
        if low <= step <= high:
            if abs(step - t) <= _CLOSE * t:
                return step
            t = step
        else:
            t = (low + high) / 2
    return t


def student_tail(t: float, df: float) -> float:
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


# --- derivatives of log-gamma

# From here on the series below are exact to the last digits of a float.
_FAR = 10.0
# Coefficients B(2k) / 2k of the asymptotic series, with Bernoulli's numbers B
# (Abramowitz and Stegun 6.3.18); those of its derivative are B(2k) (6.4.12).
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


# The variances of a suite have few different degrees of freedom.
@functools.lru_cache(maxsize=4096)
def digamma(x: float) -> float:
    """Return the derivative of log-gamma at x > 0."""
    _positive(x)
    shift = 0.0
    while x < _FAR:  # 6.3.5
        shift -= 1 / x
        x += 1
    series = math.fsum(b / (2 * k) * x ** (-2 * k) for k, b in enumerate(_BERNOULLI, start=1))
    return shift + math.log(x) - 1 / (2 * x) - series


@functools.lru_cache(maxsize=4096)
def trigamma(x: float) -> float:
    """Return the second derivative of log-gamma at x > 0."""
    _positive(x)
    shift = 0.0
    while x < _FAR:  # 6.4.6
        shift += 1 / x * (1 / x)
        x += 1
    series = math.fsum(b * x ** (-2 * k) for k, b in enumerate(_BERNOULLI, start=1))
    return shift + (1 + 1 / (2 * x) + series) / x


def inverse_trigamma(y: float) -> float:
    """Return x > 0 with trigamma(x) = y, for y > 0."""
    _positive(y)
    # Trigamma falls, and lies between 1/x + 1/2x² and 1/x + 1/x²: so does the answer's bracket.
    low, high = ((0.5 + math.sqrt(0.25 + factor * y)) / y for factor in (0.5, 1.0))
    for _ in range(200):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        if trigamma(middle) > y:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _positive(x: float) -> None:
    if not 0 < x < math.inf:
        raise ValueError(f"expected a finite number > 0, found {x}")


# --- the sign test


def median_interval(values: Sequence[float], below: float, above: float) -> tuple[float, float]:
    """Return the interval of the median; its ends are wrong with at most these chances.

    Infinite on a side where so few values cannot be so sure. The sign test uses the order of the
    values alone: it assumes no spread and no shape, so that one launch that hangs hides no change,
    and it needs many values. Source: Dixon & Mood, "The statistical sign test", 1946.
    """
    ordered = sorted(values)
    low, high = _values_beyond(below, len(ordered)), _values_beyond(above, len(ordered))
    return (
        ordered[low] if low is not None else -math.inf,
        ordered[-1 - high] if high is not None else math.inf,
    )


def _values_beyond(tail: float, values: int) -> int | None:
    """Return how many values may lie beyond an end of the interval; `None`: not even none."""
    chance, allowed = 0.0, None
    for count in range(values // 2):
        chance += math.comb(values, count) / 2**values
        if chance > tail:
            break
        allowed = count
    return allowed


# --- logarithms of launch values

# Beyond the logarithms of the smallest and the largest float, -745 and 710, and their differences.
_LARGEST_LOGARITHM = 1500.0


def check_logarithms(values: Sequence[float], *, what: str) -> None:
    """Refuse an empty sequence, and what is no logarithm of a number: NaN, or a raw byte count."""
    if not values:
        raise ValueError(f"{what}: expected at least one launch, found none")
    for value in values:
        if not abs(value) <= _LARGEST_LOGARITHM:  # also refuses NaN
            raise ValueError(
                f"{what}: expected natural logarithms of launch values, found {value!r}"
            )


def sum_of_squares(values: Sequence[float]) -> float:
    """Return the sum of squares around the mean; 0 of fewer than two values.

    The sum is exact before it is rounded once, so that no order of launches changes a verdict.
    """
    if len(values) < 2:
        return 0.0
    mean = math.fsum(values) / len(values)
    return math.fsum([(value - mean) ** 2 for value in values])
