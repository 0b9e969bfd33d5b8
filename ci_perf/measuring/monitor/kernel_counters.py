"""Read the kernel's counters of a host and of processes; two readings make a difference.

A counter that does not exist, or belongs to a process that has ended, is absent (`None`).
"""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ci_perf.system import linux, processes
from ci_perf.system.linux import read_or_nothing

# The unit of times in /proc/PID/stat.
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCounters:
    """Seconds in which some task waited, that the quota took, and of CPU time by process."""

    cpu_wait_s: float | None
    memory_wait_s: float | None
    throttled_s: float | None
    cpu_s: dict[int, float]


def read(
    pids: Iterable[int], *, proc: Path = linux.PROC, cgroups: Path = linux.CGROUPS
) -> KernelCounters:
    """Read the host, the control group of the first process, and every process that still is."""
    pids = list(pids)
    cpu_s = {pid: _read_cpu_s(proc / str(pid)) for pid in pids}
    return KernelCounters(
        cpu_wait_s=_read_waited(proc, "cpu"),
        memory_wait_s=_read_waited(proc, "memory"),
        throttled_s=_read_throttled(proc / str(pids[0]) if pids else proc / "self", cgroups),
        cpu_s={pid: seconds for pid, seconds in cpu_s.items() if seconds is not None},
    )


def cpu_s(before: KernelCounters, after: KernelCounters) -> float | None:
    """Return the processor time between two readings, of the processes that are in both."""
    both = before.cpu_s.keys() & after.cpu_s.keys()
    return max(0.0, sum(after.cpu_s[pid] - before.cpu_s[pid] for pid in both)) if both else None


def rss_peak_bytes(pid: int, proc: Path = linux.PROC) -> int | None:
    """Return the largest resident set of a process so far; `None` once it has ended."""
    return _kilobytes(read_or_nothing(proc / str(pid) / "status")).get("VmHWM")


@dataclass(frozen=True, slots=True)
class MemoryBelow:
    """What the processes below one hold beside it, and how that was added up: see `Memory`.

    ``count`` is how many they are, ``largest`` the peak of the largest one by itself.
    """

    size: int = 0
    by: Literal["", "pss", "rss"] = ""
    count: int = 0
    largest: int = 0


def memory_below(pid: int) -> MemoryBelow:
    """Read what the descendants of a process that live hold beside what it holds itself.

    Each has its peak so far. Pages that it shares with others of them, and with the process, count
    once; of files, which one mapped as a rule where another one did, those of whoever has most.
    """
    below = [known for each in processes.below(pid) if (known := _resident(each.pid))]
    own = _resident(pid)
    if own is None or not below:
        return MemoryBelow()
    count, largest = len(below), max(each.peak for each in below)
    shared = [each.shared for each in (own, *below)]
    if None in shared:
        return MemoryBelow(sum(each.peak for each in below), "rss", count, largest)
    files = max(0, max(each.files for each in below) - own.files)
    alone = sum(each.peak - each.files for each in below) - sum(filter(None, shared))
    return MemoryBelow(max(0, alone + files), "pss", count, largest)


@dataclass(frozen=True, slots=True)
class _Resident:
    """Bytes of one process: the peak, and now those of files, and by how much others share.

    ``shared`` is what anonymous and shared memory is less, where each page counts by the share of
    the process in it; `None` where the kernel does not tell.
    """

    peak: int
    files: int
    shared: int | None


def _resident(pid: int, proc: Path = linux.PROC) -> _Resident | None:
    """Read one process; `None` once it has ended."""
    status = _kilobytes(read_or_nothing(proc / str(pid) / "status"))
    if "VmHWM" not in status:
        return None
    rollup = _kilobytes(read_or_nothing(proc / str(pid) / "smaps_rollup"))
    shared = None
    if "Pss_Anon" in rollup:
        resident = status.get("RssAnon", 0) + status.get("RssShmem", 0)
        shared = max(0, resident - rollup["Pss_Anon"] - rollup.get("Pss_Shmem", 0))
    return _Resident(status["VmHWM"], status.get("RssFile", 0), shared)


def _kilobytes(text: str) -> dict[str, int]:
    """Return the sizes of a file of /proc by name, in bytes."""
    sizes = re.findall(r"^(\w+):\s+(\d+) kB$", text, re.MULTILINE)
    return {name: int(size) * 1024 for name, size in sizes}


def _read_waited(proc: Path, resource: str) -> float | None:
    text = read_or_nothing(proc / "pressure" / resource)
    line = re.search(r"^some .*\btotal=(\d+)", text, re.MULTILINE)
    return int(line[1]) / 1e6 if line else None


def _read_cpu_s(folder: Path) -> float | None:
    # "pid (name) state ppid ... utime stime ...": the name may hold anything.
    fields = read_or_nothing(folder / "stat").rpartition(")")[2].split()
    if len(fields) < 13 or not (fields[11] + fields[12]).isdigit():
        return None
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def _read_throttled(process: Path, cgroups: Path) -> float | None:
    """Add up what the quotas of a process's control group, and of those above it, have taken.

    In a container a path may be the host's, and only the root of it mounted.
    """
    taken_s = [
        seconds
        for mount, path, _ in linux.find_control_groups("cpu", process, cgroups)
        for folder in (mount / path.lstrip("/"), *(mount / path.lstrip("/")).parents)
        if folder.is_relative_to(mount)
        if (seconds := _parse_throttled(read_or_nothing(folder / "cpu.stat"))) is not None
    ]
    return sum(taken_s) if taken_s else None


def _parse_throttled(text: str) -> float | None:
    """Return seconds: microseconds in version 2, nanoseconds in version 1."""
    if line := re.search(r"^throttled_usec (\d+)$", text, re.MULTILINE):
        return int(line[1]) / 1e6
    if line := re.search(r"^throttled_time (\d+)$", text, re.MULTILINE):
        return int(line[1]) / 1e9
    return None
