"""Two modes: launches that are sometimes fast and sometimes slow, and seldom between.

Another choice of kernel, another placement of memory: code of one commit then has two speeds, and
a few launches may all show the same one. No verdict is made here; who reads one should know.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ci_perf.judge import logarithms

# How far apart the modes are, in standard deviations within them. Launches that are spread
# normally look like two modes in 6 % of cases of 6 launches, in 1 % of 10, in none of 18 (1500
# simulated cases each); two modes 8 deviations apart, with 30 % of the launches in one, are seen
# in 48, 72 and 79 %.
_SPREADS_APART = 4.0
# A mode needs two launches: one that lies apart is an outlier.
_SMALLEST_MODE = 2
# Of four or five launches, two pairs lie apart by chance in one case of ten.
_FEWEST_LAUNCHES = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """Where the two modes lie (mean logarithms), and how many launches each has."""

    low: float
    high: float
    low_launches: int
    high_launches: int


def two_modes(launches: Sequence[float], *, smallest_gap: float) -> Modes | None:
    """Return the two modes of launch values of one session, or `None` where there is one.

    `launches` are natural logarithms. A gap up to `smallest_gap`, such as the floor of the policy,
    harms nobody. Launches of several sessions must not be mixed: sessions differ, too.
    """
    logarithms.check(launches, what="the launches of a session")
    if len(launches) < _FEWEST_LAUNCHES:
        return None
    ordered = sorted(launches)
    gap, split = max(_gaps(ordered))
    low, high = ordered[:split], ordered[split:]
    squares = logarithms.squares(low) + logarithms.squares(high)
    spread = math.sqrt(squares / (len(ordered) - 2))
    if gap <= max(smallest_gap, _SPREADS_APART * spread):
        return None
    return Modes(
        low=statistics.fmean(low),
        high=statistics.fmean(high),
        low_launches=len(low),
        high_launches=len(high),
    )


def _gaps(ordered: Sequence[float]) -> list[tuple[float, int]]:
    """Return each gap with the number of values below it, where both sides can be a mode."""
    gaps = [(after - before, place) for place, (before, after) in enumerate(pairwise(ordered), 1)]
    return gaps[_SMALLEST_MODE - 1 : len(ordered) - _SMALLEST_MODE]
