"""One child process: its output kept short, its time limited, nothing of it left behind."""

import collections
import contextlib
import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

# What is kept of a child's output: enough for a traceback, harmless when it prints gigabytes.
TAIL_BYTES = 16 * 1024

# Every process started on behalf of a launch inherits this, so that it can be found again even
# when it has left the process group.
_COOKIE = "CI_PERF_LAUNCH"

# A hanging child gets this long to print where it hangs.
_STACK_DUMP_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a child ended. ``code`` is negative for a signal, as in subprocess."""

    code: int
    timed_out: bool
    tail: str


def run(
    command: Sequence[str], *, cwd: str, environment: Mapping[str, str], timeout_s: float
) -> Ended:
    """Run `command` to its end or its time limit.

    Output of both streams is drained, and its last part kept. Whatever the child started is
    killed with it. Raises OSError when it cannot be started, and KeyboardInterrupt after the
    child has been killed.
    """
    cookie = uuid.uuid4().hex
    child = subprocess.Popen(
        command,
        cwd=cwd,
        env={**environment, _COOKIE: cookie},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C reaches us, and we end the child in our own way
    )
    tail = _Tail(child.stdout)
    timed_out = False
    try:
        child.wait(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        timed_out = True
        _dump_stacks(child)
    finally:
        _kill_all(child, cookie)
    return Ended(code=child.returncode, timed_out=timed_out, tail=tail.text())


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


def _dump_stacks(child: "subprocess.Popen[bytes]") -> None:
    """Have a hanging worker print where it hangs: it listens for SIGUSR1."""
    child.send_signal(signal.SIGUSR1)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=_STACK_DUMP_S)


def _kill_all(child: "subprocess.Popen[bytes]", cookie: str) -> None:
    """Kill the child, its group, and everything that carries the cookie."""
    _kill_group(child.pid)
    child.wait()
    deadline = time.monotonic() + 5
    while (found := _carrying(cookie)) and time.monotonic() < deadline:
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _carrying(cookie: str) -> list[int]:
    """Find the processes whose environment holds the cookie; none where there is no /proc."""
    mark = f"{_COOKIE}={cookie}".encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark in entry.read_bytes():
                found.append(int(entry.parent.name))
    return found
