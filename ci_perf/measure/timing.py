"""Warm up until steady, then time blocks until there is nothing more to learn."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Literal

from ci_perf.measure.device import Device, Step
from ci_perf.model.run import Timed, Warmup
from ci_perf.model.suite import Protocol

Clock = Callable[[], float]

# The spread has settled when the last blocks changed it by less than this share.
_SETTLED_BLOCKS = 10
_SETTLED_CHANGE = 0.05


def warm_up(
    device: Device, step: Step, protocol: Protocol, *, clock: Clock = time.monotonic
) -> tuple[Warmup, float]:
    """Run steps until two windows agree; return how it went and the latest seconds per step."""
    start = clock()
    windows: list[float] = []
    steps = 0
    while True:
        window = [device.time_block(step, 1) for _ in range(protocol.warmup_window)]
        steps += len(window)
        windows.append(statistics.median(window))
        spent = clock() - start
        enough = steps >= protocol.warmup_min_steps and spent >= protocol.warmup_min_s
        if enough and _agree(windows, protocol.warmup_tolerance):
            return Warmup(steps=steps, stopped="stable"), windows[-1]
        if spent >= protocol.warmup_max_s:
            return Warmup(steps=steps, stopped="cap"), windows[-1]


def time_blocks(
    device: Device,
    step: Step,
    protocol: Protocol,
    *,
    step_s: float,
    clock: Clock = time.monotonic,
) -> Timed:
    """Time blocks of at least `block_min_s`; `step_s` is the step time that warm-up saw."""
    steps_per_block = max(1, math.ceil(protocol.block_min_s / step_s))
    start = clock()
    blocks: list[float] = []
    while (stopped := _stopped(blocks, clock() - start, protocol)) is None:
        blocks.append(device.time_block(step, steps_per_block))
    return Timed(
        steps_per_block=steps_per_block,
        stopped=stopped,
        statistic=protocol.statistic,
        block_s=tuple(blocks),
    )


def _agree(windows: Sequence[float], tolerance: float) -> bool:
    if len(windows) < 2:
        return False
    before, after = windows[-2:]
    return abs(after - before) <= tolerance * before


def _stopped(
    blocks: Sequence[float], spent_s: float, protocol: Protocol
) -> Literal["quiet", "settled", "cap"] | None:
    """Say why to stop now, or `None` to go on. One block is measured in any case."""
    if not blocks:
        return None
    if len(blocks) >= protocol.timed_min_blocks and spent_s >= protocol.timed_min_s:
        if _spread(blocks) <= protocol.timed_noise * statistics.median(blocks):
            return "quiet"
        if _has_settled(blocks):
            return "settled"
    return "cap" if spent_s >= protocol.timed_max_s else None


def _has_settled(blocks: Sequence[float]) -> bool:
    earlier = blocks[:-_SETTLED_BLOCKS]
    if len(earlier) < _SETTLED_BLOCKS:
        return False
    before, after = _spread(earlier), _spread(blocks)
    return abs(after - before) <= _SETTLED_CHANGE * before


def _spread(values: Sequence[float]) -> float:
    """Take the interquartile range."""
    if len(values) < 2:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4)
    return high - low
