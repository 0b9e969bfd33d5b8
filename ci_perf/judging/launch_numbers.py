"""From what a process recorded to one number per metric."""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from ci_perf.judging import peaks, variability
from ci_perf.judging.policy import TRIMMED_BLOCKS
from ci_perf.model import metrics
from ci_perf.model.base import Scalar, Statistic
from ci_perf.model.metrics import Metric
from ci_perf.model.process import CompileCounts, Process, StepPhases, Timed
from ci_perf.model.run import Measured, Pair, Paired, Run
from ci_perf.model.summary import Numbers
from ci_perf.model.validity import Evidence

WORLD_SIZE = "world_size"


def list_workload_numbers(workload: Measured, run: Run) -> tuple[Numbers, ...]:
    """One number per metric of each process, with what only the run knows about it."""
    alone = _alone(workload, run)
    of_processes = []
    for process in workload.processes:
        numbers = _find_process_numbers(process, workload, run)
        if alone is not None:
            numbers |= _compare_with_alone(process, workload, alone)
        of_processes.append(numbers)
    return tuple(of_processes)


def launch_s(workload: Measured) -> float:
    """Return how long a launch took, by the median: the sum of the phases of its process."""
    return round(statistics.median(map(process_s, workload.processes)), 3)


def process_s(process: Process) -> float:
    """Return how long a launch took: the sum of its phases."""
    return math.fsum(msgspec.structs.astuple(process.phases))


def list_pair_numbers(
    paired: Paired, workload: Measured, run: Run
) -> tuple[tuple[Numbers, Numbers], ...]:
    """One number per metric of both sides of each pair: (base, head).

    Without scaling efficiency: the single process of the same turn is not part of a pair. The step
    times of a resident pair have the ratio of its blocks.
    """
    return tuple(_find_pair_numbers(pair, workload, run) for pair in paired.pairs)


def _find_pair_numbers(pair: Pair, workload: Measured, run: Run) -> tuple[Numbers, Numbers]:
    base, head = (
        _find_process_numbers(pair.base, workload, run),
        _find_process_numbers(pair.head, workload, run),
    )
    if pair.forked:
        base, head = _without_start(base), _without_start(head)
    if not _is_by_blocks(pair):
        return base, head
    name = metrics.STEP_TIME.name
    half = step_difference(pair) / 2
    middle = math.sqrt(base[name] * head[name])
    return base | {name: middle * math.exp(-half)}, head | {name: middle * math.exp(half)}


def _without_start(numbers: Numbers) -> Numbers:
    kinds = {name: metrics.metric_of(name).kind for name in numbers}
    return {name: numbers[name] for name in numbers if kinds[name] not in metrics.OF_START}


def step_difference(pair: Pair) -> float:
    """Return the logarithm of the head's step time over the base's."""
    base, head = pair.base.timed, pair.head.timed
    if _is_by_blocks(pair):
        return ratio_of_blocks(base.block_s, head.block_s)
    return math.log(
        _reduce_timed_blocks(head, head.block_s) / _reduce_timed_blocks(base, base.block_s)
    )


def _is_by_blocks(pair: Pair) -> bool:
    return pair.resident and pair.base.timed.statistic == "median"


def ratio_of_blocks(base_s: Sequence[float], head_s: Sequence[float]) -> float:
    """Return the logarithm of head over base of a resident pair, by the blocks side by side.

    The mean of the middle of the ratios: as many are left out as gives it the least error. What is
    slow for some seconds is in two neighbours alike, but may be in half of the blocks of one
    process and in less of the other's, where it moves the median: pairs differ by 3.9 % where
    medians of the same blocks differ by 8.1 % (decision 009).
    """
    ratios = [math.log(head / base) for base, head in zip(base_s, head_s, strict=False)]
    centres = [variability.trim_mean(ratios, share) for share in TRIMMED_BLOCKS]
    known = [centre for centre in centres if centre.df > 0]
    return min(known or centres, key=lambda centre: centre.variance).mean


def _find_process_numbers(process: Process, workload: Measured, run: Run) -> Numbers:
    numbers = find_own_numbers(process) | _energy(process, workload.items_per_step)
    peak = peaks.flop_per_s(run.environment.hard, workload.precision)
    step_s = numbers[metrics.STEP_TIME.name]
    numbers[metrics.THROUGHPUT.name] = workload.items_per_step / step_s
    return numbers | _rate(process, workload, step_s, peak)


