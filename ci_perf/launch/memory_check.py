"""Check, before a resident pair starts, that the free memory is enough for both processes."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf.model.process import Memory
from ci_perf.model.suite import PlannedWorkload
from ci_perf.model.task import GpuState, GpuStates
from ci_perf.system.linux import PROC

_CGROUPS = Path("/sys/fs/cgroup")

# Peaks differ from launch to launch, and others on the machine take some meanwhile.
_SPARE = 1.2
# What a CUDA context and its kernels take of a GPU beside torch's allocator: 0.5 GB on an H100.
_CONTEXT_BYTES = 2**30

# What a process holds that has imported torch and transformers: 0.4 GB with the build for CPUs.
_IMPORTED_BYTES = 2**30
_PER_CORE = 2
# More would fight for the disk, and be lost together when a session is interrupted.
_MOST_AT_ONCE = 16

# Version 1 of the control groups spells "no limit" as the largest multiple of a page.
_NO_LIMIT = 2**60


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """The most memory that a process of one side has needed: of the host, and of each GPU."""

    host_bytes: int
    device_bytes: int = 0


def peak_of(memory: Memory) -> Peak:
    """Return what an earlier process measured."""
    reserved = memory.device.peak_reserved_bytes if memory.device else None
    host_bytes = memory.host_rss_peak_bytes + (memory.below_bytes or 0)
    return Peak(host_bytes=host_bytes, device_bytes=reserved or 0)


def reason_against(
    workload: PlannedWorkload,
    peaks: Sequence[Peak],
    gpus: GpuStates | None = None,
    *,
    proc: Path = PROC,
    cgroups: Path = _CGROUPS,
) -> str:
    """Say why processes with these peaks cannot be resident at once; empty when they can.

    `gpus` are those that both will use, as `Launcher.look` has seen them; `None` on a CPU.
    """
    if workload.launch == "torchrun" or workload.world_size > 1:
        return "ranks, and processes with several devices, are launched one after the other"
    host = sum(peak.host_bytes for peak in peaks)
    device = sum(peak.device_bytes + _CONTEXT_BYTES for peak in peaks)
    memories = [
        _Memory(place="this host", need=host, free=_available(proc)),
        *(_Memory(place=place, need=host, free=free) for place, free in _groups(proc, cgroups)),
        *(_Memory(place=gpu.uuid, need=device, free=_free(gpu)) for gpu in _states(gpus)),
    ]
    return next((reason for memory in memories if (reason := memory.reason_against())), "")


def processes_at_once(
    *, proc: Path = PROC, cgroups: Path = _CGROUPS, cores: int | None = None
) -> int:
    """Return how many processes may import at once and wait for their turn: one at least.

    Two per core (by default those that we may use): an import is one thread's work, and the longest
    would leave the other cores idle. In half of the memory that is free: the other half is for the
    one that has its turn.
    """
    known = [_available(proc), *(free for _, free in _groups(proc, cgroups))]
    free = [bytes_ for bytes_ in known if bytes_ is not None]
    if not free:
        return 1
    return max(
        1,
        min(
            _PER_CORE * (cores or len(os.sched_getaffinity(0))),
            _MOST_AT_ONCE,
            min(free) // 2 // _IMPORTED_BYTES,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Memory:
    """The memory of one place: how much is needed, and how much is free. `None` is unknown."""

    place: str
    need: int
    free: int | None

    def reason_against(self) -> str:
        if self.free is None:
            return f"{self.place}: nobody says how much memory is free"
        expected = self.need * _SPARE
        if self.free >= expected:
            return ""
        return (
            f"{self.place}: expected {_gigabytes(expected)} of free memory for both, "
            f"found {_gigabytes(self.free)}"
        )


def _states(gpus: GpuStates | None) -> tuple[GpuState, ...]:
    return () if gpus is None else gpus.gpus


def _free(gpu: GpuState) -> int | None:
    if gpu.total_bytes is None or gpu.used_bytes is None:
        return None
    return gpu.total_bytes - gpu.used_bytes


def _available(proc: Path) -> int | None:
    match = re.search(r"^MemAvailable:\s+(\d+) kB", _text(proc / "meminfo"), re.MULTILINE)
    return int(match[1]) * 1024 if match else None


def _groups(proc: Path, cgroups: Path) -> Iterator[tuple[str, int]]:
    """Yield what is free of each limit on us: "0::/path" is version 2, "4:memory:/path" 1.

    In a container the path may be the host's, and only the root of it mounted.
    """
    for line in _text(proc / "self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            files, mount = ("memory.max", "memory.current", "inactive_file"), cgroups
        elif "memory" in controllers.split(","):
            files = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            mount = cgroups / "memory"
        else:
            continue
        for folder in _from_root(mount, path):
            free = _free_of_group(folder, *files)
            if free is not None:
                yield f"the control group {folder}", free


def _from_root(mount: Path, path: str) -> Iterator[Path]:
    yield mount
    folder = mount
    for part in Path(path).parts[1:]:
        folder /= part
        yield folder


def _free_of_group(folder: Path, limit: str, usage: str, reclaimable: str) -> int | None:
    """Return what is left of a limit; the kernel frees pages of files by itself.

    `None` is no limit.
    """
    most, used = _text(folder / limit).strip(), _text(folder / usage).strip()
    if not (most.isdecimal() and used.isdecimal()) or int(most) > _NO_LIMIT:
        return None
    match = re.search(rf"^{reclaimable} (\d+)$", _text(folder / "memory.stat"), re.MULTILINE)
    return int(most) - int(used) + (int(match[1]) if match else 0)


def _gigabytes(count: float) -> str:
    return f"{count / 1e9:.1f} GB"


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
