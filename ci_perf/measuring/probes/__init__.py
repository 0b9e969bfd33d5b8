"""The steps of a proof that one process can try: each is a function from a Bench to figures.

A probe is a module-level function of a module of this folder, named in `PROBES`.
"""

import importlib
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from ci_perf.measuring.device import Clock, CpuDevice, Device
from ci_perf.measuring.monitor import nvml
from ci_perf.measuring.monitor.nvml import Gpu
from ci_perf.model.proof import Figure

# Where the probe of each step is.
PROBES = {
    "allocator": "memory",
    "canary_power": "arithmetic",
    "clock_resolution": "clocks",
    "compile_caches": "reproducibility",
    "cuda_graphs": "waiting",
    "events": "clocks",
    "foreign_process": "neighbours",
    "harness": "clocks",
    "issue": "waiting",
    "known_kernel": "clocks",
    "memory_snapshot": "memory",
    "numerics": "reproducibility",
    "nvml": "gpu_state",
    "one_wait": "waiting",
    "other_stream": "clocks",
    "out_of_memory": "memory",
    "profiler": "profiles",
    "throughput": "arithmetic",
    "two_processes": "neighbours",
    # Parts of steps, each in a further process.
    "async_peaks": "memory",
    "first_step": "reproducibility",
    "training_losses": "reproducibility",
}


class CannotTryError(Exception):
    """What a step needs is not here; the message says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What a probe works with: torch, the device that is timed, and its name ("cpu", "cuda:0").

    ``clock`` returns nanoseconds. ``gpus`` opens GPUs in NVML by their UUIDs.
    """

    torch: Any
    device: Device
    name: str
    clock: Clock = time.perf_counter_ns
    sleep: Callable[[float], None] = time.sleep
    gpus: Callable[[Sequence[str]], AbstractContextManager[tuple[Gpu, ...]]] = nvml.opened

    @property
    def is_cpu(self) -> bool:
        """Whether there is no GPU."""
        return isinstance(self.device, CpuDevice)


# A probe yields its figures, and sentences about them where they need some.
Probe = Callable[[Bench], Iterable[Figure | str]]


def of_step(step: str) -> Probe:
    """Return the probe of a step. Raises KeyError."""
    module = importlib.import_module(f"{__name__}.{PROBES[step]}")
    probe: Probe = getattr(module, step)
    return probe
