"""Try what a measurement relies on, one check at a time. Run in a child: a driver may hang.

`python -P -m ci_perf.measuring.deep_checks CHECK DEVICE UUID` prints a DeepCheck as its last line;
`... neighbour DEVICE PARENT` is the second program that a check must notice, until it is killed.
"""

import contextlib
import importlib
import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from ci_perf.measuring import device, distrust, knobs
from ci_perf.measuring.device import Device
from ci_perf.measuring.monitor import kernel_counters, nvml
from ci_perf.measuring.monitor.nvml import Gpu
from ci_perf.model.facts import DeepCheck, DeepOutcome
from ci_perf.model.task import DEEP_CHECKS
from ci_perf.system import linux

_MIB = 2**20
# Shorter than the time that a scheduler gives a process at once.
_BUSY_S = 0.002
_SLICES = 500
_IDLE_S = 0.3
# The kernel brings what others waited for up to date every 2 s.
_SHARED_S = 3.0
# Some 0.2 s on a GPU of 2 GHz: long enough to ask NVML meanwhile.
_CYCLES = 400_000_000
_ROUNDS = 5
_STEPS = 20
_BLOCK = "ci_perf block"
# Calls of the driver or the runtime: cudaLaunchKernel, cuCtxSynchronize.
_RUNTIME = re.compile(r"(cuda|cu|hip)[A-Z]")
# Too large for the allocator's small blocks, so that it asks CUDA for each.
_KNOWN_BYTES = (64 * _MIB, 32 * _MIB)
_HELD_BYTES = 256 * _MIB


class SkippedError(Exception):
    """What a check needs is not here; the message says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What a check works with: torch and the device that is timed; on a CPU ``torch`` is absent."""

    torch: Any
    device: Device
    name: str
    uuid: str


# Whether the check has passed, and its figures with what they may be.
Verdict = tuple[bool, str]


def cpu_time(_bench: Bench) -> Verdict:
    """Hold CPU time against the clock, computing and asleep."""
    # Other programs take the CPU away, and never give some: the best slice is the least disturbed.
    busy = max(_cpu_share(_compute) for _ in range(_SLICES))
    idle = statistics.median(_cpu_share(lambda: time.sleep(_IDLE_S)) for _ in range(_ROUNDS))
    return 0.95 <= busy <= 1.05 and idle <= 0.05, (
        f"CPU time over the clock's: {busy:.3f} while computing (0.95 to 1.05), {idle:.3f} asleep "
        "(at most 0.05)"
    )


def _cpu_share(work: Callable[[], object]) -> float:
    begin, start = device.cpu_time_ns(), time.perf_counter_ns()
    work()
    end, stop = device.cpu_time_ns(), time.perf_counter_ns()
    if begin is None or end is None:
        raise SkippedError("This system does not tell CPU time: it needs Linux")
    return (end - begin) / (stop - start)


def _compute() -> None:
    end = time.perf_counter() + _BUSY_S
    while time.perf_counter() < end:
        pass


def cpu_neighbour(bench: Bench) -> Verdict:
    """Compute beside another program on the same core, and read how long somebody waited for it."""
    if sys.platform != "linux":
        raise SkippedError("It needs Linux.")
    core = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {core})
    with _neighbour(bench):
        before, start = kernel_counters.read([os.getpid()]), time.monotonic()
        while (seconds := time.monotonic() - start) < _SHARED_S:
            pass
        after = kernel_counters.read([os.getpid()])
    if before.cpu_wait_s is None or after.cpu_wait_s is None:
        raise SkippedError("The kernel does not tell who waits for a core (/proc/pressure/cpu)")
    waited = (after.cpu_wait_s - before.cpu_wait_s) / seconds
    return waited >= distrust.BUSY, (
        f"Beside a program on the same core somebody waited in {waited:.0%} of the time (at least "
        f"{distrust.BUSY:.0%})"
    )


@contextlib.contextmanager
def _neighbour(bench: Bench) -> Iterator[None]:
    """Run a second program on the device within. Raises SkippedError: it cannot start."""
    command = [sys.executable, "-P", "-m", DEEP_CHECKS, "neighbour", bench.name, str(os.getpid())]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            if not child.stdout.readline():
                raise SkippedError(f"A second program could not use {bench.name}")
            yield
        finally:
            child.kill()


