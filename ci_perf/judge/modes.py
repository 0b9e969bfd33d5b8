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
# Of several sessions together. Launches that are spread normally look like two modes in 5 % of
# cases of 3 sessions of 5, in 1.5 % of 5 sessions; two modes 8 deviations apart, with 30 % of the
# launches in one, are seen in 92 % and 97 % (4000 and 2000 simulated cases each).
_FEWEST_IN_A_SESSION = 4
_FEWEST_IN_ALL = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """Where the two modes lie (mean logarithms), and how many launches each has."""

    low: float
    high: float
    low_launches: int
    high_launches: int


def are_two(sessions: Sequence[Sequence[float]], *, smallest_gap: float) -> bool:
    """Whether launches have two modes: in one session that is long enough, or in most of several.

    Several are never mixed, because sessions differ, too. A gap counts within a session, but what
    is left of the spread beside the gaps is measured over all of them.
    """
    if any(two_modes(session, smallest_gap=smallest_gap) for session in sessions):
        return True
    sessions = [session for session in sessions if len(session) >= _FEWEST_IN_A_SESSION]
    launches = sum(map(len, sessions))
    if launches < _FEWEST_IN_ALL:
        return False
    splits = [_split(session, smallest_mode=1) for session in sessions]
    spread = math.sqrt(sum(split.squares for split in splits) / (launches - 2 * len(splits)))
    least = max(smallest_gap, _SPREADS_APART * spread)
    return sum(split.gap > least for split in splits) > len(splits) / 2


def two_modes(launches: Sequence[float], *, smallest_gap: float) -> Modes | None:
    """Return the two modes of launch values of one session, or `None` where there is one.

    `launches` are natural logarithms. A gap up to `smallest_gap`, such as the floor of the policy,
    harms nobody. Launches of several sessions must not be mixed: sessions differ, too.
    """
    logarithms.check(launches, what="the launches of a session")
    if len(launches) < _FEWEST_LAUNCHES:
        return None
    split = _split(launches, smallest_mode=_SMALLEST_MODE)
    spread = math.sqrt(split.squares / (len(launches) - 2))
    if split.gap <= max(smallest_gap, _SPREADS_APART * spread):
        return None
    return Modes(
        low=statistics.fmean(split.low),
        high=statistics.fmean(split.high),
        low_launches=len(split.low),
        high_launches=len(split.high),
    )


@dataclass(frozen=True, slots=True)
class _Split:
    """Launches parted at their largest gap."""

    gap: float
    low: Sequence[float]
    high: Sequence[float]

    @property
    def squares(self) -> float:
        """The sum of squares that is left within the two parts."""
        return logarithms.squares(self.low) + logarithms.squares(self.high)


def _split(launches: Sequence[float], *, smallest_mode: int) -> _Split:
    """Part launches at the largest gap that leaves so many on both sides of it."""
    ordered = sorted(launches)
    gaps = [(after - before, place) for place, (before, after) in enumerate(pairwise(ordered), 1)]
    gap, place = max(gaps[smallest_mode - 1 : len(ordered) - smallest_mode])
    return _Split(gap, ordered[:place], ordered[place:])
