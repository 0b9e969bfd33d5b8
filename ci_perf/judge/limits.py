"""The limits that hold where suite.toml says nothing."""

from ci_perf.model import metrics
from ci_perf.model.suite import Limit

_MIB = 2**20

# Time 5 %: the launch spread of common GPU kernels is 0.2-3 % (docs/measuring.md), so a smaller
# limit would mostly answer "inconclusive". Allocated memory: the allocator rounds to 2 MiB
# blocks. Host memory moves a little with the number of warm-up steps and the page cache.
# One-off times are skewed between launches: shown, and only when they are felt. Scaling 5 %: it
# is made of two step times. Shares: 5 percentage points of a step. Energy is as noisy as time and
# power together. Operators and FLOPs do not gate: a fusion, or another layer, changes them on
# purpose, and what they cost is gated as time and memory; shown, they explain it.
DEFAULT = {
    metrics.STEP_TIME.name: Limit(relative=0.05),
    metrics.PEAK_ALLOCATED.name: Limit(relative=0.01, absolute=2 * _MIB),
    metrics.HOST_RSS_PEAK.name: Limit(relative=0.02, absolute=8 * _MIB),
    metrics.GRAPH_BREAKS.name: Limit(),
    metrics.RECOMPILES.name: Limit(),
    metrics.GRAPHS.name: Limit(gate=False),
    metrics.PEAK_RESERVED.name: Limit(relative=0.05, absolute=2 * _MIB, gate=False),
    metrics.SCALING_EFFICIENCY.name: Limit(relative=0.05),
    metrics.OPERATORS.name: Limit(gate=False),
    metrics.FLOPS.name: Limit(gate=False),
    metrics.FIRST_STEP.name: Limit(relative=0.25, absolute=2.0, gate=False),
    metrics.COMPILE_COLD.name: Limit(relative=0.25, absolute=2.0, gate=False),
    metrics.COMPILE_WARM.name: Limit(relative=0.25, absolute=2.0, gate=False),
    metrics.ENERGY.name: Limit(relative=0.1, gate=False),
    metrics.DATA_WAIT.name: Limit(absolute=0.05, gate=False),
    metrics.H2D.name: Limit(absolute=0.05, gate=False),
    # Far above what rounding does to a loss in fp32, far below what a wrong formula does.
    metrics.FINGERPRINT: Limit(relative=0.001, gate=False),
    # Fixed programs repeat within 1 to 2 % on a machine that is left alone.
    metrics.CANARY: Limit(relative=0.03),
}
