"""Exact metrics, and what allows no interval: ranges decide, with a tolerance."""

from collections.abc import Sequence
from dataclasses import dataclass

from ci_perf.judge import metric_values
from ci_perf.judge.metric_values import Sessions
from ci_perf.model.comparison import Verdict
from ci_perf.model.metrics import Metric
from ci_perf.model.suite import Limit

BEYOND, WITHIN, OVERLAP = "beyond_limit", "within_limit", "ranges_overlap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What is said of one metric. ``code`` is explained in docs/judging.md."""

    base: float
    head: float
    ratio: float | None
    limit: float
    verdict: Verdict
    code: str


def rule(metric: Metric, limit: Limit, base: Sessions, head: Sequence[float]) -> Ruling:
    """Compare ranges with a tolerance; every side has at least one value.

    Lower is better for every such metric.
    """
    before = [value for session in base for value in session]
    tolerance = max(limit.relative * max(before), limit.absolute)
    verdict, code = _ranges(before, head, tolerance)
    low, high = (
        metric_values.centre(metric.kind, [before]),
        metric_values.centre(metric.kind, [head]),
    )
    return Ruling(
        base=low,
        head=high,
        ratio=high / low if low else None,
        limit=tolerance / low if low else 0.0,
        verdict=verdict,
        code=code,
    )


def _ranges(base: Sequence[float], head: Sequence[float], tolerance: float) -> tuple[Verdict, str]:
    if min(head) > max(base) + tolerance:
        return Verdict.REGRESSED, BEYOND
    if max(head) < min(base) - tolerance:
        return Verdict.IMPROVED, BEYOND
    if max(head) <= max(base) + tolerance and min(head) >= min(base) - tolerance:
        return Verdict.UNCHANGED, WITHIN
    return Verdict.INCONCLUSIVE, OVERLAP
