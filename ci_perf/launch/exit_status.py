"""Why a process ended without a result: its exit code or signal, and whether memory ran out."""

import re
import signal
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf.model.process import Exhausted, Phase
from ci_perf.model.task import TaskFailure
from ci_perf.model.validity import Evidence
from ci_perf.system import child, linux
from ci_perf.system.linux import CGROUPS, PROC

# Counts of one control group: version 2 in memory.events, version 1 (Linux 4.13) in
# memory.oom_control. /proc/vmstat counts those of the whole host in the same form.
_COUNT = re.compile(r"^oom_kill (\d+)$", re.MULTILINE)

_MEANWHILE = "; meanwhile the kernel ended a process because memory had run out"


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryKills:
    """Whether the kernel has killed a process for want of memory while a task ran.

    ``is_ours``: it can only have been a process of the task, and not any on this host. ``words``
    end the sentence on how the process ended.
    """

    has_risen: bool
    is_ours: bool = True
    words: str = "; the kernel's out-of-memory killer did this"


@dataclass(frozen=True, slots=True, kw_only=True)
class KillCount:
    """The file in which the kernel counts its kills for want of memory, and the count.

    It counts our control group, or else the whole host.
    """

    file: Path
    before: int
    is_ours: bool

    def read(self) -> MemoryKills:
        """Say whether the kernel has killed a process since; it has not once the file is gone."""
        now = _count(self.file)
        return MemoryKills(has_risen=now is not None and now > self.before, is_ours=self.is_ours)


def kill_count(proc: Path = PROC, cgroups: Path = CGROUPS) -> KillCount | None:
    """Count the kills so far: of our control group, else of the host. `None` if unknown.

    A container may know its group by the path of the host, and have only the root of it.
    """
    for mount, path, is_version_2 in linux.find_control_groups("memory", proc / "self", cgroups):
        name = "memory.events" if is_version_2 else "memory.oom_control"
        for file in (mount / path.lstrip("/") / name, mount / name):
            if (before := _count(file)) is not None:
                return KillCount(file=file, before=before, is_ours=True)
    return kill_count_of_host(proc)


def kill_count_of_host(proc: Path = PROC) -> KillCount | None:
    """Count the kills so far of the whole host; `None` if unknown."""
    file = proc / "vmstat"
    before = _count(file)
    return None if before is None else KillCount(file=file, before=before, is_ours=False)


def describe(ended: child.Ended, phase: Phase, kills: MemoryKills | None) -> str:
    """Say how a process ended that left no result."""
    where = f" in phase {phase.value}"
    if ended.code >= 0:
        return f"the process ended with exit code {ended.code}{where}, without a result"
    name = linux.name_signal(ended.code)
    hint = {
        "SIGKILL": _about_sigkill(kills),
        "SIGSEGV": "; the stack is in the output",
    }.get(name, "")
    return f"the process was ended by {name}{where}{hint}"


def with_memory(
    failure: TaskFailure, ended: child.Ended, kills: MemoryKills | None, evidence: Evidence | None
) -> TaskFailure:
    """Add what is known of the memory, when a launch failed because there was too little of it.

    The reason that a process gave itself counts first. A process that was killed gave none. The end
    of a rank, or of a process that the workload has started, is told by another process: then the
    count of kills decides, if it is that of our control group and not of the whole host.
    """
    if failure.exhausted is not None or kills is None or not kills.has_risen:
        return failure
    was_killed = ended.code == -signal.SIGKILL and not ended.timed_out
    if not (was_killed or kills.is_ours):
        return failure
    peak = evidence.host_rss_peak_bytes if evidence else None
    return msgspec.structs.replace(
        failure,
        reason=failure.reason if was_killed else f"{failure.reason}{_MEANWHILE}",
        exhausted=Exhausted(kind="host", host_rss_peak_bytes=peak),
    )


def _about_sigkill(kills: MemoryKills | None) -> str:
    if kills is None:
        return "; the kernel's out-of-memory killer does this"
    if kills.has_risen:
        return kills.words
    return "; another process sent it, not the kernel's out-of-memory killer"


def _count(file: Path) -> int | None:
    match = _COUNT.search(linux.read_or_nothing(file))
    return int(match[1]) if match else None
