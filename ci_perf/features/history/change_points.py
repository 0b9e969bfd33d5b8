"""Where the level of a series changes, by ruptures: information for people, never a gate.

An optional extra, and the only module that knows the library.
"""

import importlib.util
import itertools
import math
import statistics
from collections.abc import Sequence

from ci_perf.errors import CiPerfError

INSTALL = "`pip install 'ci-perf[history]'`"
# A level is made of at least two sessions: one that stands alone is an outlier.
LEAST_LEVEL = 2
# Of fewer sessions the noise cannot be told from the levels.
LEAST_SESSIONS = 6
# Sessions without any noise still differ by rounding: 0.1 %.
_LEAST_NOISE = 1e-3
# What one more level costs, in variances of the noise, per log of the number of sessions. BIC asks
# for 2, which knows the noise; ours is estimated from the same few sessions. In simulation 5 finds
# a change where there is none in 3 % of histories of 20 sessions and 6 % of those of 8, and one by
# three standard deviations in the middle in 93 % and 61 %.
_COST = 5.0


def is_known() -> bool:
    """Whether the library is installed."""
    return importlib.util.find_spec("ruptures") is not None


def places(series: Sequence[float]) -> list[int]:
    """Return the places at which another level begins, in order. Raises CiPerfError."""
    if len(series) < LEAST_SESSIONS:
        return []
    try:
        import numpy as np
        import ruptures
    except ImportError:
        raise CiPerfError(
            "change points need ruptures, which is not installed: expected it beside ci-perf; "
            f"next: {INSTALL}"
        ) from None
    # The levels that `Pelt(model="l2")` finds, in a thousandth of the time for 500 sessions.
    search = ruptures.KernelCPD(kernel="linear", min_size=LEAST_LEVEL, jump=1)
    fitted = search.fit(np.asarray(series, dtype=float).reshape(-1, 1))
    penalty = _COST * math.log(len(series)) * noise(series) ** 2
    return [int(place) for place in fitted.predict(pen=penalty)[:-1]]


def noise(series: Sequence[float]) -> float:
    """Return the standard deviation around the levels, by the steps between neighbours.

    A change of level is one step among many, which the median leaves alone.
    """
    steps = [abs(after - before) for before, after in itertools.pairwise(series)]
    # The median of |N(0, 2 variances)| is 0.6745 * sqrt(2) standard deviations.
    return max(statistics.median(steps) / (0.6745 * math.sqrt(2)), _LEAST_NOISE)