def _be_neighbour(name: str) -> None:
    """Hold memory of a GPU, or keep a core busy, until somebody kills this process."""
    bench = open_bench(name, "")
    held = None if name == "cpu" else _empty(bench, _HELD_BYTES)
    bench.device.synchronize()
    print("ready", flush=True)  # noqa: T201  the parent reads it
    while held is None:
        pass
    signal.pause()


def known_kernel(bench: Bench) -> Verdict:
    """Time kernels of known cycles by CUDA events, and read their clock by NVML."""
    with _open_gpu(bench) as gpu:
        for _ in range(_ROUNDS):  # an idle GPU needs about a second to raise its clocks
            _spin(bench, gpu, _CYCLES)
        single = [_spin(bench, gpu, _CYCLES) for _ in range(_ROUNDS)]
        double = [_spin(bench, gpu, 2 * _CYCLES) for _ in range(_ROUNDS)]
    kernel_s, mhz = (statistics.median(values) for values in zip(*single, strict=True))
    ratio = kernel_s * mhz * 1e6 / _CYCLES
    doubled = statistics.median(seconds for seconds, _ in double) / kernel_s
    # NVML tells the clock of a moment, in steps of 15 MHz of some 2000.
    return 0.9 <= ratio <= 1.1 and 1.98 <= doubled <= 2.02, (
        f"A kernel of {_CYCLES:,} cycles at {mhz:.0f} MHz took {kernel_s * 1e3:.2f} ms by CUDA "
        f"events, {ratio:.3f} of its length (0.9 to 1.1); one of twice the cycles {doubled:.3f} "
        "times as long (1.98 to 2.02)"
    )


def _spin(bench: Bench, gpu: Gpu, cycles: int) -> tuple[float, float]:
    """Return the seconds of a kernel of so many cycles, and the clock in its middle in MHz."""
    begin = bench.device.stamp()
    bench.torch.cuda._sleep(cycles)  # noqa: SLF001  torch has no public name for it
    end = bench.device.stamp()
    mhz = gpu.readings().sm_clock_mhz
    bench.device.synchronize()
    if not mhz:
        raise SkippedError(f"NVML does not tell the clock: {gpu.absent.get('sm_clock_mhz')}")
    seconds = bench.device.between(begin, end)[1]
    assert seconds is not None
    return seconds, mhz


def one_wait(bench: Bench) -> Verdict:
    """Trace a timed block, and count where the host waits for the GPU."""
    number = bench.torch.zeros(1, device=bench.name)

    def step() -> object:
        return number.add_(1)

    bench.device.time_block(step, _STEPS)
    calls = _trace_calls(bench, lambda: bench.device.time_block(step, _STEPS))
    launches = [start for start, name in calls if "Launch" in name]
    if not launches:
        raise SkippedError(
            "The profiler sees no launch: CUPTI is missing or refused "
            "(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES), or another profiler has it"
        )
    waits = [start for start, name in calls if "Synchronize" in name]
    within = sum(launches[0] < wait < launches[-1] for wait in waits)
    return len(waits) == 2 and within == 0, (
        f"A block of {_STEPS} steps waited {len(waits)} times for the GPU (2: before and after), "
        f"{within} of them between two steps (0)"
    )


def _trace_calls(bench: Bench, work: Callable[[], object]) -> list[tuple[float, str]]:
    """Return when some work called which function of the driver; the profiler waits after it."""
    profiler = bench.torch.profiler
    activities = [profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]
    with profiler.profile(activities=activities):
        pass  # the profiler's own start takes seconds, once
    with profiler.profile(activities=activities) as running:
        with profiler.record_function(_BLOCK):
            work()
        bench.device.synchronize()
    events = [each for each in running.events() if each.device_type.name == "CPU"]
    (block,) = (each.time_range for each in events if each.name == _BLOCK)
    return sorted(
        (call.time_range.start, call.name)
        for call in events
        if _RUNTIME.match(call.name) and block.start <= call.time_range.start < block.end
    )


