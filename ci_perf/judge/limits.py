"""The limits where `suite.toml` says nothing, and what a limit means for one baseline."""

import math

from ci_perf.judge.policy import KIND_OF, Policy, policy
from ci_perf.model import metrics
from ci_perf.model.metrics import Metric
from ci_perf.model.suite import Limit, Preset

_MIB = 2**20

# What is noisy has the floor and margin of its kind (judge/policy.py); said here is only what comes
# on top. Host memory moves a little with the number of warm-up steps and the page cache. One-off
# times are skewed between launches: shown, and only when they are felt. The tail is information:
# it needs twice the launches. Scaling efficiency is made of two step times, which gate.
_NOISY = {
    metrics.STEP_TIME.name: Limit(),
    metrics.STEP_P95.name: Limit(gate=False),
    metrics.SCALING_EFFICIENCY.name: Limit(gate=False),
    metrics.FIRST_STEP.name: Limit(absolute=2.0, gate=False),
    metrics.ENERGY.name: Limit(gate=False),
    metrics.HOST_RSS_PEAK.name: Limit(absolute=8 * _MIB),
}
# Allocated memory: the allocator rounds to 2 MiB blocks. Shares: 5 percentage points of a step.
# Operators and FLOPs do not gate: a fusion, or another layer, changes them on purpose, and what
# they cost is gated as time and memory; shown, they explain it.
_RANGES = {
    metrics.COMPILE_COLD.name: Limit(relative=0.25, absolute=2.0, gate=False),
    metrics.COMPILE_WARM.name: Limit(relative=0.25, absolute=2.0, gate=False),
    metrics.DATA_WAIT.name: Limit(absolute=0.05, gate=False),
    metrics.H2D.name: Limit(absolute=0.05, gate=False),
    metrics.PEAK_ALLOCATED.name: Limit(relative=0.01, absolute=2 * _MIB),
    metrics.PEAK_RESERVED.name: Limit(relative=0.05, absolute=2 * _MIB, gate=False),
    metrics.GRAPHS.name: Limit(gate=False),
    metrics.GRAPH_BREAKS.name: Limit(),
    metrics.RECOMPILES.name: Limit(),
    metrics.OPERATORS.name: Limit(gate=False),
    metrics.FLOPS.name: Limit(gate=False),
    # Far above what rounding does to a loss in fp32, far below what a wrong formula does.
    metrics.FINGERPRINT: Limit(relative=0.001, gate=False),
    # Fixed programs repeat within 1 to 2 % on a machine that is left alone.
    metrics.CANARY: Limit(relative=0.03),
}


def defaults(preset: Preset = "default") -> dict[str, Limit]:
    """Return the limit of every metric, and of the two that belong to none."""
    noisy = {name: _of_preset(name, limit, preset) for name, limit in _NOISY.items()}
    return {metric: {**noisy, **_RANGES}[metric] for metric in metrics.LIMITED}


def size(limit: Limit, base: float) -> float:
    """Return the larger of both parts of a limit, as a share of the baseline (> 0)."""
    found = max(limit.relative, limit.absolute / base)
    assert math.isfinite(found)
    return found


def applied(metric: Metric, limit: Limit, base: float) -> Policy:
    """Return the policy of a noisy metric under this limit; `base` is its baseline's value (> 0).

    An absolute part that reaches beyond the margin takes it along, to twice its size.
    """
    of_kind = policy(KIND_OF[metric.kind])
    floor = size(limit, base)
    margin = limit.margin if limit.margin > floor else 2 * floor
    return Policy(
        floor=math.log1p(floor),
        margin=math.log1p(margin) if margin else of_kind.margin,
        session_spread=of_kind.session_spread,
        prior_df=of_kind.prior_df,
    )


def _of_preset(name: str, limit: Limit, preset: Preset) -> Limit:
    """Fill in what a preset says of this kind of metric, rounded as people would write it."""
    found = policy(KIND_OF[metrics.BY_NAME[name].kind], preset)
    return Limit(
        relative=round(math.expm1(found.floor), 6),
        absolute=limit.absolute,
        margin=round(math.expm1(found.margin), 6),
        gate=limit.gate,
    )
