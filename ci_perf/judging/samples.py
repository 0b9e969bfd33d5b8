"""Samples of any harness in, a comparison out, by the same rules as a run of ours.

A launch counts once, by the median of its steps.
"""

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence

import msgspec

from ci_perf.judging import changes, compare, rules, uncompared, variability
from ci_perf.judging.candidates import Candidate, Fact, choose
from ci_perf.judging.metric_values import History
from ci_perf.judging.policy import PolicyKind, default_limits, policy_of
from ci_perf.model import metrics
from ci_perf.model.base import SAMPLES_SUITE
from ci_perf.model.comparison import Comparison, Side
from ci_perf.model.metrics import Better, Kind, Metric
from ci_perf.model.run import Source, Tool
from ci_perf.model.samples import Launch, Sampled, SampledMetric, Samples
from ci_perf.model.suite import FailOn, Limit
from ci_perf.model.validity import validity_of
from ci_perf.version import __version__

# What is exact and has a tolerance all the same: the allocator's rounding. Counts need none.
_EXACT_LIMITS = {metrics.PEAK_ALLOCATED.name: default_limits()[metrics.PEAK_ALLOCATED.name]}


def judge(
    samples: Samples,
    *,
    failed: Mapping[str, str] = {},
    base: str,
    head: str,
    limit: float | None = None,
    fail_on: FailOn = "proven",
) -> Comparison:
    """Judge every workload of `samples`; `base` and `head` say where the launches come from.

    `limit` is that of times, as a share; without one, and for all others, it is the default.
    `failed` says of workloads why they have no numbers.
    """
    judgements = changes.judge([_candidate(sampled, limit) for sampled in samples.workloads])
    judged = [each.change or uncompared.describe_candidate(each.candidate) for each in judgements]
    missing = [
        uncompared.describe_failed_elsewhere(name, reason) for name, reason in failed.items()
    ]
    rows = compare.worst_first([*judged, *missing])
    trust = validity_of(())
    sessions = max((len(sampled.history) for sampled in samples.workloads), default=0)
    return Comparison(
        tool=Tool(version=__version__),
        suite=SAMPLES_SUITE,
        selection=(),
        verdict=rules.overall(rows, trust),
        exit_code=rules.exit_code(rows, trust, fail_on),
        base=_side(base, sessions),
        head=_side(head, 1 if rows else 0),
        validity=trust,
        differences=(),
        rows=tuple(rows),
    )


def _side(label: str, sessions: int) -> Side:
    """Describe a side of which only the numbers are known."""
    source = Source(commit="unknown", branch="unknown", dirty=False)
    return Side(
        label=label, run="", source=source, machine=None, sessions=sessions, oldest="", newest=""
    )


def _candidate(sampled: Sampled, limit: float | None) -> Candidate:
    metric = _metric(sampled.metric)
    is_exact = sampled.metric.kind == "exact"
    # The pairs of what is exact decide alone: both sides met the same machine.
    sessions = () if is_exact and sampled.pairs else sampled.history
    is_inverse = sampled.metric.direction == "higher" and metric.better is Better.LOWER
    return Candidate(
        workload=sampled.workload,
        metric=metric,
        limit=_limit(sampled.metric, limit),
        history=History(current=[_values(session) for session in sessions]) if sessions else None,
        head=_values(sampled.head),
        pairs=[(_value(base), _value(head)) for base, head in sampled.pairs],
        tick=0.0 if is_exact else _tick(sampled),
        facts=choose({Fact.INVERSE: is_inverse}),
    )


def _metric(sampled: SampledMetric) -> Metric:
    """Return the metric of ours, judged as the samples say that it behaves."""
    metric = sampled.known()
    if sampled.kind == "exact":
        return metric
    return msgspec.structs.replace(metric, kind=Kind(sampled.kind))


def _limit(sampled: SampledMetric, of_times: float | None) -> Limit:
    if sampled.kind == "exact":
        return _EXACT_LIMITS.get(sampled.known().name, Limit())
    kind = PolicyKind(sampled.kind)
    policy = policy_of(kind, of_times if kind is PolicyKind.TIME else None)
    return Limit(relative=math.expm1(policy.limit))


def _value(launch: Launch) -> float:
    """Return the one number that stands for a launch: the median of its steps."""
    return statistics.median(launch) if isinstance(launch, tuple) else launch


def _values(launches: Sequence[Launch]) -> list[float]:
    return [_value(launch) for launch in launches]


def _tick(sampled: Sampled) -> float:
    """Return what the steps of all launches were rounded to, relative to the smallest launch."""
    launches = [*itertools.chain(*sampled.history, sampled.head, *sampled.pairs)]
    steps = (launch if isinstance(launch, tuple) else (launch,) for launch in launches)
    return variability.relative_tick(itertools.chain(*steps), _values(launches))
