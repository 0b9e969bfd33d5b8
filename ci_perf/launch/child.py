"""One child process: its output kept short, its time limited, nothing of it left behind."""

import collections
import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from ci_perf.launch import processes
from ci_perf.launch.processes import Process
from ci_perf.measure import linux

# What is kept of a child's output: enough for a traceback, harmless when it prints gigabytes.
TAIL_BYTES = 16 * 1024

# A hanging child gets this long to print where it hangs.
_STACK_DUMP_S = 0.5

# Rare enough not to be seen by what is measured.
_POLL_S = 0.05

# The kernel needs a moment to end a process; one that waits for a dead disk may never end.
_LAST_GASP_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a child ended. ``code`` is negative for a signal, as in subprocess."""

    code: int
    timed_out: bool
    tail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cookie:
    """An environment variable that every process of one launch inherits, to be found by it."""

    variable: str
    value: str


def run(
    command: Sequence[str],
    *,
    cwd: str,
    environment: Mapping[str, str],
    cookie: Cookie,
    timeout_s: float,
    interrupted: Callable[[], bool],
) -> Ended:
    """Run `command` to its end or its time limit.

    Output of both streams is drained, and its last part kept. Whatever the child started is
    killed with it. Raises OSError when it cannot be started, and KeyboardInterrupt once
    `interrupted` and after the child has been killed.
    """
    bystanders = processes.below(os.getpid())
    with linux.adopting_orphans():
        child = subprocess.Popen(
            command,
            cwd=cwd,
            env={**environment, cookie.variable: cookie.value},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches us, and we end the child in our own way
        )
        try:
            tail = _Tail(child.stdout)
            in_time = _wait(child, timeout_s, interrupted)
            if not in_time:
                _dump_stacks(child)
        finally:
            _end(child, cookie, bystanders)
    return Ended(code=child.returncode, timed_out=not in_time, tail=tail.text())


class _Tail:
    """Drains a pipe in a thread and remembers its end."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        self._pipe = pipe
        self._chunks: collections.deque[bytes] = collections.deque()
        self._size = 0
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        while chunk := os.read(self._pipe.fileno(), 65536):
            self._chunks.append(chunk[-TAIL_BYTES:])
            self._size += len(self._chunks[-1])
            while self._size - len(self._chunks[0]) >= TAIL_BYTES:
                self._size -= len(self._chunks.popleft())

    def text(self) -> str:
        """Return the last output. Every writer is dead by now, so the pipe has an end."""
        self._thread.join(timeout=5)
        if not self._thread.is_alive():
            self._pipe.close()
        return b"".join(self._chunks)[-TAIL_BYTES:].decode(errors="replace")


def _wait(
    child: "subprocess.Popen[bytes]", timeout_s: float, interrupted: Callable[[], bool]
) -> bool:
    """Return whether the child ended in time. Raises KeyboardInterrupt."""
    deadline = time.monotonic() + timeout_s
    while child.poll() is None:
        if interrupted():
            raise KeyboardInterrupt
        if time.monotonic() >= deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _dump_stacks(child: "subprocess.Popen[bytes]") -> None:
    """Have a hanging worker print where it hangs: it listens for SIGUSR1."""
    child.send_signal(signal.SIGUSR1)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=_STACK_DUMP_S)


def _end(child: "subprocess.Popen[bytes]", cookie: Cookie, bystanders: Sequence[Process]) -> None:
    """Kill the child, its group, and whatever else it has started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    deadline = time.monotonic() + _LAST_GASP_S
    while (found := _left(cookie, bystanders)) and time.monotonic() < deadline:
        for pid in found:
            processes.kill(pid)
        time.sleep(0.01)


def _left(cookie: Cookie, bystanders: Sequence[Process]) -> set[int]:
    """Return what is left of a launch: what bears its cookie, and what we have adopted.

    Bystanders are our descendants from before the launch. What these start meanwhile is not ours
    to end: it is below them, or orphaned in one of their sessions, which nobody else can join.
    """
    pids = {p.pid for p in bystanders}
    sessions = {os.getsid(0), *(p.session for p in bystanders)}
    adopted = processes.below(os.getpid(), but=pids)
    return {
        *processes.carrying(cookie.variable, cookie.value),
        *(p.pid for p in adopted if p.session not in sessions),
    }
