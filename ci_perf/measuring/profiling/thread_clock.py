"""Tell the working of a thread from its waiting, and both from time that others had its CPU."""

import contextlib
import os
import time
from collections.abc import Iterator
from typing import NamedTuple

# Nanoseconds on a CPU, then ready to run without one; see Documentation/scheduler/sched-stats.rst.
_SCHEDULED = "/proc/thread-self/schedstat"
_READY_FIELD = 1
_BYTES = 100
# Asking the kernel takes some of it; and two clocks that are read in turn differ by less.
_WORTH_ASKING_NS = 20_000


class Lap(NamedTuple):
    """Nanoseconds: of CPU time, and of waiting."""

    working: int
    waiting: int


class ThreadClock:
    """Two clocks of the thread that made it, which measure laps."""

    def __init__(self, schedule: int | None) -> None:
        """Read the kernel's numbers from this open file; without it, being ready is waiting."""
        self._schedule = schedule
        self._ready = self._read_ready()
        self._cpu, self._wall = time.thread_time_ns(), time.perf_counter_ns()

    def lap(self) -> Lap:
        """Return what has passed since the last lap, and begin another one."""
        cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
        working = cpu - self._cpu
        waiting = max(wall - self._wall - working, 0)
        self._cpu, self._wall = cpu, wall
        if waiting > _WORTH_ASKING_NS:
            ready = self._read_ready()
            waiting = max(waiting - (ready - self._ready), 0)
            self._ready = ready
        return Lap(working, waiting)

    def _read_ready(self) -> int:
        if self._schedule is None:
            return 0
        try:
            return int(os.pread(self._schedule, _BYTES, 0).split()[_READY_FIELD])
        except (OSError, ValueError, IndexError):
            self._schedule = None
            return 0


@contextlib.contextmanager
def opened() -> Iterator[ThreadClock]:
    """Open the clock of this thread."""
    with contextlib.ExitStack() as stack:
        schedule = None
        with contextlib.suppress(OSError):
            schedule = os.open(_SCHEDULED, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, schedule)
        yield ThreadClock(schedule)
