"""CPU time of this process and of the processes below it. Known on Linux only."""

import contextlib
import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
# A clock id of Linux names a process: the complement of its id, and two bits that ask for the time
# that the scheduler gave it (CPUCLOCK_SCHED), see clock_getcpuclockid(3).
_ID_BITS, _SCHEDULED = 3, 2


def read_ns() -> int | None:
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
    if _has_children():
        if not _children(os.getpid(), "self").exists():
            return None
        living_ns = sum(map(_scheduled_ns, _below(os.getpid())))
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended_ns = round((ended.ru_utime + ended.ru_stime) * 1e9)
    # Last, so that next to nothing of this function lies between two readings.
    return living_ns + ended_ns + time.process_time_ns()


def _has_children() -> bool:
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
    for task in _listed(_PROC / str(process) / "task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in map(int, _children(task, process).read_text().split()):
                yield child
                yield from _below(child)


def _listed(folder: Path) -> list[int]:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return [int(path.name) for path in folder.iterdir()]
    return []


def _scheduled_ns(pid: int) -> int:
    """Return the CPU time of all threads of a process; 0 where it has just been waited for."""
    with contextlib.suppress(OSError):
        return time.clock_gettime_ns(~pid << _ID_BITS | _SCHEDULED)
    return 0