def find_own_numbers(process: Process) -> Numbers:
    """One number per metric that a process knows by itself; what the machine lacks is absent.

    The step time is that of the block that the run's own ``statistic`` names: the median keeps one
    interrupted block from speaking for all, the minimum keeps a busy machine from speaking at all.
    """
    step_s = _reduce_timed_blocks(process.timed, process.timed.block_s)
    return {
        metrics.STEP_TIME.name: step_s,
        metrics.STEP_P05.name: process.timed.steps.p05,
        metrics.STEP_P95.name: process.timed.steps.p95,
        **_find_counts(process),
        **(_compiles(process, process.compiles, step_s) if process.compiles else {}),
        **_on_device(process.timed, step_s),
        **(_phases(process.step_phases) if process.step_phases else {}),
        **(_gpus(process.evidence) if process.evidence else {}),
        **process.metrics,
    }


def _find_counts(process: Process) -> Numbers:
    """Return what a process has recorded as it is judged, as far as it is known.

    The memory of the host is that of the process and all below it.
    """
    memory, timed, work, gpu = process.memory, process.timed, process.work, process.device_work
    below, device, ranks = memory.below_bytes, memory.device, process.ranks
    counts: dict[Metric, float | None] = {
        metrics.HOST_RSS_PEAK: None if below is None else memory.host_rss_peak_bytes + below,
        metrics.OPERATORS: work.operators,
        metrics.FLOPS: work.flops,
        metrics.STEP_CPU: cpu_time(timed),
        metrics.TASKS: timed.tasks,
        metrics.PRINTED_TIMES: process.printed_times,
        metrics.ARRIVAL_SKEW: ranks.arrival_skew_s if ranks else None,
    }
    if memory.below_count:
        largest = max(memory.host_rss_peak_bytes, memory.below_largest_bytes)
        counts |= {metrics.PROCESS_COUNT: 1 + memory.below_count, metrics.LARGEST_PROCESS: largest}
    if gpu and not gpu.absent:  # a profile could be had
        counts |= {
            metrics.KERNELS: gpu.launched,
            metrics.HOST_WAITS: gpu.host_waits,
            metrics.GRAPH_REPLAYS: gpu.graph_replays,
            metrics.SPILLS: gpu.spills,
        }
    if device:
        counts |= {
            metrics.PEAK_ALLOCATED: device.peak_allocated_bytes,
            metrics.PEAK_RESERVED: device.peak_reserved_bytes,
            metrics.PEAK_ACTIVE: device.peak_active_bytes,
        }
    return {metric.name: float(count) for metric, count in counts.items() if count is not None}


def world_size(parameters: Mapping[str, Scalar]) -> int:
    """Return in how many ranks, or on how many devices, a workload with these parameters ran."""
    number = parameters.get(WORLD_SIZE, 1)
    return number if isinstance(number, int) else 1


def family(
    workload: str, parameters: Mapping[str, Scalar], parameter: str = WORLD_SIZE
) -> tuple[str, dict[str, Scalar]]:
    """Return what a workload shares with itself at another value of `parameter`.

    That is an id, and the other parameters.
    """
    parts = [part for part in workload.split(".") if not part.startswith(f"{parameter}=")]
    others = {name: value for name, value in parameters.items() if name != parameter}
    return ".".join(parts), others


