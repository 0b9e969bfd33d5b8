"""What the committed sessions say of each metric: how many, how steady, and whether it drifts.

Each pull request may lose a little, within its limit; a history that grows shows the sum. These are
notices about main, for whoever looks after it. Nothing here is a verdict about a head.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ci_perf.judging import confirm, distributions, metric_values, variability
from ci_perf.judging.metric_values import History, Sessions, mean_logarithm
from ci_perf.judging.policy import (
    KIND_OF,
    PRIOR_DF_CAP,
    SMALLEST_VARIANCE,
    PolicyKind,
    policy_of,
    relative_size,
)
from ci_perf.judging.variability import UNKNOWN, Variance
from ci_perf.model.comparison import Drifted
from ci_perf.model.metrics import Better, Metric
from ci_perf.model.suite import Limits, find_limit
from ci_perf.model.summary import SessionNumbers, Subject

# A line through three sessions leaves one degree of freedom, which shows no spread.
LEAST_SESSIONS = 4
# The chance of any wrong notice about a main that does not move: over all metrics of a suite, and
# over this many checks, each with a new session. A choice: a notice fails no job, but one that is
# often wrong is not read.
ALPHA = 0.05
CHECKS = 30
# What the suite's common spread around the lines may count at most beside a metric's own: with 30
# degrees of freedom, up to 7 % of simulated stable suites got a notice, with 8 at most 5 %.
_PRIOR_DF = (1.0, PRIOR_DF_CAP)
# Beyond it the inflation has no bound.
_MOST_CORRELATED = 0.9

Threshold = Callable[[Subject, Metric], float | None]
"""The size from which a drift is reported, as a logarithm; `None` for what nobody asks about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What the lines of a suite have in common: the variance of sessions around them.

    ``inflation`` is by how much the error of a line is larger, as a variance, because a session
    resembles the one before.
    """

    variance: Variance = UNKNOWN
    inflation: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The straight line through the session means of one metric, oldest first, as logarithms.

    ``rise`` is how far it climbs from the first session to the last, ``residual`` the variance of
    the sessions around it. ``autocorrelation`` is how much a session resembles the one before; its
    mean is 0 where sessions are independent.
    """

    sessions: int
    rise: float
    residual: Variance
    autocorrelation: float

    def p_value(self, suite: Noise = Noise()) -> float:
        """Return the two-sided p of a rise of zero.

        Least squares on positions 0 to n - 1, whose sum of squares is n (n^2 - 1) / 12.
        """
        n = self.sessions
        variance = variability.moderate(self.residual, suite.variance)
        spread = max(variance.value, SMALLEST_VARIANCE) * suite.inflation
        error = math.sqrt(spread * 12 * (n - 1) / (n * (n + 1)))
        return 2 * distributions.student_tail(abs(self.rise) / error, variance.df)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """The line of one metric, and the size from which its rise is reported."""

    kind: PolicyKind
    line: Line
    floor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watched:
    subject: Subject
    metric: Metric
    sessions: Sequence[SessionNumbers]
    trend: Trend


def find_thresholds(limits: Limits) -> Threshold:
    """Return the thresholds of a suite: the limits of what gates, and 0 where that is exact."""

    def threshold(subject: Subject, metric: Metric) -> float | None:
        limit = find_limit(limits.of(subject.workload), metric.name)
        values = metric_values.list_current_epoch(subject, metric)
        if limit is None or not limit.gate or not values:
            return None
        if metric.kind not in KIND_OF:
            return 0.0
        return math.log1p(relative_size(limit, metric_values.centre(metric.kind, values)))

    return threshold


def find_drifted(history: Sequence[Subject], threshold: Threshold) -> tuple[Drifted, ...]:
    """Return what has drifted beyond its threshold, largest first, by the sessions of its epoch."""
    watched = [metric for subject in history for metric in _find_watched(subject, threshold)]
    answers = have_drifted([metric.trend for metric in watched])
    drifted = [metric for metric, has_drifted in zip(watched, answers, strict=True) if has_drifted]
    drifted.sort(key=lambda metric: -abs(metric.trend.line.rise))
    return tuple(map(_as_drifted, drifted))


