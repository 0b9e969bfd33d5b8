"""Whether main itself has moved away from where its baseline began, by steps too small to be seen.

Each pull request may lose a little, within its limit; a history that grows shows the sum. This is
a notice about main, and no verdict about a head.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ci_perf.judge import evidence, logarithms, student, subjects
from ci_perf.judge import limits as sizes
from ci_perf.judge.policy import KIND_OF
from ci_perf.model import metrics
from ci_perf.model.comparison import Drifted
from ci_perf.model.metrics import Better, Metric
from ci_perf.model.suite import Limits
from ci_perf.model.summary import Sitting, Subject

# Two sessions in a third: fewer have no spread, and no test.
LEAST_SESSIONS = 6
# The chance that any notice is wrong, over all metrics that are looked at together. A choice: a
# notice fails no job, but one that is often wrong is not read.
ALPHA = 0.05

Floor = Callable[[Subject, Metric], float | None]
"""From which size on a drift is told, as a logarithm; `None` for what nobody asks about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thirds:
    """The oldest and the newest third of the session means of one metric, as logarithms."""

    oldest: Sequence[float]
    newest: Sequence[float]

    @property
    def difference(self) -> float:
        """How far the newest third lies above the oldest."""
        return statistics.fmean(self.newest) - statistics.fmean(self.oldest)

    def p_value(self) -> float:
        """Return the two-sided p of Welch's t-test."""
        a, b = (
            logarithms.squares(third) / (len(third) - 1) / len(third)
            for third in (self.oldest, self.newest)
        )
        if a + b == 0:
            return 1.0 if self.difference == 0 else 0.0
        df = (a + b) ** 2 / (a**2 / (len(self.oldest) - 1) + b**2 / (len(self.newest) - 1))
        return 2 * student.upper_tail(abs(self.difference) / math.sqrt(a + b), df)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    subject: Subject
    metric: Metric
    floor: float
    sessions: Sequence[Sitting]
    thirds: Thirds


def gated(limits: Limits) -> Floor:
    """Return what a suite gates, each metric with its limit; where exact, the limit counts as 0."""

    def floor(subject: Subject, metric: Metric) -> float | None:
        limit = limits.of(subject.workload).get(metric.name)
        values = subjects.values(subject, metric)
        if limit is None or not limit.gate or not values:
            return None
        if metric.kind not in KIND_OF:
            return 0.0
        return math.log1p(sizes.size(limit, evidence.centre(metric.kind, values)))

    return floor


def find(history: Sequence[Subject], floor: Floor) -> tuple[Drifted, ...]:
    """Return what has drifted beyond its floor, largest first, by the sessions of its epoch."""
    looked = [one for subject in history for one in _looked(subject, floor)]
    found = [one for one in looked if _has_drifted(one, ALPHA / len(looked))]
    found.sort(key=lambda one: -abs(one.thirds.difference))
    return tuple(map(_told, found))


def thirds(sessions: Iterable[Sequence[float]]) -> Thirds | None:
    """Split the session means of a noisy metric; `None` while there are too few sessions."""
    means = [statistics.fmean(map(math.log, session)) for session in sessions]
    if len(means) < LEAST_SESSIONS:
        return None
    size = len(means) // 3
    return Thirds(oldest=means[:size], newest=means[-size:])


def _looked(subject: Subject, floor: Floor) -> Iterable[_Looked]:
    for metric in metrics.JUDGED:
        if metric.kind not in KIND_OF:
            continue
        least = floor(subject, metric)
        found = thirds(subjects.values(subject, metric))
        if least is not None and found is not None:
            yield _Looked(
                subject=subject,
                metric=metric,
                floor=least,
                sessions=subjects.current(subject.sessions, metric.name),
                thirds=found,
            )


def _has_drifted(one: _Looked, alpha: float) -> bool:
    return abs(one.thirds.difference) > one.floor and one.thirds.p_value() < alpha


def _told(one: _Looked) -> Drifted:
    is_higher_better = one.metric.better is Better.HIGHER
    return Drifted(
        workload=one.subject.workload,
        metric=one.metric.name,
        ratio=math.exp(-one.thirds.difference if is_higher_better else one.thirds.difference),
        sessions=len(one.sessions),
        since=one.sessions[0].recorded_at,
    )
