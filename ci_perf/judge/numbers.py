"""From what a process recorded to one number per metric."""

import statistics

from ci_perf.model import metrics
from ci_perf.model.run import Process, Timed
from ci_perf.model.summary import Numbers


def of_process(process: Process) -> Numbers:
    """One number per metric of this process; a metric that the machine lacks is absent.

    The step time is that of the block that the run's own ``statistic`` names: the median keeps one
    interrupted block from speaking for all, the minimum keeps a busy machine from speaking at all.
    """
    numbers = {
        metrics.STEP_TIME.name: _step_time(process.timed),
        metrics.FIRST_STEP.name: process.phases.first_step_s,
        metrics.HOST_RSS_PEAK.name: float(process.memory.host_rss_peak_bytes),
        metrics.GRAPHS.name: float(process.compiles.graphs),
        metrics.GRAPH_BREAKS.name: float(process.compiles.graph_breaks),
        metrics.RECOMPILES.name: float(process.compiles.recompiles),
    }
    if process.memory.device is not None:
        device = process.memory.device
        numbers[metrics.PEAK_ALLOCATED.name] = float(device.peak_allocated_bytes)
        numbers[metrics.PEAK_RESERVED.name] = float(device.peak_reserved_bytes)
    return numbers


def _step_time(timed: Timed) -> float:
    blocks = sorted(timed.block_s)
    match timed.statistic:
        case "median":
            return statistics.median(blocks)
        case "p25":
            return blocks[(len(blocks) - 1) // 4]
        case "min":
            return blocks[0]