def nvml_identity(bench: Bench) -> Verdict:
    """Compare the GPU that NVML finds by its UUID with the one that torch computes on."""
    cuda = bench.torch.cuda.get_device_properties(bench.name)
    with _open_gpu(bench) as gpu:
        facts = gpu.facts()
    if facts.total_bytes is None:
        raise SkippedError(f"NVML does not tell the memory: {gpu.absent.get('total_bytes')}")
    share = facts.total_bytes / cuda.total_memory
    # CUDA leaves out what the driver keeps for itself.
    return facts.name == cuda.name and 0.98 <= share <= 1.02, (
        f"NVML finds {facts.name} under {bench.uuid}, CUDA computes on {cuda.name}; memory by "
        f"NVML over CUDA's: {share:.3f} (0.98 to 1.02)"
    )


@contextlib.contextmanager
def _open_gpu(bench: Bench) -> Iterator[Gpu]:
    """Open in NVML the GPU that torch computes on. Raises SkippedError where NVML is silent."""
    with nvml.open_gpus([bench.uuid]) as (gpu,):
        if gpu.facts().uuid is None:
            raise SkippedError(f"NVML does not tell of this GPU: {gpu.absent['uuid']}")
        yield gpu


def allocator(bench: Bench) -> Verdict:
    """Hold allocations of known size, alive at once, against the peaks."""
    bench.torch.cuda.empty_cache()
    bench.device.reset_peaks()
    (before,) = bench.device.memory()
    held = [
        bench.torch.empty(size, dtype=bench.torch.uint8, device=bench.name) for size in _KNOWN_BYTES
    ]
    (after,) = bench.device.memory()
    del held
    peaks = (before.peak_allocated_bytes, after.peak_allocated_bytes)
    if peaks[0] is None or peaks[1] is None:
        raise SkippedError("The allocator does not count its peaks: it is not torch's own")
    rise, known = peaks[1] - peaks[0], sum(_KNOWN_BYTES)
    return rise == known, f"The peak rose by {rise:,} bytes for tensors of {known:,} bytes"


def _empty(bench: Bench, size: int) -> object:
    return bench.torch.empty(size, dtype=bench.torch.uint8, device=bench.name)


def gpu_neighbour(bench: Bench) -> Verdict:
    """Read the memory in use by NVML, before and while another program holds some."""
    with _open_gpu(bench) as gpu:
        bench.device.synchronize()
        before = gpu.readings().used_bytes
        with _neighbour(bench):
            after = gpu.readings().used_bytes
    if before is None or after is None:
        raise SkippedError(f"NVML does not tell memory in use: {gpu.absent.get('used_bytes')}")
    seen = (after - before) / _MIB
    return after - before >= 0.95 * _HELD_BYTES, (
        f"A program that holds {_HELD_BYTES // _MIB} MiB raised the memory in use by {seen:.0f} "
        "MiB (at least 95 % of it)"
    )


_ALL = (cpu_time, cpu_neighbour, known_kernel, one_wait, nvml_identity, allocator, gpu_neighbour)
CHECKS = {check.__name__: check for check in _ALL}


def run_check(name: str, bench: Bench) -> DeepCheck:
    """Try one check."""
    try:
        has_passed, what = CHECKS[name](bench)
    except SkippedError as reason:
        return DeepCheck(name=name, outcome=DeepOutcome.SKIPPED, what=str(reason))
    outcome = DeepOutcome.PASSED if has_passed else DeepOutcome.FAILED
    return DeepCheck(name=name, outcome=outcome, what=what)


def open_bench(name: str, uuid: str) -> Bench:
    """Return the device called `name`; torch is imported for a GPU only."""
    torch = importlib.import_module("torch") if name != "cpu" else None
    return Bench(torch=torch, device=device.open_device(name), name=name, uuid=uuid)


if __name__ == "__main__":
    check, where, argument = sys.argv[1:]
    if check == "neighbour":
        linux.end_with_parent(int(argument))
        _be_neighbour(where)
    said = msgspec.json.encode(run_check(check, open_bench(where, argument))).decode()
    sys.stdout.write(f"\n{said}\n")
    knobs.end_process(0)
