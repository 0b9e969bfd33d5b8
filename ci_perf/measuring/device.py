"""Time and memory of a CPU and of a CUDA device, behind one interface; CPU time of processes."""

import contextlib
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol, Self

from ci_perf.model.process import DeviceMemory

_PROC = Path("/proc")
# A clock id of Linux names a process: the complement of its id, and two bits that ask for the time
# that the scheduler gave it (CPUCLOCK_SCHED), see clock_getcpuclockid(3).
_ID_BITS, _SCHEDULED = 3, 2
Step = Callable[[], object]
# Nanoseconds since some moment in the past.
Clock = Callable[[], int]
# Nanoseconds of CPU time; `None` where nobody knows them.
CpuClock = Callable[[], int | None]


def cpu_time_ns() -> int | None:
    """Return the CPU time used so far, in nanoseconds; `None` where it cannot be known.

    All threads count, and all descendants: the living ones (workers of a DataLoader) by their own
    clocks, those that have ended once somebody has waited for them. A thread that runs on another
    CPU at this moment is known up to the kernel's last tick (1 to 10 ms).

    Not counted: what other programs and the kernel's own threads do for this process, a descendant
    that nobody waits for, and what had ended below a descendant that still lives. Waiting costs no
    CPU time, unless a thread waits in a loop. `None` without Linux and its lists of children: CPU
    time without its workers would show a gain where work only moves into one.
    """
    if sys.platform != "linux":
        return None
    living_ns = 0
    if has_children():
        if not _children(os.getpid(), "self").exists():
            return None
        living_ns = sum(map(_read_scheduled_ns, _below(os.getpid())))
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended_ns = round((ended.ru_utime + ended.ru_stime) * 1e9)
    # Last, so that next to nothing of this function lies between two readings.
    return living_ns + ended_ns + time.process_time_ns()


def count_tasks() -> int:
    """Count the threads of this process and of all descendants that live."""
    pids = [os.getpid(), *_below(os.getpid())]
    return sum(len(_list_ids(_PROC / str(pid) / "task")) for pid in pids)