def reduce_blocks(blocks: Sequence[float], statistic: Statistic) -> float:
    """Return the value of the block that speaks for the process."""
    ordered = sorted(blocks)
    match statistic:
        case "median":
            return statistics.median(ordered)
        case "p25":
            return ordered[(len(ordered) - 1) // 4]
        case "min":
            return ordered[0]


def _reduce_timed_blocks(timed: Timed, blocks: Sequence[float]) -> float:
    return reduce_blocks(blocks, timed.statistic)


def _compiles(process: Process, compiles: CompileCounts, step_s: float) -> Numbers:
    return {
        metrics.GRAPHS.name: float(compiles.graphs),
        metrics.GRAPH_BREAKS.name: float(compiles.graph_breaks),
        metrics.RECOMPILES.name: float(compiles.recompiles),
        **_first_step(process, compiles, step_s),
    }


def _first_step(process: Process, compiles: CompileCounts, step_s: float) -> Numbers:
    """Tell a first step that compiled from one that did not: one takes minutes, one takes none.

    With filled caches the first step of compiled code is a first step as any other, too. Where
    nothing warms up, each step is a program of its own, and the first one is as any other.
    """
    if process.warmup.steps == 0:
        return {}
    first_s = process.phases.first_step_s
    if compiles.graphs == 0:
        return {metrics.FIRST_STEP.name: first_s}
    extra_s = max(0.0, first_s - step_s)
    if compiles.cache == "empty":
        return {metrics.COMPILE_COLD.name: extra_s}
    return {metrics.FIRST_STEP.name: first_s, metrics.COMPILE_WARM.name: extra_s}


def cpu_time(timed: Timed) -> float | None:
    """Return CPU time per step, over all blocks; `None` where nobody knows it.

    Not one block speaks: waiting, which makes a few of them long, is no CPU time, and what workers
    do ahead for one block is missing from another. Of resident pairs on a crowded CPU, it differs
    by 4 to 6 % where the median of the blocks differs by 5 to 8 %, the least by 5 to 11 %.
    """
    return statistics.fmean(timed.cpu_s) if timed.cpu_s else None


def _on_device(timed: Timed, step_s: float) -> Numbers:
    numbers: Numbers = {}
    if timed.device_s is not None:
        numbers[metrics.DEVICE_TIME.name] = _reduce_timed_blocks(timed, timed.device_s)
    if timed.issue_s is not None:
        numbers[metrics.HOST_OVERHEAD.name] = _reduce_timed_blocks(timed, timed.issue_s) / step_s
    return numbers


def _phases(parts: StepPhases) -> Numbers:
    """Return the shares of a step. The host waits for data; a copy is what the device is at."""
    numbers: Numbers = {}
    if data := parts.phases.get("data"):
        numbers[metrics.DATA_WAIT.name] = data.host_s / parts.step_s
    if copying := parts.phases.get("h2d"):
        copying_s = copying.host_s if copying.device_s is None else copying.device_s
        numbers[metrics.H2D.name] = copying_s / parts.step_s
    return numbers


def _gpus(evidence: Evidence) -> Numbers:
    """Return what the GPUs did: the power of all together, the mean of what each has."""
    numbers: Numbers = {}
    clocks = [gpu.sm_clock_mhz.mean for gpu in evidence.gpus if gpu.sm_clock_mhz]
    powers = [gpu.power_w.mean for gpu in evidence.gpus if gpu.power_w]
    busy = [gpu.utilization.mean for gpu in evidence.gpus if gpu.utilization]
    if clocks:
        numbers[metrics.SM_CLOCK.name] = statistics.fmean(clocks)
    if powers and len(powers) == len(evidence.gpus):
        numbers[metrics.POWER.name] = math.fsum(powers)
    if busy:
        numbers[metrics.GPU_UTIL.name] = statistics.fmean(busy)
    return numbers


def _energy(process: Process, items_per_step: float) -> Numbers:
    """Spread the energy of all GPUs over the items of the timed region.

    Nothing without the borders of the region, without a counter, or when it did not move.
    """
    evidence = process.evidence
    if evidence is None or evidence.trouble or not evidence.gpus:
        return {}
    used = [gpu.energy_j for gpu in evidence.gpus if gpu.energy_j]
    if len(used) < len(evidence.gpus):
        return {}
    steps = len(process.timed.block_s) * process.timed.steps_per_block
    return {metrics.ENERGY.name: math.fsum(used) / (steps * items_per_step)}


def _rate(process: Process, workload: Measured, step_s: float, peak: float | None) -> Numbers:
    """Compare what one GPU achieves with what it promises; FLOPs are those of the first rank.

    Where one process drives several devices, nobody knows which of them the counted FLOPs were on.
    """
    is_spread = world_size(workload.parameters) > 1 and process.ranks is None
    if process.work.flops is None or is_spread:
        return {}
    achieved = process.work.flops / step_s
    rate = {metrics.FLOP_PER_S.name: achieved}
    return rate if peak is None else rate | {metrics.MFU.name: achieved / peak}


def list_session_numbers(workload: Measured, run: Run) -> Iterator[Measured]:
    """Yield what the session of a workload has measured: other nodes, other times say nothing."""
    session = next((s for s in run.merged_from if workload.workload in s.workloads), None)
    if session is None:
        yield from run.measured
        return
    ours = set(session.workloads)
    yield from (other for other in run.measured if other.workload in ours)


def _alone(workload: Measured, run: Run) -> Measured | None:
    """Find the same workload at a world size of one, in the same session."""
    if world_size(workload.parameters) == 1:
        return None
    wanted = family(workload.workload, workload.parameters)
    for other in list_session_numbers(workload, run):
        is_single = world_size(other.parameters) == 1
        if is_single and family(other.workload, other.parameters) == wanted:
            return other
    return None


def _compare_with_alone(process: Process, workload: Measured, alone: Measured) -> Numbers:
    """Compare with the single process of the same turn: both met the same minute of the machine.

    Throughput of N over N times the throughput of one; ``items_per_step`` is that of all ranks.
    """
    for single in alone.processes:
        if single.index == process.index:
            rate_alone = alone.items_per_step / _reduce_timed_blocks(
                single.timed, single.timed.block_s
            )
            rate = workload.items_per_step / _reduce_timed_blocks(
                process.timed, process.timed.block_s
            )
            size = world_size(workload.parameters)
            return {metrics.SCALING_EFFICIENCY.name: rate / (size * rate_alone)}
    return {}
