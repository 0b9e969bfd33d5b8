"""Warm up until steady, then time blocks until there is nothing more to learn.

With several ranks, each runs this loop, and all must stop after the same step: a rank that went on
alone would wait for the others for ever. So every decision is taken from `slowest(value)`, which
is the largest value over all ranks and the same in each.

A launch is one value in the interval that judges a workload. Its variance is that between launches
plus that of its own blocks, which falls as it times longer. Kalibera and Jones (Rigorous
Benchmarking in Reasonable Time, ISMM 2013, section 9) give the number of blocks that makes the
whole interval cheapest: sqrt(cost of a start / cost of a block * variance of blocks / variance
between launches). In other words: stop when the seconds spent on blocks are to the seconds spent on
the start as the variance that is left of the blocks is to the variance between launches.
"""

import math
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from ci_perf.measuring.device import Device, Step, count_tasks
from ci_perf.measuring.turn_client import TurnTaker
from ci_perf.model.base import Statistic
from ci_perf.model.process import Quantiles, Stop, Timed, Warmup
from ci_perf.model.suite import Protocol

Clock = Callable[[], float]
Slowest = Callable[[float], float]

# What a team may want to set is in Protocol. These three only bound what the defaults can do.
# Whether the blocks are enough is asked when there are so many times more of them than last time:
# the answer takes longer the more there are.
_BETWEEN_LOOKS = 1.05
# Of one block. 10 000 of the shortest steps, a tenth of a microsecond each, are long against the
# clock; to keep the times of more would take memory, which the peak of the process would show.
_MOST_STEPS = 10_000
# Of one process. Blocks are this many only where `block_min_s` is next to nothing.
_MOST_BLOCKS = 10_000

_ALONE = TurnTaker()

_SHARES = {"median": 0.5, "p25": 0.25}
# Whatever disturbs blocks disturbs launches: the smallest ratios of what launches and what
# blocks differ by in 16 recordings of 66 to 78 launches. The smallest times longest.
_LEAST_SHARE_OF_BLOCKS: dict[Statistic, float] = {"median": 0.8, "p25": 0.6, "min": 0.3}
# The two of a resident pair have their disturbances in common, and their blocks are compared one by
# one: pairs differ by this share of what blocks do, or by less (decision 009).
_SHARE_OF_BLOCKS_IN_PAIR = 0.2
# The processes of a resident pair need this share of the least times: each warms the CPU for the
# other one, and where blocks are compared side by side the first ones tell enough (decision 009).
_SHARE_OF_LEAST_IN_PAIR = 0.5
# Of normal noise, the interquartile range in standard deviations.
_QUARTILES = 1.349
# Blocks that follow each other so closely say next to nothing new: more would be a division by 0.
_MOST_CORRELATION = 0.9


def alone(value: float) -> float:
    """Return the value: the slowest of one rank is itself."""
    return value


def warm_up(
    device: Device,
    step: Step,
    protocol: Protocol,
    *,
    slowest: Slowest = alone,
    in_pair: bool = False,
    clock: Clock = time.monotonic,
) -> tuple[Warmup, float]:
    """Run steps until two windows agree; return how it went and seconds per step.

    Those of the fastest window: what disturbs the last one would make the blocks of one process
    shorter than those of another.

    Steps run in blocks as they will when they are timed, so that a device has the same queue to
    work through; a window of long steps is several blocks, so that the cap is kept.
    """
    start = clock()
    least_s = protocol.warmup_min_s * (_SHARE_OF_LEAST_IN_PAIR if in_pair else 1)
    medians: list[float] = []
    window: list[float] = []
    steps = 0
    step_s = math.inf
    while True:
        count = min(_steps_per_block(protocol, step_s), protocol.warmup_window - len(window))
        window += device.time_block(step, count).steps_s
        steps += count
        step_s = slowest(statistics.median(window))
        spent_s = slowest(clock() - start)
        if len(window) == protocol.warmup_window:
            medians.append(step_s)
            window = []
            enough = steps >= protocol.warmup_min_steps and spent_s >= least_s
            if enough and _agree(medians, protocol.warmup_tolerance):
                return Warmup(steps=steps, stopped="stable"), min(medians)
        if spent_s >= protocol.warmup_max_s:
            return Warmup(steps=steps, stopped="cap"), min([*medians, step_s])


