"""Steps that probes time, and how often they are repeated."""

import math
import statistics
from collections.abc import Callable

from ci_perf.measuring.device import Step
from ci_perf.measuring.probes import Bench

# Of a product that a GPU needs milliseconds for, and a CPU less than one.
_SIDE = {"cpu": 256, "cuda": 4096}
WARMUP_S = 1.0
# On a CPU shorter than the time that a scheduler gives a process at once.
_BLOCK_S = {"cpu": 0.002, "cuda": 0.02}
ROUNDS = 41


def product(bench: Bench, *, side: int | None = None) -> Step:
    """Return a step that multiplies two matrices of random numbers on the device."""
    torch = bench.torch
    side = side or _SIDE[_kind(bench)]
    generator = torch.Generator(device=bench.name).manual_seed(0)
    left = torch.randn((side, side), generator=generator, device=bench.name)
    result = torch.empty_like(left)
    return lambda: torch.mm(left, left, out=result)


def _kind(bench: Bench) -> str:
    return bench.name.partition(":")[0]


def tiny(bench: Bench, operators: int) -> Step:
    """Return a step of so many operators, each of which is shorter than its launch."""
    number = bench.torch.zeros(1, device=bench.name)

    def step() -> None:
        for _ in range(operators):
            number.add_(1)

    return step


def warm(bench: Bench, step: Step, seconds: float = WARMUP_S) -> int:
    """Repeat a step until it is warm; return how many fill a block."""
    end_ns = bench.clock() + seconds * 1e9
    shortest_s = math.inf  # other programs make a step longer, never shorter
    while True:
        shortest_s = min(shortest_s, bench.device.time_block(step, 1).step_s)
        if bench.clock() >= end_ns:
            return max(1, round(_BLOCK_S[_kind(bench)] / shortest_s))


def median_s(bench: Bench, step: Step, count: int, rounds: int = ROUNDS) -> float:
    """Return seconds per step, the median of some blocks."""
    return median(lambda: bench.device.time_block(step, count).step_s, rounds)


def median(once: Callable[[], float], rounds: int = ROUNDS) -> float:
    """Return the median of what a function returns."""
    return statistics.median(once() for _ in range(rounds))
