"""Whether times are what they seem: events, the host's clock, CPU time and the GPU's own clock."""

import gc
import statistics
import time
from collections.abc import Iterator

from ci_perf.measuring.device import Step, cpu_time_ns
from ci_perf.measuring.monitor.nvml import Gpu
from ci_perf.measuring.probes import Bench, CannotTryError, gpu_state
from ci_perf.measuring.probes.steps import ROUNDS, median, median_s, product, warm
from ci_perf.model.metrics import Unit
from ci_perf.model.proof import Figure

_TICKS = 1000
# Shorter than the time that a scheduler gives a process at once.
_BUSY_S = 0.002
_SLICES = 500
_IDLE_S = 0.3
# Some 0.2 s on a GPU of 2 GHz: long enough to ask NVML meanwhile.
_LONG_CYCLES = 400_000_000
# Some 10 ms.
_SHORT_CYCLES = 20_000_000
_FEW_ROUNDS = 5
# Of shorter blocks than on a GPU.
_CPU_ROUNDS = 400


def events(bench: Bench) -> Iterator[Figure]:
    """Time a device-bound step by events and by the host's clock: both must agree."""
    step = product(bench)
    count = warm(bench, step)
    blocks = [bench.device.time_block(step, count) for _ in range(ROUNDS)]
    ratios = [block.device_s / block.step_s for block in blocks if block.device_s is not None]
    yield Figure(name="device_over_wall", value=statistics.median(ratios))
    yield Figure(name="step", value=statistics.median(b.step_s for b in blocks), unit=Unit.SECOND)


def harness(bench: Bench) -> Iterator[Figure]:
    """Time the same steps by a block of ours and by a bare loop, in turns.

    The quickest quarter of each is compared: others make a block longer, never shorter.
    """
    step = product(bench)
    count = warm(bench, step)
    loops = [lambda: bench.device.time_block(step, count).step_s, lambda: _bare(bench, step, count)]
    seconds: tuple[list[float], list[float]] = ([], [])
    gc.disable()
    for number in range(_CPU_ROUNDS if bench.is_cpu else ROUNDS):
        for which in (number % 2, 1 - number % 2):
            seconds[which].append(loops[which]())
    gc.enable()
    ours_s, bare_s = (statistics.quantiles(blocks, n=4)[0] for blocks in seconds)
    yield Figure(name="timed_over_bare", value=ours_s / bare_s)
    yield Figure(name="bare_step", value=bare_s, unit=Unit.SECOND)


def _bare(bench: Bench, step: Step, count: int) -> float:
    bench.device.synchronize()
    start = bench.clock()
    for _ in range(count):
        step()
    bench.device.synchronize()
    return (bench.clock() - start) / 1e9 / count


def clock_resolution(bench: Bench) -> Iterator[Figure]:
    """Look for the host clock's smallest tick, and hold CPU time against it, busy and asleep."""
    ticks = [_tick(bench) for _ in range(_TICKS)]
    yield Figure(name="tick", value=statistics.median(ticks) / 1e9, unit=Unit.SECOND)
    # Other programs take the CPU away, and never give some: the best slice is the least disturbed.
    busy = max(_cpu_share(_busy) for _ in range(_SLICES))
    yield Figure(name="busy_cpu_over_wall", value=busy)
    idle = median(lambda: _cpu_share(lambda: bench.sleep(_IDLE_S)), _FEW_ROUNDS)
    yield Figure(name="idle_cpu_over_wall", value=idle)


def _tick(bench: Bench) -> int:
    start = bench.clock()
    while (now := bench.clock()) == start:
        pass
    return now - start


def _cpu_share(work: Step) -> float:
    """Return CPU time over the wall's. Raises CannotTryError where nobody knows CPU time."""
    begin, start = cpu_time_ns(), time.perf_counter_ns()
    work()
    end, stop = cpu_time_ns(), time.perf_counter_ns()
    if begin is None or end is None:
        raise CannotTryError("this system does not tell CPU time: it needs Linux")
    return (end - begin) / (stop - start)


def _busy() -> None:
    end = time.perf_counter() + _BUSY_S
    while time.perf_counter() < end:
        pass


def known_kernel(bench: Bench) -> Iterator[Figure]:
    """Time a kernel of known cycles by events, and read the clock that it runs at by NVML."""
    with gpu_state.opened(bench) as gpu:
        for _ in range(_FEW_ROUNDS):  # an idle GPU needs about a second to raise its clocks
            _slept(bench, gpu, _LONG_CYCLES)
        single = [_slept(bench, gpu, _LONG_CYCLES) for _ in range(_FEW_ROUNDS)]
        double = [_slept(bench, gpu, 2 * _LONG_CYCLES) for _ in range(_FEW_ROUNDS)]
    ratios = [seconds * mhz * 1e6 / _LONG_CYCLES for seconds, mhz in single]
    kernel_s = statistics.median(seconds for seconds, _ in single)
    clock_mhz = statistics.median(mhz for _, mhz in single)
    doubled = statistics.median(seconds for seconds, _ in double) / kernel_s
    yield Figure(name="kernel_over_clock", value=statistics.median(ratios))
    yield Figure(name="doubled", value=doubled)
    yield Figure(name="kernel", value=kernel_s, unit=Unit.SECOND)
    yield Figure(name="sm_clock", value=clock_mhz, unit=Unit.MEGAHERTZ)


def _slept(bench: Bench, gpu: Gpu, cycles: int) -> tuple[float, float]:
    """Return the seconds of a kernel of so many cycles, and the clock in its middle in MHz."""
    begin = bench.device.stamp()
    _spin(bench, cycles)
    end = bench.device.stamp()
    mhz = gpu.readings().sm_clock_mhz
    bench.device.synchronize()
    if not mhz:
        raise CannotTryError(f"NVML does not tell the clock: {gpu.absent.get('sm_clock_mhz')}")
    device_s = bench.device.between(begin, end)[1]
    assert device_s is not None
    return device_s, mhz


def other_stream(bench: Bench) -> Iterator[Figure]:
    """Queue a kernel on another stream, which the current one waits for or not."""
    cuda = bench.torch.cuda
    other = cuda.Stream(bench.name)

    def alone() -> None:
        with cuda.stream(other):
            _spin(bench, _SHORT_CYCLES)

    def joined() -> None:
        alone()
        cuda.current_stream().wait_stream(other)

    warm(bench, lambda: _spin(bench, _SHORT_CYCLES))
    kernel_s = median_s(bench, lambda: _spin(bench, _SHORT_CYCLES), 1)
    yield Figure(name="clock", value=median_s(bench, alone, 1) / kernel_s)
    yield Figure(name="events_alone", value=_by_events(bench, alone) / kernel_s)
    yield Figure(name="events_joined", value=_by_events(bench, joined) / kernel_s)
    yield Figure(name="kernel", value=kernel_s, unit=Unit.SECOND)


def _by_events(bench: Bench, step: Step) -> float:
    def once() -> float:
        device_s = bench.device.time_block(step, 1).device_s
        assert device_s is not None
        return device_s

    return median(once)


def _spin(bench: Bench, cycles: int) -> None:
    """Queue a kernel that waits for so many cycles of its multiprocessor."""
    bench.torch.cuda._sleep(cycles)  # noqa: SLF001  torch has no public name for it
