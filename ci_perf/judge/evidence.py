"""The one value that stands for a side of a metric."""

import math
import statistics
from collections.abc import Sequence

from ci_perf.judge.policy import KIND_OF
from ci_perf.model.metrics import Kind

Sessions = Sequence[Sequence[float]]
"""Values of one metric: one list per session, one value per process."""

# Counted, not timed: the same code gives the same number.
EXACT = frozenset({Kind.COUNT, Kind.DEVICE_MEMORY})


def centre(kind: Kind, sessions: Sessions) -> float:
    """Return the one value that stands for a side.

    Noisy kinds: the geometric mean of the sessions' geometric means, so that the ratio of two
    centres is the ratio that is judged. Exact kinds: the largest value that was seen. All others:
    the median of all values.
    """
    if kind in KIND_OF:
        return math.exp(_mean_log(sessions))
    values = [value for session in sessions for value in session]
    return max(values) if kind in EXACT else statistics.median(values)


def _mean_log(sessions: Sessions) -> float:
    return statistics.fmean(
        statistics.fmean(math.log(value) for value in session) for session in sessions
    )
