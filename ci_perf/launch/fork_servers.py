"""Processes that have imported what several launches need, and of which workers are forked.

A message to one is a folder, and variables of the worker as NAME=VALUE, on a line each, with two
pipes: for the output of the worker, and for its id and then its exit code, on a line each. The
child's side is measuring/fork_server.py.
"""

import contextlib
import os
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from ci_perf.launch import Interrupted
from ci_perf.model.task import HAS_THREADS, READY_TO_FORK
from ci_perf.system import processes
from ci_perf.system.child import Cookie

_POLL_S = 0.1
# A server that is asked for a worker is idle.
_FORK_S = 30.0


class ForkedWorker:
    """What `child.run` needs of a process, of one whose parent is a server."""

    def __init__(self, status: int, stdout: IO[bytes]) -> None:
        """Wait for the id. Raises OSError: the server has ended."""
        self.stdout: IO[bytes] | None = stdout
        self.returncode: int | None = None
        self._status = os.fdopen(status, "rb", buffering=0)
        self._lock = threading.Lock()  # whoever gives it its turns asks, too
        self.pid = self._read(_FORK_S) or 0
        if self.pid <= 0:
            raise ChildProcessError("the process that forks others has ended")

    def poll(self) -> int | None:
        """Return how it has ended, `None` while it runs."""
        return self.wait(0.0)

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for its end; return as `poll` does."""
        with self._lock:
            if self.returncode is None and (code := self._read(timeout)) is not None:
                self.returncode = code
                self._status.close()
            return self.returncode

    def send_signal(self, sig: int, /) -> None:
        """Send a signal; nothing to one that has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, sig)

    def _read(self, timeout: float | None) -> int | None:
        """Return the next number, `None` where there is none in time; without a server a kill."""
        ready, _, _ = select.select([self._status], [], [], timeout)
        if not ready:
            return None
        line = self._status.readline()
        return int(line) if line else -signal.SIGKILL


class ForkServer:
    """One of these processes; it lives until it is closed."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str,
        environment: Mapping[str, str],
        cookie: Cookie,
        timeout_s: float,
    ) -> None:
        """Start it by a command, with so many seconds until it can fork. Raises OSError."""
        # What it said, nothing where it has ended.
        self._said: bytes | None = None
        self._cookie, self._deadline = cookie, time.monotonic() + timeout_s
        self.line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                command,
                cwd=cwd,
                env={**environment, cookie.variable: cookie.value},
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,  # a launch of its own says what is wrong
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def has_ended(self) -> bool:
        """Whether it forks no more."""
        return self._process.poll() is not None

    def is_ready(self, interrupted: Interrupted) -> bool:
        """Wait until it can fork; `False` where it never will. Raises KeyboardInterrupt."""
        while self._said is None and time.monotonic() < self._deadline:
            if interrupted():
                raise KeyboardInterrupt
            if select.select([self.line], [], [], _POLL_S)[0]:
                self._said = self.line.recv(1)
        return self._said == READY_TO_FORK

    @property
    def has_threads(self) -> bool:
        """Whether its imports have started a thread, as they will again."""
        return self._said == HAS_THREADS

    def fork(self, folder: Path, variables: Mapping[str, str]) -> ForkedWorker:
        """Fork a worker for the task in a folder; without one it ends. Raises OSError."""
        output, of_worker = os.pipe()
        status, of_server = os.pipe()
        message = "\n".join([str(folder), *map("=".join, variables.items())])
        try:
            socket.send_fds(self.line, [message.encode()], [of_worker, of_server])
        finally:
            os.close(of_worker)
            os.close(of_server)
        try:
            return ForkedWorker(status, os.fdopen(output, "rb", buffering=0))
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """End it, with what it has forked and what its imports have started."""
        self.line.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pid in processes.find_carrying(self._cookie.variable, self._cookie.value):
            processes.kill(pid)
