"""Times of one thread: working and waiting, lap by lap, and the quantile believed of many.

Neither is the time that others had its CPU.
"""

import contextlib
import os
import random
import time
from array import array
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

# Nanoseconds on a CPU, then ready to run without one; see Documentation/scheduler/sched-stats.rst.
_SCHEDULED = "/proc/thread-self/schedstat"
_READY_FIELD = 1
_BYTES = 100
# Asking the kernel takes some of it; and two clocks that are read in turn differ by less.
_WORTH_ASKING_NS = 20_000
# Reading both takes as much of the one, and not of the other.
_SHORTEST_WAIT_NS = 2_000
# The 25 % quantile of so many is off by less than one rank in seventy of all (one deviation).
_MOST: Final = 1000
_NS_PER_S = 1e9
# Not the generator that the program may have seeded.
_random = random.Random(0)  # noqa: S311  no secret


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
        waiting = wall - self._wall - working
        if waiting < _SHORTEST_WAIT_NS:
            waiting = 0
        self._cpu, self._wall = cpu, wall
        if waiting > _WORTH_ASKING_NS:
            ready = self._read_ready()
            waiting = max(waiting - (ready - self._ready), 0)
            self._ready = ready
        return Lap(working, waiting)

    def restart(self) -> None:
        """Begin another lap: what has passed since the last one is nobody's."""
        if time.perf_counter_ns() - self._wall > _WORTH_ASKING_NS:
            self._ready = self._read_ready()
        self._wall = time.perf_counter_ns()
        self._cpu = time.thread_time_ns()  # last: a lap ends with it, too

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


class Reservoir:
    """A fair sample of all times of one kind, in nanoseconds: at most 8 kB of them.

    The reservoir of algorithm R (Vitter 1985): each time has the same chance to be in it.
    """

    def __init__(self) -> None:
        self.count = 0
        self._kept = array("q")

    def add(self, time_ns: int) -> None:
        """Take one time into account."""
        self.count += 1
        if len(self._kept) < _MOST:
            self._kept.append(time_ns)
        elif (place := _random.randrange(self.count)) < _MOST:
            self._kept[place] = time_ns

    def quartile_s(self, *, less_s: float = 0.0) -> float | None:
        """Return the 25 % quantile in seconds, `None` of nothing; `less_s` is taken off.

        At most half of it is: what it takes to watch is not known as well as that.
        """
        if not self.count:
            return None
        whole_s = quartile(self._kept) / _NS_PER_S
        return max(whole_s - less_s, whole_s / 2)


def quartile(values: Iterable[float]) -> float:
    """Return the 25 % quantile of at least one value: a time that was disturbed lies above it."""
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 4]
