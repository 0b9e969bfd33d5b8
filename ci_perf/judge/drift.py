"""Whether main itself has moved away from where its baseline began, by steps too small to be seen.

Each pull request may lose a little, within its limit; a history that grows shows the sum. This is
a notice about main, and no verdict about a head.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ci_perf.judge import distributions, metric_values, variability
from ci_perf.judge import policy as sizes
from ci_perf.judge.policy import KIND_OF, PRIOR_DF_CAP, SMALLEST_VARIANCE, PolicyKind
from ci_perf.judge.variability import UNKNOWN, Variance
from ci_perf.model import metrics
from ci_perf.model.comparison import Drifted
from ci_perf.model.metrics import Better, Metric
from ci_perf.model.suite import Limits
from ci_perf.model.summary import Sitting, Subject

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

Floor = Callable[[Subject, Metric], float | None]
"""From which size on a drift is told, as a logarithm; `None` for what nobody asks about."""


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
    """The line of one metric, and from which size on its rise is told."""

    kind: PolicyKind
    line: Line
    floor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Watched:
    subject: Subject
    metric: Metric
    sessions: Sequence[Sitting]
    trend: Trend


def gated(limits: Limits) -> Floor:
    """Return what a suite gates, each metric with its limit; where exact, the limit counts as 0."""

    def floor(subject: Subject, metric: Metric) -> float | None:
        limit = limits.of(subject.workload).get(metric.name)
        values = metric_values.of_current_epoch(subject, metric)
        if limit is None or not limit.gate or not values:
            return None
        if metric.kind not in KIND_OF:
            return 0.0
        return math.log1p(sizes.relative_size(limit, metric_values.centre(metric.kind, values)))

    return floor


def find(history: Sequence[Subject], floor: Floor) -> tuple[Drifted, ...]:
    """Return what has drifted beyond its floor, largest first, by the sessions of its epoch."""
    watched = [one for subject in history for one in _watched(subject, floor)]
    told = have_drifted([one.trend for one in watched])
    drifted = [one for one, is_told in zip(watched, told, strict=True) if is_told]
    drifted.sort(key=lambda one: -abs(one.trend.line.rise))
    return tuple(map(_told, drifted))


def have_drifted(trends: Sequence[Trend]) -> list[bool]:
    """Say of each trend of a suite, in their order, whether its rise is above its floor and chance.

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


def line(means: Sequence[float]) -> Line | None:
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


def _watched(subject: Subject, floor: Floor) -> Iterable[_Watched]:
    for metric in metrics.JUDGED:
        kind = KIND_OF.get(metric.kind)
        least = floor(subject, metric)
        if kind is None or least is None:
            continue
        through = line(
            [_mean_log(values) for values in metric_values.of_current_epoch(subject, metric)]
        )
        if through is not None:
            yield _Watched(
                subject=subject,
                metric=metric,
                sessions=metric_values.current_sessions(subject.sessions, metric.name),
                trend=Trend(kind=kind, line=through, floor=least),
            )


def _mean_log(session: Iterable[float]) -> float:
    return statistics.fmean(map(math.log, session))


def _told(watched: _Watched) -> Drifted:
    is_higher_better = watched.metric.better is Better.HIGHER
    rise = watched.trend.line.rise
    return Drifted(
        workload=watched.subject.workload,
        metric=watched.metric.name,
        ratio=math.exp(-rise if is_higher_better else rise),
        sessions=len(watched.sessions),
        since=watched.sessions[0].recorded_at,
    )
