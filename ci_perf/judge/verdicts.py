"""From two sides of one metric and its limit to a verdict with a reason code."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ci_perf.judge import evidence
from ci_perf.judge.evidence import Sessions
from ci_perf.model.comparison import Interval, Verdict
from ci_perf.model.metrics import Better, Metric
from ci_perf.model.suite import Limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What is said of one metric. ``code`` is explained in docs/judging.md."""

    base: float
    head: float
    ratio: float | None
    interval: Interval | None
    limit: float
    verdict: Verdict
    code: str


def rule(metric: Metric, limit: Limit, base: Sessions, head: Sequence[float]) -> Ruling:
    """Judge one metric; every side has at least one value, and what has an interval is > 0."""
    if metric.kind in evidence.SESSION_SPREAD:
        return _rule_noisy(metric, limit, base, head)
    return _rule_ranges(metric, limit, [v for session in base for v in session], head)


def _rule_noisy(metric: Metric, limit: Limit, base: Sessions, head: Sequence[float]) -> Ruling:
    """Let the whole interval decide: beyond the limit, inside it, or neither."""
    low, high = evidence.centre(metric.kind, base), evidence.centre(metric.kind, [head])
    size = _relative(limit, low)
    found = evidence.estimate(
        metric.kind, [_costs(metric, session) for session in base], _costs(metric, head)
    )
    interval = found.interval(size) if found else None
    verdict, code = _three_way(interval, size)
    return Ruling(
        base=low,
        head=high,
        ratio=low / high if metric.better is Better.HIGHER else high / low,
        interval=interval,
        limit=size,
        verdict=verdict,
        code=code,
    )


def _costs(metric: Metric, values: Sequence[float]) -> list[float]:
    """Turn values into a quantity of which less is better, so that a ratio above 1 is worse."""
    return [1 / v for v in values] if metric.better is Better.HIGHER else list(values)


def _three_way(interval: Interval | None, limit: float) -> tuple[Verdict, str]:
    if interval is None:
        return Verdict.INCONCLUSIVE, "too_few_processes"
    worse, better = 1 + limit, 1 / (1 + limit)
    if interval.low > worse:
        return Verdict.REGRESSED, "beyond_limit"
    if interval.high < better:
        return Verdict.IMPROVED, "beyond_limit"
    if better < interval.low and interval.high < worse:
        return Verdict.UNCHANGED, "within_limit"
    return Verdict.INCONCLUSIVE, "not_worse" if interval.high < worse else "spread"


def _rule_ranges(
    metric: Metric, limit: Limit, base: Sequence[float], head: Sequence[float]
) -> Ruling:
    """Compare ranges with a tolerance, for what needs no statistics or allows none.

    Lower is better for every such metric.
    """
    tolerance = max(limit.relative * max(base), limit.absolute)
    verdict, code = _ranges(base, head, tolerance)
    low, high = evidence.centre(metric.kind, [base]), evidence.centre(metric.kind, [head])
    return Ruling(
        base=low,
        head=high,
        ratio=high / low if low else None,
        interval=None,
        limit=tolerance / low if low else 0.0,
        verdict=verdict,
        code=code,
    )


def _ranges(base: Sequence[float], head: Sequence[float], tolerance: float) -> tuple[Verdict, str]:
    if min(head) > max(base) + tolerance:
        return Verdict.REGRESSED, "beyond_limit"
    if max(head) < min(base) - tolerance:
        return Verdict.IMPROVED, "beyond_limit"
    if max(head) <= max(base) + tolerance and min(head) >= min(base) - tolerance:
        return Verdict.UNCHANGED, "within_limit"
    return Verdict.INCONCLUSIVE, "ranges_overlap"


def _relative(limit: Limit, base: float) -> float:
    """Take the larger of both parts of a limit, as a share of the baseline."""
    size = max(limit.relative, limit.absolute / base)
    assert math.isfinite(size)
    return size