def time_blocks(
    device: Device,
    step: Step,
    protocol: Protocol,
    *,
    step_s: float,
    start_s: float,
    slowest: Slowest = alone,
    turn_taker: TurnTaker = _ALONE,
    is_fresh: bool = False,
) -> Timed:
    """Time blocks of at least `block_min_s`; `step_s` is the step time that warm-up saw.

    `start_s` is what the launch has cost so far: it says how long timing is worth its while.

    Each block takes a turn. Where these are shared, the step before it is not timed: it fills the
    caches that the other process has emptied. One that `is_fresh` fills its own.
    """
    steps_per_block = _steps_per_block(protocol, slowest(step_s))
    start = turn_taker.clock()
    progress = _Progress(protocol, slowest(start_s), in_pair=turn_taker.is_shared)
    block_s: list[float] = []
    device_s: list[float] = []
    issue_s: list[float] = []
    cpu_s: list[float] = []
    steps = _Steps()
    stopped: Stop | None = None
    while turn_taker.take_for_block(stopped):
        if turn_taker.is_shared and not is_fresh:
            device.time_block(step, 1)
        block = device.time_block(step, steps_per_block)
        block_s.append(slowest(block.step_s))
        if block.device_s is not None:
            device_s.append(slowest(block.device_s))
        if block.issue_s is not None:
            issue_s.append(slowest(block.issue_s))
        if block.cpu_s is not None:
            cpu_s.append(slowest(block.cpu_s))
        steps.add(block.steps_s)
        stopped = stopped or progress.after(block_s[-1], slowest(turn_taker.clock() - start))
    return Timed(
        steps_per_block=steps_per_block,
        stopped=stopped or "partner",
        statistic=protocol.statistic,
        block_s=tuple(block_s),
        device_s=tuple(device_s) or None,
        issue_s=tuple(issue_s) or None,
        cpu_s=tuple(cpu_s) or None,
        tasks=count_tasks() if cpu_s else None,
        steps=steps.describe(slowest),
    )


def time_by_turn(
    device: Device, run: Callable[[], list[float]], protocol: Protocol, turn_taker: TurnTaker
) -> Timed:
    """Time one program that waits for its partner now and then: each of its turns is a block."""
    turn_taker.take_for_block(None)
    blocks: list[float] = []
    block = device.time_block(lambda: blocks.extend(run()), 1)
    steps = _Steps()
    steps.add(block.steps_s)
    return Timed(
        steps_per_block=1,
        stopped="enough",
        statistic=protocol.statistic,
        block_s=tuple(blocks) or (block.step_s,),
        device_s=None,
        issue_s=None,
        cpu_s=None if block.cpu_s is None else (block.cpu_s,),
        tasks=None if block.cpu_s is None else count_tasks(),
        steps=steps.describe(),
    )


def _steps_per_block(protocol: Protocol, step_s: float) -> int:
    return min(max(1, math.ceil(protocol.block_min_s / step_s)), _MOST_STEPS)


def _agree(medians: Sequence[float], tolerance: float) -> bool:
    if len(medians) < 2:
        return False
    before, after = medians[-2:]
    return abs(after - before) <= tolerance * before


class _Progress:
    """Knows after each block whether there is more to learn."""

    def __init__(self, protocol: Protocol, start_s: float, *, in_pair: bool) -> None:
        self._protocol = protocol
        self._in_pair = in_pair
        is_by_blocks = in_pair and protocol.statistic == "median"
        self._least_s = protocol.timed_min_s * (_SHARE_OF_LEAST_IN_PAIR if is_by_blocks else 1)
        self._start_s = start_s
        self._block_s: list[float] = []
        self._next_look = max(2, protocol.timed_min_blocks)

    def after(self, block_s: float, spent_s: float) -> Stop | None:
        """Say why to stop now, or `None` to go on."""
        self._block_s.append(block_s)
        blocks, limits = len(self._block_s), self._protocol
        if blocks >= self._next_look and spent_s >= self._least_s:
            self._next_look = math.ceil(blocks * _BETWEEN_LOOKS)
            if self._is_enough(spent_s):
                return "enough"
        return "cap" if spent_s >= limits.timed_max_s or blocks >= _MOST_BLOCKS else None

    def _is_enough(self, spent_s: float) -> bool:
        return is_enough(
            self._block_s,
            self._protocol.statistic,
            spent_s=spent_s,
            start_s=self._start_s,
            launch_spread=self._protocol.launch_spread,
            in_pair=self._in_pair,
        )


