"""The sign test: an interval of the median from the order of the values alone.

It asks for no spread and no shape, so that one launch that hangs does not hide a change from it.
Its price is that it needs many pairs.
"""

import math
from collections.abc import Sequence


def interval(values: Sequence[float], below: float, above: float) -> tuple[float, float]:
    """Return the interval of the median, its ends wrong with at most these chances.

    Infinite on a side where so few values cannot be so sure. Source: Dixon & Mood, "The
    statistical sign test", 1946.
    """
    ordered = sorted(values)
    low, high = _beyond(below, len(ordered)), _beyond(above, len(ordered))
    return (
        ordered[low] if low is not None else -math.inf,
        ordered[-1 - high] if high is not None else math.inf,
    )


def _beyond(tail: float, values: int) -> int | None:
    """Return how many values may lie beyond an end of the interval; `None`: not even none."""
    chance, allowed = 0.0, None
    for count in range(values // 2):
        chance += math.comb(values, count) / 2**values
        if chance > tail:
            break
        allowed = count
    return allowed