def have_drifted(trends: Sequence[Trend]) -> list[bool]:
    """Say of each trend of a suite, in order, whether its rise is beyond its floor and chance.

    How much sessions differ is learned from all metrics of a kind together, as in the screen: four
    sessions of one metric alone say nearly nothing of it.
    """
    lines = {kind: [trend.line for trend in trends if trend.kind is kind] for kind in PolicyKind}
    noise = {kind: _noise(of_kind) for kind, of_kind in lines.items() if of_kind}
    return [
        abs(trend.line.rise) > trend.floor
        and trend.line.p_value(noise[trend.kind]) < ALPHA / CHECKS / len(trends)
        for trend in trends
    ]


def fit_line(means: Sequence[float]) -> Line | None:
    """Return the line through session means (logarithms); `None` while they are too few."""
    n = len(means)
    if n < LEAST_SESSIONS:
        return None
    slope, start = statistics.linear_regression(range(n), means)
    residuals = [mean - slope * place - start for place, mean in enumerate(means)]
    squares = math.fsum(residual**2 for residual in residuals)
    products = math.fsum(a * b for a, b in itertools.pairwise(residuals))
    # Of independent sessions, the residuals of a line have -2 / n: the trace of the residual
    # maker's first off-diagonal over that of its diagonal.
    autocorrelation = products / squares + 2 / n if squares else 0.0
    return Line(
        sessions=n,
        rise=slope * (n - 1),
        residual=Variance(squares / (n - 2), n - 2),
        autocorrelation=autocorrelation,
    )


def _noise(lines: Sequence[Line]) -> Noise:
    """Return what lines of one kind have in common.

    The inflation is that of first-order autoregression (Bayley and Hammersley 1946).
    """
    mean = statistics.fmean(line.autocorrelation for line in lines)
    correlation = min(max(mean, 0.0), _MOST_CORRELATED)
    return Noise(
        variance=variability.prior([line.residual for line in lines], _PRIOR_DF),
        inflation=(1 + correlation) / (1 - correlation),
    )


def _find_watched(subject: Subject, threshold: Threshold) -> Iterable[_Watched]:
    for metric in metric_values.find_recorded(subject.sessions):
        kind = KIND_OF.get(metric.kind)
        least = threshold(subject, metric)
        if kind is None or least is None:
            continue
        sessions = metric_values.list_current_epoch(subject, metric)
        line = fit_line(list(map(mean_logarithm, sessions)))
        if line is not None:
            yield _Watched(
                subject=subject,
                metric=metric,
                sessions=metric_values.current_sessions(subject.sessions, metric.name),
                trend=Trend(kind=kind, line=line, floor=least),
            )


def _as_drifted(watched: _Watched) -> Drifted:
    is_higher_better = watched.metric.better is Better.HIGHER
    rise = watched.trend.line.rise
    return Drifted(
        workload=watched.subject.workload,
        metric=watched.metric.name,
        ratio=math.exp(-rise if is_higher_better else rise),
        sessions=len(watched.sessions),
        since=watched.sessions[0].recorded_at,
    )


# --- every metric described, with its levels

