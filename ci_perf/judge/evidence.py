"""One metric on both sides: the ratio, and how sure of it the processes allow us to be.

The unit is the process: its logarithm is one observation. Steps within a process are no evidence
about the next launch, and sessions differ by more than launches do, so the spread has two parts:
between launches, estimated here, and between sessions, assumed (docs/judging.md).
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ci_perf.judge import student
from ci_perf.model.comparison import Interval
from ci_perf.model.metrics import Kind

Sessions = Sequence[Sequence[float]]
"""Values of one metric: one list per session, one value per process."""

# How much the same code differs between two sessions of one machine (standard deviation of the
# log). Assumed, not measured here: docs/judging.md says why. Counted as 4 degrees of freedom.
SESSION_SPREAD = {
    Kind.TIME: 0.01,
    Kind.ONE_OFF: 0.02,
    Kind.ENERGY: 0.02,
    Kind.HOST_MEMORY: 0.002,
}
SESSION_DF = 4.0
# Counted, not timed: the same code gives the same number.
EXACT = frozenset({Kind.COUNT, Kind.DEVICE_MEMORY})

CONFIDENCE_TAIL = 0.025  # two-sided 95 %
_LARGEST = 700.0  # exp(709) is the largest float
POWER_TAIL = 0.20  # the smallest detectable change is found in 80 % of runs


@dataclass(frozen=True, slots=True)
class Estimate:
    """The log of head over base, its standard error and degrees of freedom."""

    log_ratio: float
    error: float
    df: float

    def interval(self, limit: float) -> Interval:
        """Turn into ratios; `limit` is the relative change that must be proven exceeded."""
        reach = student.upper_quantile(CONFIDENCE_TAIL, self.df) * self.error
        power = student.upper_quantile(POWER_TAIL, self.df) * self.error
        return Interval(
            low=_exp(self.log_ratio - reach),
            high=_exp(self.log_ratio + reach),
            smallest_detectable=_exp(math.log1p(limit) + reach + power) - 1,
        )


def centre(kind: Kind, sessions: Sessions) -> float:
    """Return the one value that stands for a side.

    Noisy kinds: the geometric mean of the sessions' geometric means, so that the ratio of two
    centres is the ratio that is judged. Exact kinds: the largest value that was seen. All others:
    the median of all values.
    """
    if kind in SESSION_SPREAD:
        return math.exp(_mean_log(sessions))
    values = [value for session in sessions for value in session]
    return max(values) if kind in EXACT else statistics.median(values)


def estimate(kind: Kind, base: Sessions, head: Sequence[float]) -> Estimate | None:
    """Compare two sides of a noisy metric; `None` when no side has two processes in a session.

    One launch says nothing about how far the next one will be from it.
    """
    groups = [[math.log(value) for value in session] for session in (*base, head)]
    df = sum(len(group) - 1 for group in groups)
    if df == 0:
        return None
    launch_variance = sum(_squares(group) for group in groups) / df
    base_weight = sum(1 / len(session) for session in base) / len(base) ** 2
    launch_part = launch_variance * (base_weight + 1 / len(head))
    session_part = SESSION_SPREAD[kind] ** 2 * (1 + 1 / len(base))
    return Estimate(
        log_ratio=statistics.fmean(groups[-1]) - _mean_log(base),
        error=math.sqrt(launch_part + session_part),
        df=_welch_satterthwaite(launch_part, df, session_part, SESSION_DF),
    )


def _exp(logarithm: float) -> float:
    """Stay finite: of processes that differ a billionfold nothing more has to be said."""
    return math.exp(min(logarithm, _LARGEST))


def _mean_log(sessions: Sessions) -> float:
    return statistics.fmean(
        statistics.fmean(math.log(value) for value in session) for session in sessions
    )


def _squares(group: Sequence[float]) -> float:
    mean = statistics.fmean(group)
    return sum((value - mean) ** 2 for value in group)


def _welch_satterthwaite(a: float, df_a: float, b: float, df_b: float) -> float:
    """Degrees of freedom of a sum of two estimated variances (Satterthwaite 1946)."""
    return (a + b) ** 2 / (a * a / df_a + b * b / df_b)
