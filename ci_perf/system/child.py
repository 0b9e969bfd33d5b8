"""Run one child process: keep the end of its output, limit its time, leave nothing of it behind."""

import collections
import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Protocol, Self

from ci_perf.system import linux, processes
from ci_perf.system.processes import ProcessEntry

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
    """An environment variable that all processes of a launch inherit, and are recognized by."""

    variable: str
    value: str


class Child(Protocol):
    """A started process, as `subprocess.Popen` describes it, whose output is a pipe."""

    pid: int
    returncode: int | None
    stdout: IO[bytes] | None

    def poll(self) -> int | None:
        """Return how it has ended, `None` while it runs."""

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait for its end. May raise TimeoutExpired."""

    def send_signal(self, sig: int, /) -> None:
        """Send a signal; nothing to one that has ended."""


class ChildSlot(Protocol):
    """The turns of a child that runs only when it has one: `turn_scheduler.Slot`."""

    def started(self, child: Child) -> None:
        """Let this child take the turns."""

    def clock(self) -> float:
        """Return seconds; they do not pass while it waits."""


class Parallel:
    """The slot of a child that runs at the same time as another one, and waits for no turn."""

    def started(self, child: Child) -> None:
        """See ChildSlot."""

    def clock(self) -> float:
        """See ChildSlot."""
        return time.monotonic()


def run(
    command: Sequence[str] | Callable[[], Child],
    *,
    cwd: str,
    environment: Mapping[str, str],
    cookie: Cookie,
    timeout_s: float,
    interrupted: Callable[[], bool],
    slot: ChildSlot | None = None,
) -> Ended:
    """Run `command`, or what it starts itself, to its end or its time limit.

    Output of both streams is drained, and its last part kept. Whatever the child started is
    killed with it. Raises OSError when it cannot be started, and KeyboardInterrupt once
    `interrupted` and after the child has been killed.

    A child that takes turns has a `slot`, and its time limit counts its own turns only. The caller
    runs it within `end_orphans`: with two children at once, only the cookie tells whose an
    orphan is.
    """
    scope = end_orphans() if slot is None else contextlib.nullcontext(set[int])
    with scope as orphans, _Tail() as tail:
        child: Child = (
            command()
            if callable(command)
            else subprocess.Popen(
                command,
                cwd=cwd,
                env={**environment, cookie.variable: cookie.value},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C reaches us, and we end the child in our own way
            )
        )
        try:
            if slot is not None:
                slot.started(child)
            tail.drain(child.stdout)
            clock = time.monotonic if slot is None else slot.clock
            in_time = _wait(child, timeout_s, interrupted, clock)
            if not in_time:
                # A hanging worker prints where it hangs.
                child.send_signal(signal.SIGUSR1)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(timeout=_STACK_DUMP_S)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            _kill(lambda: {*processes.find_carrying(cookie.variable, cookie.value), *orphans()})
    return Ended(code=child.returncode or 0, timed_out=not in_time, tail=tail.text())


@contextlib.contextmanager
def end_orphans() -> Iterator[Callable[[], set[int]]]:
    """Adopt orphaned descendants within the block, and kill them at its end.

    Yields a function that returns those that a child has left so far.
    """
    bystanders = processes.below(os.getpid())
    with linux.adopt_orphans():
        try:
            yield lambda: _orphans(bystanders)
        finally:
            _kill(lambda: _orphans(bystanders))


class _Tail:
    """Drains a pipe in a thread within its block, and keeps the end of what came out."""

    def __init__(self) -> None:
        self._chunks: collections.deque[bytes] = collections.deque()
        self._size = 0
        self._pipe: IO[bytes] | None = None
        self._thread: threading.Thread | None = None
        # The thread reads an end of file here once it need not wait for more output.
        self._over, self._say_over = os.pipe()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Read the rest, but wait for no process that keeps the pipe open or full."""
        os.close(self._say_over)
        if self._thread is not None and self._pipe is not None:
            self._thread.join(timeout=5)
            if self._thread.is_alive():
                return
            self._pipe.close()
        os.close(self._over)

    def drain(self, pipe: IO[bytes] | None) -> None:
        """Begin to drain `pipe`."""
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
        self._pipe = pipe
        self._thread = threading.Thread(target=self._drain, args=(pipe.fileno(),), daemon=True)
        self._thread.start()

    def text(self) -> str:
        """Return the last output."""
        return b"".join(self._chunks.copy())[-TAIL_BYTES:].decode(errors="replace")

    def _drain(self, pipe: int) -> None:
        while True:
            ready, _, _ = select.select([pipe, self._over], [], [])
            try:
                chunk = os.read(pipe, 65536)
            except BlockingIOError:
                chunk = b""
                if self._over not in ready:
                    continue
            if not chunk:
                return
            self._chunks.append(chunk[-TAIL_BYTES:])
            self._size += len(self._chunks[-1])
            while self._size - len(self._chunks[0]) >= TAIL_BYTES:
                self._size -= len(self._chunks.popleft())


def _wait(
    child: Child,
    timeout_s: float,
    interrupted: Callable[[], bool],
    clock: Callable[[], float],
) -> bool:
    """Return whether the child ended in time. Raises KeyboardInterrupt."""
    deadline = clock() + timeout_s
    while child.poll() is None:
        if interrupted():
            raise KeyboardInterrupt
        if clock() >= deadline:
            return False
        processes.wait_briefly(child.pid, _POLL_S)
    return True


def _kill(left: Callable[[], set[int]]) -> None:
    """Kill the processes that `left` returns until there are none."""
    deadline = time.monotonic() + _LAST_GASP_S
    while (pids := left()) and time.monotonic() < deadline:
        for pid in pids:
            processes.kill(pid)
        time.sleep(0.01)


def _orphans(bystanders: Sequence[ProcessEntry]) -> set[int]:
    """Return the adopted processes and their descendants.

    Bystanders are our descendants from before the launch. We must not end what these start
    meanwhile: it is below them, or orphaned in one of their sessions, which no other can join.
    """
    pids = {p.pid for p in bystanders}
    sessions = {os.getsid(0), *(p.session for p in bystanders)}
    adopted = processes.below(os.getpid(), but=pids)
    return {p.pid for p in adopted if p.session not in sessions}
