"""Launch values as logarithms: what is one, and the sums that the judge takes of them.

Sums are exact before they are rounded once, so that no order of launches changes a verdict.
"""

import math
import statistics
from collections.abc import Sequence

# Beyond the logarithms of the smallest and the largest float, -745 and 710, and their differences.
_LARGEST = 1500.0


def check(values: Sequence[float], *, what: str) -> None:
    """Refuse no values, and what cannot be the logarithm of a number: NaN, or a raw byte count."""
    if not values:
        raise ValueError(f"{what}: expected at least one launch, found none")
    for value in values:
        if not abs(value) <= _LARGEST:  # also refuses NaN
            raise ValueError(
                f"{what}: expected natural logarithms of launch values, found {value!r}"
            )


def squares(values: Sequence[float]) -> float:
    """Return the sum of squares around the mean; 0 of no value."""
    if not values:
        return 0.0
    mean = statistics.fmean(values)
    return math.fsum((value - mean) ** 2 for value in values)