Split = Callable[[Sequence[float]], Sequence[int]]
"""Finds the positions in a series at which another level begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricHistory:
    """What the sessions of the current epoch say of one metric of one workload.

    ``spread`` is how much sessions of one epoch differ (standard deviation of the log), ``trend``
    the end over the beginning of a straight line through the epoch; ``has_drifted`` says that the
    trend is beyond the limit and no chance. ``None`` where it cannot be known: too few sessions, or
    a metric that is compared exactly. ``excludes`` is the loss that all pairs of a check would
    exclude, of launches that differ as those of one session so far: how sharp the gate is here.
    """

    workload: str
    metric: str
    centre: float
    spread: float | None
    excludes: float | None
    trend: float | None
    has_drifted: bool


def describe(history: Sequence[Subject], threshold: Threshold) -> tuple[MetricHistory, ...]:
    """Describe every metric with a threshold, by workload and then as metrics are listed."""
    drifted = {(drift.workload, drift.metric) for drift in find_drifted(history, threshold)}
    return tuple(
        _metric_history(subject, metric, has_drifted=(subject.workload, metric.name) in drifted)
        for subject in sorted(history, key=lambda subject: subject.workload)
        for metric in metric_values.find_recorded(subject.sessions)
        if threshold(subject, metric) is not None
        and metric_values.list_current_epoch(subject, metric)
    )


def _metric_history(subject: Subject, metric: Metric, *, has_drifted: bool) -> MetricHistory:
    history = metric_values.history(subject, metric)
    is_noisy = metric.kind in KIND_OF
    line = fit_line(list(map(mean_logarithm, history.current))) if is_noisy else None
    return MetricHistory(
        workload=subject.workload,
        metric=metric.name,
        centre=metric_values.centre(metric.kind, history.current),
        spread=_spread(history) if is_noisy else None,
        excludes=_excludes(KIND_OF[metric.kind], history) if is_noisy else None,
        trend=math.exp(line.rise) if line else None,
        has_drifted=has_drifted,
    )


def _spread(history: History) -> float | None:
    """Return how much sessions differ around the mean of their epoch."""
    epochs = [
        [mean_logarithm(session) for session in epoch]
        for epoch in (history.current, *history.earlier)
    ]
    variance = variability.pool(epochs)
    return math.sqrt(variance.value) if variance.df else None


def _excludes(kind: PolicyKind, history: History) -> float | None:
    """Return the loss that the pairs exclude where they last look, if nothing has changed."""
    sessions = itertools.chain(history.current, *history.earlier)
    launches = variability.pool([list(map(math.log, session)) for session in sessions])
    if not launches.df:
        return None
    confirmation = confirm.Confirmation(
        policy=policy_of(kind),
        alpha=confirm.share_alpha(1),
        prior_variance=launches.value,
        prior_df=launches.df,
    )
    last = confirmation.looks.last
    reach = confirmation.reach(confirmation.calm_tail(last), last)
    return math.expm1(reach * math.sqrt(2 * launches.value))


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricLevel:
    """Sessions of one level: the place of the first among all sessions, and their centre.

    ``accepted``: an epoch begins there.
    """

    first: int
    centre: float
    accepted: bool


def levels(subject: Subject, metric: Metric, split: Split | None) -> list[MetricLevel]:
    """Return the levels of a metric, oldest first: its epochs are known, others are looked for.

    Those of a noisy metric by `split`; of an exact one, every other number is another level.
    """
    places = {id(session): place for place, session in enumerate(subject.sessions)}
    every: list[MetricLevel] = []
    for epoch in metric_values.by_epoch(subject.sessions, metric.name):
        values = [metric_values.list_session_values(session, metric.name) for session in epoch]
        bounds = [0, *_bounds(metric, values, split), len(values)]
        every += [
            MetricLevel(
                first=places[id(epoch[low])],
                centre=metric_values.centre(metric.kind, values[low:high]),
                accepted=low == 0,
            )
            for low, high in itertools.pairwise(bounds)
        ]
    return every


def _bounds(metric: Metric, epoch: Sessions, split: Split | None) -> Sequence[int]:
    """Return where another level begins within an epoch."""
    if metric.kind in metric_values.EXACT:
        seen = [max(session) for session in epoch]
        return [place for place in range(1, len(seen)) if seen[place] != seen[place - 1]]
    if split is None or metric.kind not in KIND_OF:
        return []
    return split(list(map(mean_logarithm, epoch)))