class _Steps:
    """Quantiles of any number of steps in little memory: those within 0.1 % are counted together.

    Unlike a sample it misses no step, even where only every eighth is slow. All steps between a
    nanosecond and a day make 32 000 groups; one workload has some hundreds.
    """

    _WIDTH = 1e-3

    def __init__(self) -> None:
        self._groups: dict[int, tuple[int, float]] = {}

    def add(self, steps_s: Iterable[float]) -> None:
        for step_s in steps_s:
            group = math.floor(math.log(step_s) / self._WIDTH)
            count, total_s = self._groups.get(group, (0, 0.0))
            self._groups[group] = (count + 1, total_s + step_s)

    def describe(self, slowest: Slowest = alone) -> Quantiles:
        low, middle, high = (slowest(self.quantile(share)) for share in (0.05, 0.50, 0.95))
        return Quantiles(p05=low, p50=middle, p95=high)

    def quantile(self, share: float) -> float:
        """Return the step that this share of all steps does not exceed: the mean of its group."""
        left = share * sum(count for count, _ in self._groups.values())
        for _, (count, total_s) in sorted(self._groups.items()):
            left -= count
            if left <= 0:
                return total_s / count
        raise AssertionError("no step was added")


def is_enough(
    block_s: Sequence[float],
    statistic: Statistic,
    *,
    spent_s: float,
    start_s: float,
    launch_spread: float,
    in_pair: bool = False,
) -> bool:
    """Whether another launch would narrow the interval more than more blocks of this one.

    `spent_s` has gone into the blocks, `start_s` into everything before them. `launch_spread` is
    the standard deviation between launches, as a share of the value. `in_pair` says that each block
    has one of a partner beside it. Two blocks are the fewest.
    """
    is_by_blocks = in_pair and statistic == "median"
    least_share = _SHARE_OF_BLOCKS_IN_PAIR if is_by_blocks else _LEAST_SHARE_OF_BLOCKS[statistic]
    ordered = sorted(block_s)
    low, middle, high = statistics.quantiles(ordered, n=4)
    blocks = (high - low) / _QUARTILES
    launches = max(launch_spread * middle, least_share * blocks)
    error = _standard_error(ordered, statistic)
    if statistic != "min" and not is_by_blocks:
        correlation = _correlation(block_s, middle)
        error *= math.sqrt((1 + correlation) / (1 - correlation))
    return error**2 * start_s <= launches**2 * spent_s


def _standard_error(ordered: Sequence[float], statistic: Statistic) -> float:
    """Return that of an order statistic, without a model of the noise.

    Of a quantile: half the distance of the blocks whose ranks are one standard deviation of a
    binomial count around it. The smallest block lies above the true minimum by as much, on average,
    as the next ones lie above each other.
    """
    count = len(ordered)
    if statistic == "min":
        gaps = min(math.isqrt(count), count - 1)
        return (ordered[gaps] - ordered[0]) / gaps
    share = _SHARES[statistic]
    rank, deviation = share * (count - 1), math.sqrt(count * share * (1 - share))
    low = max(0, math.floor(rank - deviation))
    high = min(count - 1, math.ceil(rank + deviation))
    return (ordered[high] - ordered[low]) / 2


def _correlation(block_s: Sequence[float], middle: float) -> float:
    """Return how far a block resembles the one before it: by which side of the median it is on.

    Signs, because a single slow block would hide what all others have in common.
    """
    signs = [math.copysign(1.0, value - middle) for value in block_s if value != middle]
    if len(signs) < 2:
        return 0.0
    same = statistics.fmean(before * after for before, after in pairwise(signs))
    return min(max(math.sin(math.pi / 2 * same), 0.0), _MOST_CORRELATION)
