"""What the committed history says of each metric: how much of it, how old, how steady.

For people who look after a machine. Nothing here is a verdict, and no gate reads it.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ci_perf.judge import distributions, drift, metric_values
from ci_perf.judge.metric_values import History
from ci_perf.judge.policy import KIND_OF
from ci_perf.model import metrics
from ci_perf.model.metrics import Metric
from ci_perf.model.summary import Sitting, Subject

Split = Callable[[Sequence[float]], Sequence[int]]
"""Finds the places in a series at which another level begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangePoint:
    """Where the level of a metric changes: the first session of the new one, by date and commit.

    ``ratio`` is the new level over the one before, as the number itself moves. ``accepted`` says
    that an epoch begins there: somebody knew.
    """

    since: str
    commit: str
    ratio: float
    accepted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Chronicle:
    """One metric of one workload.

    ``sessions`` are those of the current epoch, ``earlier`` those before; ``epoch`` counts accepted
    changes. ``spread`` is how much sessions of one epoch differ (standard deviation of the log),
    ``trend`` the end over the beginning of a straight line through the epoch; ``has_drifted`` says
    that the trend is beyond the limit and no chance. ``None`` where it cannot be known: too few
    sessions, or a metric that is compared exactly. ``changes`` is ``None`` where nobody looked for
    any.
    """

    workload: str
    metric: str
    sessions: int
    earlier: int
    epoch: int
    newest: str
    centre: float
    spread: float | None
    trend: float | None
    has_drifted: bool
    changes: tuple[ChangePoint, ...] | None


def of(
    history: Sequence[Subject], floor: drift.Floor, *, split: Split | None = None
) -> tuple[Chronicle, ...]:
    """Describe every metric that `floor` is known for, by workload and then as metrics are listed.

    `split` finds the change points; without it none are looked for.
    """
    drifted = {(one.workload, one.metric) for one in drift.find(history, floor)}
    return tuple(
        _chronicle(subject, metric, split, has_drifted=(subject.workload, metric.name) in drifted)
        for subject in sorted(history, key=lambda subject: subject.workload)
        for metric in metrics.JUDGED
        if floor(subject, metric) is not None and metric_values.of_current_epoch(subject, metric)
    )


def _chronicle(
    subject: Subject, metric: Metric, split: Split | None, *, has_drifted: bool
) -> Chronicle:
    found = metric_values.history(subject, metric)
    current = metric_values.current_sessions(subject.sessions, metric.name)
    is_noisy = metric.kind in KIND_OF
    return Chronicle(
        workload=subject.workload,
        metric=metric.name,
        sessions=len(current),
        earlier=sum(map(len, found.earlier)),
        epoch=metric_values.current_epoch(subject.sessions, metric.name),
        newest=max(session.recorded_at for session in current),
        centre=metric_values.centre(metric.kind, found.current),
        spread=_spread(found) if is_noisy else None,
        trend=_trend(found) if is_noisy else None,
        has_drifted=has_drifted,
        changes=_changes(subject, metric, split) if split and is_noisy else None,
    )


def _spread(found: History) -> float | None:
    """Return how much sessions differ around the mean of their epoch."""
    epochs = [
        [_mean_log(session) for session in epoch] for epoch in (found.current, *found.earlier)
    ]
    df = sum(len(epoch) - 1 for epoch in epochs)
    if df == 0:
        return None
    return math.sqrt(math.fsum(distributions.sum_of_squares(epoch) for epoch in epochs) / df)


def _trend(found: History) -> float | None:
    """Return how far a line through the epoch climbs, as the number itself moves."""
    line = drift.line([_mean_log(session) for session in found.current])
    return math.exp(line.rise) if line else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """Sessions that belong together, the first of them, and whether somebody accepted it."""

    first: Sitting
    mean: float
    accepted: bool


def _changes(subject: Subject, metric: Metric, split: Split) -> tuple[ChangePoint, ...]:
    """Return where each level but the first begins: epochs are known, others are looked for."""
    levels = list(_levels(subject, metric, split))
    return tuple(
        ChangePoint(
            since=after.first.recorded_at,
            commit=after.first.commit,
            ratio=math.exp(after.mean - before.mean),
            accepted=after.accepted,
        )
        for before, after in itertools.pairwise(levels)
    )


def _levels(subject: Subject, metric: Metric, split: Split) -> Iterator[_Level]:
    for sessions in metric_values.by_epoch(subject.sessions, metric.name):
        means = [_mean_log(metric_values.of_session(one, metric.name)) for one in sessions]
        bounds = [0, *split(means), len(means)]
        for low, high in itertools.pairwise(bounds):
            mean = statistics.fmean(means[low:high])
            yield _Level(first=sessions[low], mean=mean, accepted=low == 0)


def _mean_log(session: Iterable[float]) -> float:
    return statistics.fmean(map(math.log, session))
