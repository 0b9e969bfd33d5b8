"""Run a program and capture its output; find the descendants of a process, and end them.

Descendants are read from /proc: without /proc there are none.
"""

import contextlib
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ci_perf.system import signals

_PROC = Path("/proc")
# Of what a program says when it fails, for a message.
_MOST_ERROR_BYTES = 2_000
# More looks at the processes below one than an honest program needs to stop starting others.
_LOOKS = 20


class FailedProgramError(Exception):
    """A program ended with another code than 0; the message is what it wrote to stderr."""


@dataclass(frozen=True, slots=True)
class ProcessEntry:
    """One process of /proc. It can leave its parent's session for a new one, but join no other."""

    pid: int
    parent: int
    session: int


def below(root: int, *, but: Collection[int] = ()) -> list[ProcessEntry]:
    """Return all descendants of `root`, also dead ones; those in `but` with theirs are left out."""
    children: dict[int, list[ProcessEntry]] = {}
    for pid in _pids():
        with contextlib.suppress(OSError):
            stat = (_PROC / str(pid) / "stat").read_bytes()
            # "pid (name) state parent group session ...": the name may hold anything.
            parent, _, session = map(int, stat.rpartition(b")")[2].split()[1:4])
            children.setdefault(parent, []).append(ProcessEntry(pid, parent, session))
    descendants: list[ProcessEntry] = []
    parents = [root]
    while parents:
        born = [p for p in children.get(parents.pop(), []) if p.pid not in but]
        descendants += born
        parents += [p.pid for p in born]
    return descendants


def signal_below(
    root: int, what: signal.Signals, send: Callable[[int, signal.Signals], object]
) -> bool:
    """Signal all descendants of `root`; return whether the last look found no further ones.

    A process that is started while the others are being stopped is seen by the next look.
    """
    reached: set[int] = set()
    for _ in range(_LOOKS):
        pids = {process.pid for process in below(root)} - reached
        if not pids:
            return True
        for pid in pids:
            send(pid, what)
        reached |= pids
    return False


def wait_briefly(pid: int, timeout_s: float) -> None:
    """Return when a child of ours has ended, or after `timeout_s` seconds."""
    try:
        handle = os.pidfd_open(pid)
    except (AttributeError, OSError):  # no Linux 5.3, a Python built without it, or forbidden
        time.sleep(timeout_s)
        return
    try:
        poller = select.poll()
        poller.register(handle, select.POLLIN)
        poller.poll(1_000 * timeout_s)
    finally:
        os.close(handle)


def last_cpu(pid: int) -> int | None:
    """Return the CPU on which the first thread of a process ran last; `None` once it has ended."""
    try:
        stat = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    return int(stat.rpartition(b")")[2].split()[36])


@contextlib.contextmanager
def wake_on(pid: int, cpu: int) -> Iterator[None]:
    """Within, the first thread of a process may run on no other CPU, so that it wakes up there.

    Nothing happens where it may not run there in any case, or is not ours.
    """
    try:
        allowed = os.sched_getaffinity(pid)
        if cpu in allowed:
            os.sched_setaffinity(pid, {cpu})
    except OSError:
        allowed = set()
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            # It may have chosen others itself meanwhile.
            if cpu in allowed and os.sched_getaffinity(pid) == {cpu}:
                os.sched_setaffinity(pid, allowed)


def find_carrying(variable: str, value: str) -> list[int]:
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
    with _start_program(command, os.environ if environment is None else environment) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise TimeoutError from None
    return process.returncode, out, err


@contextlib.contextmanager
def stream(
    command: Sequence[str], *, environment: Mapping[str, str], given: bytes = b""
) -> Iterator[IO[bytes]]:
    """Run a program on the input `given`, and let the block read its output while it runs.

    A block that stops early ends the program. Raises OSError if it cannot be started, and
    FailedProgramError at the end of the block if it fails.
    """
    with (
        tempfile.TemporaryFile() as source,
        tempfile.TemporaryFile() as errors,
    ):
        # A file, and no pipe: nobody has to feed the program while its output is read.
        source.write(given)
        source.seek(0)
        with _start_program(command, environment, stdin=source, stderr=errors) as process:
            assert process.stdout is not None
            yield process.stdout
            process.stdout.close()
            code = process.wait()
        if code:
            errors.seek(0)
            raise FailedProgramError(_text(errors.read(_MOST_ERROR_BYTES)))


def _text(output: bytes) -> str:
    """Decode what a program wrote; a branch may be called in any encoding."""
    text = output.decode(errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


@contextlib.contextmanager
def _start_program(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stderr: int | IO[bytes] = subprocess.PIPE,
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
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
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
