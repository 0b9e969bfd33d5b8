"""The limits that hold where suite.toml says nothing."""

from ci_perf.model import metrics
from ci_perf.model.suite import Limit

_MIB = 2**20

# Time 5 %: the launch spread of common GPU kernels is 0.2-3 % (docs/measuring.md), so a smaller
# limit would mostly answer "inconclusive". Allocated memory: the allocator rounds to 2 MiB
# blocks. Host memory moves a little with the number of warm-up steps and the page cache.
# One-off times are skewed between launches: shown, and only when they are felt.
DEFAULT = {
    metrics.STEP_TIME.name: Limit(relative=0.05),
    metrics.PEAK_ALLOCATED.name: Limit(relative=0.01, absolute=2 * _MIB),
    metrics.HOST_RSS_PEAK.name: Limit(relative=0.02, absolute=8 * _MIB),
    metrics.GRAPH_BREAKS.name: Limit(),
    metrics.RECOMPILES.name: Limit(),
    metrics.GRAPHS.name: Limit(gate=False),
    metrics.PEAK_RESERVED.name: Limit(relative=0.05, absolute=2 * _MIB, gate=False),
    metrics.FIRST_STEP.name: Limit(relative=0.25, absolute=2.0, gate=False),
}