def has_children() -> bool:
    """Whether this process has a child, at the price of one system call; none is waited for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _children(task: int, process: int | str) -> Path:
    """Return where the kernel lists the children of a thread, with CONFIG_PROC_CHILDREN."""
    return _PROC / str(process) / "task" / str(task) / "children"


def _below(process: int) -> Iterator[int]:
    """Yield the ids of the descendants; threads and processes may end meanwhile."""
    for task in _list_ids(_PROC / str(process) / "task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in map(int, _children(task, process).read_text().split()):
                yield child
                yield from _below(child)


def _list_ids(folder: Path) -> list[int]:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [int(path.name) for path in folder.iterdir()]
    return []


def _read_scheduled_ns(pid: int) -> int:
    """Return the CPU time of all threads of a process; 0 where it has just been waited for."""
    with contextlib.suppress(OSError):
        return time.clock_gettime_ns(~pid << _ID_BITS | _SCHEDULED)
    return 0


@dataclass(frozen=True, slots=True)
class Block:
    """Steps that were run back to back, with one wait for the device at the end.

    ``step_s`` is seconds per step by the host's clock, from before the first step until the device
    has finished the last one. ``device_s`` is seconds per step between the events at both ends of
    the block: while the device waits for the host in there, it counts as well. ``issue_s`` is how
    long the host took to queue the first step: nothing was queued before it, so nothing held the
    host back. A step as long as this one is bound by the host. Both are `None` on a CPU, where a
    step has finished when it returns. ``steps_s`` has one value per step: on CUDA between the
    events around it, on a CPU by the clock. ``cpu_s`` is the CPU time per step of the process and
    all below it; `None` on CUDA, and where nobody knows it.
    """

    step_s: float
    steps_s: tuple[float, ...]
    device_s: float | None = None
    issue_s: float | None = None
    cpu_s: float | None = None


class TimingEvent(Protocol):
    """What is used of a `torch.cuda.Event`."""

    def record(self) -> object:
        """Queue the event on the current stream: it happens when the work before it is done."""

    def elapsed_time(self, end_event: Self, /) -> float:
        """Return milliseconds from this event to a later one; both must have happened."""


class Cuda(Protocol):
    """The slice of `torch.cuda` that is used, so that a simulated stream can stand in."""

    def Event(self, *, enable_timing: bool) -> TimingEvent:  # noqa: N802  torch's name
        """Make an event. CUDA knows of it once it was recorded for the first time."""

    def synchronize(self, device: int, /) -> object:
        """Wait until the device has done everything that was queued, on all of its streams."""

    def memory_stats(self, device: int, /) -> Mapping[str, int]:
        """Return what the allocator has counted, by torch's names."""

    def reset_peak_memory_stats(self, device: int, /) -> object:
        """Make the present use of memory the new peak."""

    def reset_accumulated_memory_stats(self, device: int, /) -> object:
        """Count retries and failures from zero again."""

    def get_allocator_backend(self) -> str:
        """Name the allocator: "native", "cudaMallocAsync" or "pluggable"."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """A moment: on the host, and for the device once it gets there."""

    host_ns: int
    event: TimingEvent | None = None


class Device:
    """What the measuring loop needs from a device: here a CPU, whose steps end when they return."""

    def __init__(
        self, clock: Clock = time.perf_counter_ns, cpu_clock: CpuClock = cpu_time_ns
    ) -> None:
        self._clock = clock
        self._cpu_clock = cpu_clock

    def time_block(self, step: Step, count: int) -> Block:
        """Run `count` steps (at least one) back to back, then wait for the device once."""
        clock = self._clock
        cpu_begin = self._cpu_clock()
        moments = [clock()]
        for _ in range(count):
            step()
            moments.append(clock())
        cpu_end = self._cpu_clock()
        return Block(
            step_s=_seconds((moments[-1] - moments[0]) / count),
            steps_s=tuple(_seconds(after - before) for before, after in pairwise(moments)),
            cpu_s=(
                None
                if cpu_begin is None or cpu_end is None
                else _seconds((cpu_end - cpu_begin) / count)
            ),
        )

    def synchronize(self) -> None:
        """Wait until everything that was queued is done."""

    def stamp(self) -> Stamp:
        """Mark this moment, without waiting for the device."""
        return Stamp(self._clock())

    def between(self, begin: Stamp, end: Stamp) -> tuple[float, float | None]:
        """Return seconds on the host, and on the device where there is one.

        Both stamps must lie before the latest `synchronize`.
        """
        return (end.host_ns - begin.host_ns) / 1e9, None

    def reset_peaks(self) -> None:
        """Forget earlier peaks and failures of the device's memory."""

    def memory(self) -> tuple[DeviceMemory, ...]:
        """Return what happened on each card since `reset_peaks`; empty where there is none."""
        return ()


class ReportedSteps(Device):
    """A CPU on which a step is as long as the program that it runs has reported, where it has."""

    def __init__(self, reported_s: Callable[[], Sequence[float]]) -> None:
        super().__init__()
        self._reported_s = reported_s

    def time_block(self, step: Step, count: int) -> Block:
        """Run `count` programs; the block is the median of all that they have reported."""
        reported: list[float] = []

        def run_reporting() -> None:
            step()
            reported.extend(self._reported_s())

        block = super().time_block(run_reporting, count)
        if not reported:
            return block
        return Block(step_s=statistics.median(reported), steps_s=tuple(reported), cpu_s=block.cpu_s)


