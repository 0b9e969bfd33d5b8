"""The tick of a clock, or of the rounding of whoever wrote the numbers down.

Every statistic that the judge takes of a launch is one of its measured values, or the middle of
two, and rounding keeps their order: so what steps were rounded to, their median was rounded to,
too.
"""

import math
from collections.abc import Iterable

# A tick below this share of the smallest value hides nothing: a tenth of the smallest limit.
_NEGLIGIBLE = 5e-4
# What float arithmetic does to a multiple, with room to spare: shares of the smallest value, and
# of the largest one.
_FLOAT_ERROR, _FLOAT_ERROR_OF_LARGEST = 1e-9, 1e-14
# The greatest common divisor of so many different multiples is the tick itself in 96 % of cases
# (1 / zeta(5)). Of fewer it may be a multiple of it, and only a power of ten is believed.
_ENOUGH_VALUES = 5


def relative(values: Iterable[float], numbers: Iterable[float]) -> float:
    """Return the tick of measured values > 0 as a logarithm, relative to the smallest of `numbers`.

    These are the numbers of launches that were made of the values. 0 where it is negligible, or
    where all values are the same: then nobody knows.
    """
    different = sorted(set(values))
    if len(different) < 2:
        return 0.0
    smallest = min(numbers)
    tolerance = max(_FLOAT_ERROR * smallest, _FLOAT_ERROR_OF_LARGEST * different[-1])
    tick = 0.0
    for value in different:
        tick = _common_divisor(value, tick, tolerance)
        tick = value / round(value / tick)  # or errors would grow from value to value
        if tick < _NEGLIGIBLE * smallest:
            return 0.0
    if len(different) < _ENOUGH_VALUES:
        tick = _power_of_ten(tick, different, tolerance)
    share = float(f"{tick / smallest:.6g}")
    return math.log1p(share) if share >= _NEGLIGIBLE else 0.0


def _common_divisor(a: float, b: float, tolerance: float) -> float:
    """Return the greatest common divisor, by Euclid's algorithm; less than `tolerance` is zero."""
    while b > tolerance:
        a, b = b, abs(math.remainder(a, b))
    return a


def _power_of_ten(tick: float, values: Iterable[float], tolerance: float) -> float:
    """Return the largest power of ten, at most `tick`, of which all values are multiples."""
    exponent = math.floor(math.log10(tick) + 1e-6)
    while 10.0**exponent > tolerance:
        if all(abs(math.remainder(value, 10.0**exponent)) <= tolerance for value in values):
            return 10.0**exponent
        exponent -= 1
    return 0.0
