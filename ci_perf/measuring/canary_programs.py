"""Fixed programs that no pull request can change: when they move, the machine has moved.

`python -P -m ci_perf.measuring.canary_programs FOLDER PARENT DEVICE THREADS`; task.py names the
files in FOLDER, PARENT is the id of the process that waits for them.
"""

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ci_perf.measuring import device, knobs
from ci_perf.measuring.device import Device, Step
from ci_perf.model import task
from ci_perf.model.base import Struct
from ci_perf.model.task import CanaryTimes
from ci_perf.system import files, linux

# Long against the clock, short against what disturbs: the median forgets a few disturbed ones.
_BLOCK_S = 0.01


class Sizes(Struct, frozen=True, kw_only=True):
    """How large the programs are on one kind of device, and for how long each is repeated."""

    side: int
    dtype: str
    copy_bytes: int
    tiny_steps: int
    warmup_s: float
    timed_s: float


# On a CPU: matrices that fit the second cache, so that the arithmetic is what takes time; a copy
# that fits no usual cache; as many tiny operators as take about a millisecond.
CPU = Sizes(
    side=256,
    dtype="float32",
    copy_bytes=64 * 2**20,
    tiny_steps=1000,
    warmup_s=0.1,
    timed_s=0.3,
)
# On a GPU: matrices that fill every multiprocessor, on the tensor cores, which draw the most power
# and so meet the limits of power and heat first; a copy that is far larger than the second cache.
# An idle GPU needs about a second to raise its clocks.
GPU = Sizes(
    side=4096,
    dtype="float16",
    copy_bytes=512 * 2**20,
    tiny_steps=1000,
    warmup_s=1.0,
    timed_s=1.0,
)


def measure(
    here: Device,
    programs: Mapping[str, Step],
    sizes: Sizes,
    *,
    clock: Callable[[], float] = time.monotonic,
) -> CanaryTimes:
    """Repeat each program for a while; return the median of its blocks."""
    return CanaryTimes(
        median_s={name: _median(here, step, sizes, clock) for name, step in programs.items()}
    )


def programs(torch: Any, name: str, sizes: Sizes) -> dict[str, Step]:  # noqa: ANN401  the module
    """Make the programs on the device called `name`.

    A program that changes gets another name: its times can then not be held against those that
    the older one left in baselines.
    """
    # Random numbers: of ones a GPU draws less power, and does not meet its limits.
    generator = torch.Generator(device=name).manual_seed(0)
    shape, dtype = (sizes.side, sizes.side), getattr(torch, sizes.dtype)
    left, right = (
        torch.randn(shape, generator=generator, device=name, dtype=dtype) for _ in range(2)
    )
    product = torch.empty_like(left)
    source = torch.ones(sizes.copy_bytes, device=name, dtype=torch.uint8)
    target = torch.empty_like(source)
    number = torch.zeros(1, device=name)

    def launch_latency() -> None:
        for _ in range(sizes.tiny_steps):
            number.add_(1)

    return {
        "launch_latency": launch_latency,
        "matmul_random": lambda: torch.mm(left, right, out=product),
        "memory_copy": lambda: target.copy_(source),
    }


def _median(here: Device, step: Step, sizes: Sizes, clock: Callable[[], float]) -> float:
    count = max(1, round(_BLOCK_S / _warm_step_s(here, step, sizes.warmup_s, clock)))
    end = clock() + sizes.timed_s
    blocks = [here.time_block(step, count).step_s]
    while clock() < end:
        blocks.append(here.time_block(step, count).step_s)
    return statistics.median(blocks)


def _warm_step_s(here: Device, step: Step, seconds: float, clock: Callable[[], float]) -> float:
    """Repeat a step until it is warm; return how long it then takes."""
    end = clock() + seconds
    while True:
        step_s = here.time_block(step, 1).step_s
        if clock() >= end:
            return step_s


def main(folder: Path, name: str, threads: int) -> None:
    """Write the times; none where torch is missing, which a suite may do without."""
    try:
        with knobs.pause_collector():
            import torch
    except ImportError:
        files.write(folder / task.RESULT, CanaryTimes(median_s={}))
        return
    torch.set_num_threads(threads)
    sizes = GPU if name.startswith("cuda") else CPU
    with torch.inference_mode():
        times = measure(device.open_device(name), programs(torch, name, sizes), sizes)
    files.write(folder / task.RESULT, times)


if __name__ == "__main__":
    linux.end_with_parent(int(sys.argv[2]))
    main(Path(sys.argv[1]), sys.argv[3], int(sys.argv[4]))
    knobs.end_process(0)