class CudaDevice(Device):
    """Steps only queue their work: events between them tell when the device got there.

    Where one process serves several cards (DataParallel), `index` is the first of them: it is
    timed, and memory is read from `cards` cards.

    Events are recorded on the stream that is current. What a step queues on other streams counts
    for ``step_s``, and for the events as far as the current stream waits for it.
    """

    def __init__(
        self, cuda: Cuda, index: int, clock: Clock = time.perf_counter_ns, *, cards: int = 1
    ) -> None:
        super().__init__(clock)
        self._cuda = cuda
        self._index = index
        self._cards = range(index, index + cards)
        self._events: list[TimingEvent] = []

    def time_block(self, step: Step, count: int) -> Block:
        """See Device."""
        clock = self._clock
        events = self._prepared(count + 1)
        first, second, *others = events
        self.synchronize()
        start = clock()
        first.record()
        begin = clock()
        step()
        queued = clock()
        second.record()
        for event in others:
            step()
            event.record()
        self.synchronize()
        end = clock()
        return Block(
            step_s=_seconds((end - start) / count),
            steps_s=tuple(_seconds(_read_elapsed_ns(*pair)) for pair in pairwise(events)),
            device_s=_seconds(_read_elapsed_ns(first, events[-1]) / count),
            issue_s=_seconds(queued - begin),
        )

    def synchronize(self) -> None:
        """See Device."""
        self._cuda.synchronize(self._index)

    def stamp(self) -> Stamp:
        """See Device."""
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return Stamp(self._clock(), event)

    def between(self, begin: Stamp, end: Stamp) -> tuple[float, float]:
        """See Device."""
        assert begin.event is not None
        assert end.event is not None
        return (end.host_ns - begin.host_ns) / 1e9, _read_elapsed_ns(begin.event, end.event) / 1e9

    def reset_peaks(self) -> None:
        """See Device."""
        for card in self._cards:
            self._cuda.synchronize(card)
            self._cuda.reset_peak_memory_stats(card)
            self._cuda.reset_accumulated_memory_stats(card)

    def memory(self) -> tuple[DeviceMemory, ...]:
        """See Device."""
        return tuple(self._memory(card) for card in self._cards)

    def _memory(self, card: int) -> DeviceMemory:
        self._cuda.synchronize(card)
        stats = self._cuda.memory_stats(card)
        if self._cuda.get_allocator_backend() != "native":
            # Other allocators answer 0 to what they do not count.
            stats = {name: value for name, value in stats.items() if value}
        return DeviceMemory(
            peak_allocated_bytes=stats.get("allocated_bytes.all.peak"),
            peak_reserved_bytes=stats.get("reserved_bytes.all.peak"),
            peak_active_bytes=stats.get("active_bytes.all.peak"),
            alloc_retries=stats.get("num_alloc_retries"),
            out_of_memory=stats.get("num_ooms"),
        )

    def _prepared(self, count: int) -> list[TimingEvent]:
        """Return `count` events that CUDA knows already; those of earlier blocks serve again.

        An earlier block has read its events before it returned, or failed and left some recorded:
        recording an event again moves it.
        """
        while len(self._events) < count:
            event = self._cuda.Event(enable_timing=True)
            event.record()  # torch creates it only now, which must not happen within a block
            self._events.append(event)
        return self._events[:count]


def open_device(name: str, cards: int = 1) -> Device:
    """Return the device called `name` ("cpu", "cuda:0"), the first of so many `cards`."""
    if name == "cpu":
        return Device()
    if not name.startswith("cuda"):
        raise ValueError(
            f"device {name!r}: expected 'cpu' or 'cuda:N'. How to wait for any other device is "
            "not known here, so its steps cannot be timed."
        )
    import torch

    device = torch.device(name)
    torch.cuda.set_device(device)
    return CudaDevice(torch.cuda, torch.cuda.current_device(), cards=cards)


def highest(cards: Sequence[DeviceMemory]) -> DeviceMemory | None:
    """Return the highest value of any card, by field; `None` without a card."""
    if not cards:
        return None
    values_by_field: dict[str, int | None] = {}
    for name in DeviceMemory.__struct_fields__:
        values = [getattr(card, name) for card in cards]
        values_by_field[name] = max((value for value in values if value is not None), default=None)
    return DeviceMemory(**values_by_field)


def _read_elapsed_ns(begin: TimingEvent, end: TimingEvent) -> float:
    return begin.elapsed_time(end) * 1e6  # events count milliseconds


def _seconds(nanoseconds: float) -> float:
    """Convert; a clock that has not ticked says that less than its tick has passed, not nothing."""
    return max(nanoseconds, 1) / 1e9
