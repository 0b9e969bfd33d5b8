"""Run a program and capture its output; find the descendants of a process, and end them.

Descendants are read from /proc: without /proc there are none.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf.system import signals

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """One process of /proc. It can leave its parent's session for a new one, but join no other."""

    pid: int
    parent: int
    session: int


def below(root: int, *, but: Collection[int] = ()) -> list[ProcessEntry]:
    """Return all descendants of `root`, also dead ones; those in `but` with theirs are left out."""
    children: dict[int, list[ProcessEntry]] = {}
    for process in _all():
        children.setdefault(process.parent, []).append(process)
    descendants: list[ProcessEntry] = []
    parents = [root]
    while parents:
        born = [p for p in children.get(parents.pop(), []) if p.pid not in but]
        descendants += born
        parents += [p.pid for p in born]
    return descendants


def carrying(variable: str, value: str) -> list[int]:
    """Return the ids of the processes that were started with this environment variable."""
    mark = os.fsencode(f"{variable}={value}")
    pids = []
    for pid in _pids():
        with contextlib.suppress(OSError):
            if mark in (_PROC / str(pid) / "environ").read_bytes().split(b"\0"):
                pids.append(pid)
    return pids


def kill(pid: int) -> None:
    """Kill a process, and fetch its exit code if it is a child of ours."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def _all() -> list[ProcessEntry]:
    processes: list[ProcessEntry] = []
    for pid in _pids():
        with contextlib.suppress(OSError):
            stat = (_PROC / str(pid) / "stat").read_bytes()
            # "pid (name) state parent group session ...": the name may hold anything.
            _, parent, _, session = stat.rpartition(b")")[2].split()[:4]
            processes.append(ProcessEntry(pid, int(parent), int(session)))
    return processes


def _pids() -> list[int]:
    """Return the ids of all processes; each may have ended when it is looked at."""
    with contextlib.suppress(OSError):
        return [int(path.name) for path in _PROC.iterdir() if path.name.isdecimal()]
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """How a program ended, and its output; ``code`` is negative for a signal."""

    code: int
    out: str
    err: str


def capture(
    command: Sequence[str], *, timeout_s: float, environment: Mapping[str, str] | None = None
) -> Completed:
    """Run a program and capture its output; Ctrl-C does not reach it.

    Raises OSError if it cannot be started, TimeoutError if it does not end in time.
    """
    code, out, err = capture_bytes(command, timeout_s=timeout_s, environment=environment)
    return Completed(code=code, out=_text(out), err=_text(err))


def capture_bytes(
    command: Sequence[str], *, timeout_s: float, environment: Mapping[str, str] | None = None
) -> tuple[int, bytes, bytes]:
    """Run a program as `capture` does; return its exit code and all that it wrote, unchanged."""
    with _started(command, os.environ if environment is None else environment) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
    return process.returncode, out, err


def _text(output: bytes) -> str:
    """Decode what a program wrote; a branch may be called in any encoding."""
    text = output.decode(errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


@contextlib.contextmanager
def _started(
    command: Sequence[str], environment: Mapping[str, str]
) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a program in a session of its own; it has ended when the block ends. Raises OSError.

    Ctrl-C goes to our whole group, to which a child belongs until it has a session: at that moment
    it would end a `git worktree remove` before that has begun. So the program starts with the
    ending signals blocked, and keeps them so; SIGKILL ends it.
    """
    before = signals.block()
    try:
        process = subprocess.Popen(
            command,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except BaseException:
        signals.unblock(before)
        raise
    with process:
        try:
            # A signal that came during the start raises here, and the program is killed.
            signals.unblock(before)
            yield process
        except BaseException:
            process.kill()
            raise
