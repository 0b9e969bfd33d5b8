"""Samples of any harness in, a comparison out: screened all together, suspects confirmed by pairs.

A launch counts once, by the median of its steps; the judge works with the logarithm of that.
"""

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_perf.judge import changes, compare, decide, variability, verdicts
from ci_perf.judge.decide import Decision, NoisyMetric
from ci_perf.judge.metric_values import History
from ci_perf.judge.policy import PolicyKind, default_limits, policy_of
from ci_perf.model import metrics, validity
from ci_perf.model.comparison import (
    Change,
    Comparison,
    Row,
    Side,
    Uncompared,
    Verdict,
    severity_of,
    worst,
)
from ci_perf.model.metrics import Better
from ci_perf.model.run import Source, Tool
from ci_perf.model.samples import SUITE, Launch, Sampled, Samples
from ci_perf.model.suite import FailOn, Limit, Preset
from ci_perf.version import __version__

# What is exact and needs room all the same: the allocator's rounding. Counts need none.
_EXACT_LIMITS = {metrics.PEAK_ALLOCATED.name: default_limits()[metrics.PEAK_ALLOCATED.name]}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noisy:
    """A noisy metric, and the logarithms by which it is judged."""

    sampled: Sampled
    candidate: NoisyMetric

    def shown(self, cost: float) -> float:
        """Turn back into the metric's own unit."""
        is_higher = self.sampled.metric.known().better is Better.HIGHER
        return math.exp(-cost if is_higher else cost)


def judge(
    samples: Samples,
    *,
    base: str,
    head: str,
    preset: Preset = "default",
    fail_on: FailOn = "regressed",
) -> Comparison:
    """Judge every workload of `samples`; `base` and `head` say where the launches come from."""
    noisy = [_noisy(one, preset) for one in samples.workloads if one.metric.kind != "exact"]
    exact = [one for one in samples.workloads if one.metric.kind == "exact"]
    rows = sorted([*_rows(noisy), *map(_exact, exact)], key=_severity)
    verdict = worst(row.verdict for row in rows)
    sessions = max((len(one.history) for one in samples.workloads), default=0)
    return Comparison(
        tool=Tool(version=__version__),
        suite=SUITE,
        selection=(),
        verdict=verdict,
        exit_code=compare.exit_code(verdict, rows, fail_on),
        base=_side(base, sessions),
        head=_side(head, 1 if rows else 0),
        validity=validity.of(()),
        differences=(),
        rows=tuple(rows),
    )


def summary(launch: Launch) -> float:
    """Return the one number that stands for a launch: the median of its steps."""
    return statistics.median(launch) if isinstance(launch, tuple) else launch


def _steps(launch: Launch) -> tuple[float, ...]:
    return launch if isinstance(launch, tuple) else (launch,)


def _side(label: str, sessions: int) -> Side:
    """Describe a side of which only the numbers are known."""
    source = Source(commit="unknown", branch="unknown", dirty=False)
    return Side(
        label=label, run="", source=source, machine=None, sessions=sessions, oldest="", newest=""
    )


def _severity(row: Row) -> tuple[int, float, str]:
    """Worst verdict first, large changes before small ones."""
    size = -abs(row.ratio - 1) if isinstance(row, Change) and row.ratio else 0.0
    return severity_of(row).rank, size, row.workload


# --- noisy kinds


def _noisy(sampled: Sampled, preset: Preset) -> _Noisy:
    sign = -1.0 if sampled.metric.direction == "higher" else 1.0
    kind = PolicyKind(sampled.metric.kind)

    def cost(launch: Launch) -> float:
        return sign * math.log(summary(launch))

    history = [[cost(launch) for launch in session] for session in sampled.history]
    launches = [*itertools.chain(*sampled.history, sampled.head, *sampled.pairs)]
    candidate = NoisyMetric(
        kind=kind,
        policy=policy_of(kind, preset),
        history=History(current=history) if history else None,
        head=[cost(launch) for launch in sampled.head],
        pairs=[(cost(base), cost(head)) for base, head in sampled.pairs],
        tick=variability.relative_tick(
            itertools.chain(*map(_steps, launches)), map(summary, launches)
        ),
    )
    return _Noisy(sampled=sampled, candidate=candidate)


def _rows(noisy: Sequence[_Noisy]) -> Iterator[Row]:
    """Decide together what has two sides; what has one is said to have no partner."""
    whole = [one for one in noisy if _has_two_sides(one.candidate)]
    decisions = decide.decide([one.candidate for one in whole])
    for one, decision in zip(whole, decisions, strict=True):
        yield _change(one, decision)
    for one in noisy:
        if not _has_two_sides(one.candidate):
            yield _alone(one)


def _has_two_sides(one: NoisyMetric) -> bool:
    return bool(one.pairs) or (one.history is not None and bool(one.head))


def _alone(one: _Noisy) -> Uncompared:
    known = one.candidate.history
    sessions = known.current if known else [one.candidate.head]
    return _uncompared(one.sampled, one.shown(decide.centre(sessions)))


def _change(one: _Noisy, decision: Decision) -> Change:
    return changes.change_of_noisy(
        decision,
        one.candidate.policy,
        workload=one.sampled.workload,
        metric=one.sampled.metric.known().name,
        shown=one.shown,
    )


# --- exact kinds, and what has no partner


def _exact(sampled: Sampled) -> Row:
    """Compare ranges. Where there are pairs, they count: both sides met the same machine."""
    base = [[summary(launch) for launch in session] for session in sampled.history]
    head = [summary(launch) for launch in sampled.head]
    if sampled.pairs:
        base = [[summary(before) for before, _ in sampled.pairs]]
        head = [summary(after) for _, after in sampled.pairs]
    metric = sampled.metric.known()
    if not (base and head):
        return _uncompared(sampled, max(value for session in (*base, head) for value in session))
    ruling = verdicts.rule(metric, _EXACT_LIMITS.get(metric.name, Limit()), base, head)
    return Change(
        workload=sampled.workload,
        metric=metric.name,
        base=ruling.base,
        head=ruling.head,
        base_processes=sum(map(len, base)),
        head_processes=len(head),
        base_sessions=len(base),
        items_per_step=1.0,
        item_unit="step",
        ratio=ruling.ratio,
        interval=None,
        limit=ruling.limit,
        margin=ruling.limit,
        smallest_detectable=ruling.limit,
        gate=True,
        verdict=ruling.verdict,
        code=ruling.code,
    )


def _uncompared(sampled: Sampled, centre: float) -> Uncompared:
    """Say that a side is empty, so that nothing ever vanishes."""
    is_missing = bool(sampled.history)
    metric = sampled.metric.known().name
    return Uncompared(
        workload=sampled.workload,
        metric=metric,
        verdict=Verdict.MISSING if is_missing else Verdict.NEW,
        code="metric_missing" if is_missing else "metric_new",
        base={metric: centre} if is_missing else {},
        head={} if is_missing else {metric: centre},
        gate=True,
        note="",
        output="",
        parameters={},
    )
