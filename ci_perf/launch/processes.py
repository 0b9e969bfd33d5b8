"""Which processes descend from whom, as /proc says, and how to end them. None without /proc."""

import contextlib
import os
import signal
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """One process. Whoever leaves its parents' session makes a new one, and can join no other."""

    pid: int
    parent: int
    session: int


def below(root: int, *, but: Collection[int] = ()) -> list[Process]:
    """Return all descendants of `root`, also dead ones; those in `but` with theirs are left out."""
    children: dict[int, list[Process]] = {}
    for process in _all():
        children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    parents = [root]
    while parents:
        born = [p for p in children.get(parents.pop(), []) if p.pid not in but]
        found += born
        parents += [p.pid for p in born]
    return found


def carrying(variable: str, value: str) -> list[int]:
    """Return the ids of the processes that were started with this environment variable."""
    mark = os.fsencode(f"{variable}={value}")
    found = []
    for pid in _pids():
        with contextlib.suppress(OSError):
            if mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                found.append(pid)
    return found


def kill(pid: int) -> None:
    """Kill a process, and fetch its exit code if it is a child of ours."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _all() -> list[Process]:
    found = []
    for pid in _pids():
        with contextlib.suppress(OSError):
            stat = (_PROC / str(pid) / "stat").read_bytes()
            # "pid (name) state parent group session ...": the name may hold anything.
            _, parent, _, session = stat.rpartition(b")")[2].split()[:4]
            found.append(Process(pid, int(parent), int(session)))
    return found


def _pids() -> list[int]:
    """Return who was there a moment ago: any of them may be gone when it is looked at."""
    with contextlib.suppress(OSError):
        return [int(path.name) for path in _PROC.iterdir() if path.name.isdecimal()]
    return []
