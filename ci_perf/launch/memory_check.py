"""Check how many processes the free memory is enough for, before several are alive at once."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from ci_perf.model.process import Memory
from ci_perf.model.suite import PlannedWorkload
from ci_perf.system import linux
from ci_perf.system.linux import CGROUPS, PROC

# Peaks differ from launch to launch, and others on the machine take some meanwhile.
_SPARE = 1.2

# What a process holds that has imported torch and transformers: 0.4 GB with the build for CPUs.
_IMPORTED_BYTES = 2**30
# One that has done nothing else: 0.2 GB with torch, 0.3 GB with transformers.
_SERVER_BYTES = 2**29
_PER_CORE = 2
# More would fight for the disk, and be lost together when a session is interrupted.
_MOST_AT_ONCE = 16

# Version 1 of the control groups spells "no limit" as the largest multiple of a page.
_NO_LIMIT = 2**60


def has_room(
    workload: PlannedWorkload,
    needed: Sequence[Memory],
    *,
    proc: Path = PROC,
    cgroups: Path = CGROUPS,
) -> bool:
    """Whether processes that have needed so much can be alive at once on this host.

    Ranks, and processes with several devices, are launched one after the other.
    """
    if workload.launch == "torchrun" or workload.world_size > 1:
        return False
    peaks = [each.host_rss_peak_bytes + (each.below_bytes or 0) for each in needed]
    available = _available(proc)
    free = min([available or 0, *_free_in_groups(proc, cgroups)])
    return available is not None and free >= _SPARE * sum(peaks)


def processes_at_once(
    *, proc: Path = PROC, cgroups: Path = CGROUPS, cores: int | None = None
) -> int:
    """Return how many processes may import at once and wait for their turn: one at least.

    Two per core (by default those that we may use): an import is one thread's work, and the longest
    would leave the other cores idle. In half of the memory that is free: the other half is for the
    one that has its turn.
    """
    free = _free(proc, cgroups)
    cores = cores or len(os.sched_getaffinity(0))
    return max(1, min(_PER_CORE * cores, _MOST_AT_ONCE, free // 2 // _IMPORTED_BYTES))


def servers_at_once(alive: int, *, proc: Path = PROC, cgroups: Path = CGROUPS) -> int:
    """Return how many processes that fork others may live, of which so many do.

    They fit into half of the memory that is free without them.
    """
    return (_free(proc, cgroups) // _SERVER_BYTES + alive) // 2


def _free(proc: Path = PROC, cgroups: Path = CGROUPS) -> int:
    known = [_available(proc), *_free_in_groups(proc, cgroups)]
    return min((bytes_ for bytes_ in known if bytes_ is not None), default=0)


def _available(proc: Path) -> int | None:
    text = linux.read_or_nothing(proc / "meminfo")
    match = re.search(r"^MemAvailable:\s+(\d+) kB", text, re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def _free_in_groups(proc: Path, cgroups: Path) -> Iterator[int]:
    """Yield what is free of each limit on us; the kernel frees pages of files by itself.

    In a container the path of a group may be the host's, and only the root of it mounted.
    """
    for mount, path, is_version_2 in linux.find_control_groups("memory", proc / "self", cgroups):
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        if is_version_2:
            names = ("memory.max", "memory.current", "inactive_file")
        parts = Path(path).parts[1:]
        for depth in range(len(parts) + 1):
            folder = mount.joinpath(*parts[:depth])
            most, used = (linux.read_or_nothing(folder / name).strip() for name in names[:2])
            if most.isdecimal() and used.isdecimal() and int(most) <= _NO_LIMIT:
                text = linux.read_or_nothing(folder / "memory.stat")
                pages = re.search(rf"^{names[2]} (\d+)$", text, re.MULTILINE)
                yield int(most) - int(used) + (int(pages[1]) if pages else 0)
