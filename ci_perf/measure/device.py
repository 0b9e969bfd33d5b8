"""The device seam: timing and memory of a CPU and of a CUDA device behind one interface."""

import time
from collections.abc import Callable
from typing import Any, Protocol

from ci_perf.model.run import DeviceMemory

Step = Callable[[], object]


class Device(Protocol):
    """What the measuring loop needs from a device."""

    def time_block(self, step: Step, count: int) -> float:
        """Run `count` steps back to back, wait for the device once; return seconds per step."""

    def reset_peaks(self) -> None:
        """Forget earlier peaks of the device's memory."""

    def memory(self) -> DeviceMemory | None:
        """Return the peaks since `reset_peaks`; `None` where there is no device memory."""


class CpuDevice:
    """Steps have finished when they return; there is no device memory to read."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock

    def time_block(self, step: Step, count: int) -> float:
        """See Device."""
        start = self._clock()
        for _ in range(count):
            step()
        return (self._clock() - start) / count

    def reset_peaks(self) -> None:
        """See Device."""

    def memory(self) -> None:
        """See Device: absent, not zero."""


class CudaDevice:
    """Steps only queue their work: events on the stream time it, one synchronisation a block."""

    def __init__(self, cuda: Any, index: int) -> None:  # noqa: ANN401  torch.cuda is untyped
        """Take the slice of `torch.cuda` that is used, so that a simulated stream can stand in."""
        self._cuda = cuda
        self._index = index

    def time_block(self, step: Step, count: int) -> float:
        """See Device."""
        self._cuda.synchronize(self._index)
        start = self._cuda.Event(enable_timing=True)
        end = self._cuda.Event(enable_timing=True)
        start.record()
        for _ in range(count):
            step()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3 / count  # events count milliseconds

    def reset_peaks(self) -> None:
        """See Device."""
        self._cuda.synchronize(self._index)
        self._cuda.reset_peak_memory_stats(self._index)

    def memory(self) -> DeviceMemory:
        """See Device."""
        self._cuda.synchronize(self._index)
        stats = self._cuda.memory_stats(self._index)
        return DeviceMemory(
            peak_allocated_bytes=self._cuda.max_memory_allocated(self._index),
            peak_reserved_bytes=self._cuda.max_memory_reserved(self._index),
            alloc_retries=stats.get("num_alloc_retries", 0),
        )


def open_device(name: str) -> Device:
    """Return the device called `name` ("cpu", "cuda:0")."""
    if not name.startswith("cuda"):
        return CpuDevice()
    import torch

    device = torch.device(name)
    torch.cuda.set_device(device)
    return CudaDevice(torch.cuda, torch.cuda.current_device())
