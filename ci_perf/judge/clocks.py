"""Whether two sides that took turns ran at other clocks, so that time alone misleads."""

import statistics
from collections.abc import Sequence

# As large as the smallest change of a time that is claimed by default: a clock that differs by less
# cannot explain one.
TOLERANCE = 0.01

Pairs = Sequence[tuple[float, float]]


def differ(times: Pairs, cycles: Pairs) -> bool:
    """Say whether the head's clock was, on average, another one than the base's.

    Logarithms of (base, head), per pair. What took as many cycles in less time ran at a higher
    clock. Nothing is claimed where cycles are known of some pairs only.
    """
    if not times or len(cycles) != len(times):
        return False
    clocks = [
        (head_cycles - base_cycles) - (head - base)
        for (base, head), (base_cycles, head_cycles) in zip(times, cycles, strict=True)
    ]
    return abs(statistics.fmean(clocks)) > TOLERANCE
