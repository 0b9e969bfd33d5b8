"""Turns of two resident processes, of which only one runs at any time: the side of the parent.

The other side is measure/turns.py. A process that waits is stopped (SIGSTOP) with its group: the
workers of its data loader, or threads that spin, would otherwise work while the partner is timed,
and what they fetched ahead would make its own next block look fast.
"""

import contextlib
import os
import random
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from ci_perf.model.task import TURN_ANSWERS, TURN_REQUESTS, TurnAnswer, TurnRequest
from ci_perf.system import scratch

T = TypeVar("T")

Interrupted = Callable[[], bool]

# What a seat is told for a process that will never ask again.
_GONE = b"g"


class Resident(Protocol):
    """Whoever has a seat: a process with all that it has started."""

    def signal(self, what: signal.Signals) -> None:
        """Send all of its processes a signal; nothing once they have ended. Raises OSError."""


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """A child of ours that leads a group of its own."""

    child: "subprocess.Popen[bytes]"

    def signal(self, what: signal.Signals) -> None:
        """See Resident."""
        if self.child.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.child.pid, what)


class Seat:
    """One of the two processes. Its conductor and the thread that waits for it are not the same.

    The named pipes are open for reading and writing: so opening them waits for nobody, and a
    process that has died, or whose own children keep one open, changes nothing. What comes out of
    them may be anything; that the process has ended is told by a pipe that has no name.
    """

    def __init__(self, folder: Path) -> None:
        """Make the pipes in `folder`, which is made. Raises OSError."""
        folder.mkdir()
        self.folder = folder
        self.word = b""
        self._resident: Resident | None = None
        # Seconds that it has waited, and since when it waits now: changed at once.
        self._waited: tuple[float, float | None] = (0.0, None)
        self._asked, self._granted = map(self._named_pipe, (TURN_REQUESTS, TURN_ANSWERS))
        self._ended, self._end = os.pipe()

    def _named_pipe(self, name: str) -> int:
        os.mkfifo(self.folder / name, 0o600)
        return os.open(self.folder / name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def started(self, child: "subprocess.Popen[bytes]") -> None:
        """Hear which process takes these turns; it leads a group of its own."""
        self.is_taken_by(ProcessGroup(child))

    def is_taken_by(self, resident: "Resident") -> None:
        """Hear who takes these turns."""
        self._resident = resident

    def leave(self) -> None:
        """Hear that the process has ended, however it did: its turn is free."""
        os.write(self._end, _GONE)

    def clock(self) -> float:
        """Return seconds; they do not pass while the process waits for its turn."""
        waited_s, since = self._waited
        now = time.monotonic()
        return now - waited_s - (0.0 if since is None else now - since)

    @property
    def is_taken(self) -> bool:
        """Whether there is a process that will need turns."""
        return self.word != _GONE

    def hear(self) -> None:
        """Wait until the process asks for its next turn, or has ended."""
        self.word = self._next_word()
        if self.is_taken:
            self._waited = (self._waited[0], time.monotonic())
            self._signal(signal.SIGSTOP)

    def grant(self, answer: TurnAnswer) -> None:
        """Let the process have its turn."""
        waited_s, since = self._waited
        self._waited = (waited_s + (time.monotonic() - since if since else 0.0), None)
        self._signal(signal.SIGCONT)
        with contextlib.suppress(BlockingIOError):  # it reads nothing, for it asked too often
            os.write(self._granted, answer)

    def close(self) -> None:
        """Close the pipes: who still waits hears that nobody grants turns any more."""
        for pipe in (self._asked, self._granted, self._ended, self._end):
            os.close(pipe)

    def _next_word(self) -> bytes:
        while True:
            ready, _, _ = select.select([self._asked, self._ended], [], [])
            if self._ended in ready:
                return _GONE
            with contextlib.suppress(BlockingIOError):  # somebody else has read it
                return os.read(self._asked, 1)

    def _signal(self, what: signal.Signals) -> None:
        # One that asks before we have heard its name has not come to its workload yet.
        if self._resident is not None:
            self._resident.signal(what)


def conduct(
    launches: Sequence[Callable[[Seat, Interrupted], T]],
    interrupted: Interrupted,
    *,
    shuffle: Callable[[list[Seat]], None] = random.shuffle,
) -> list[T]:
    """Run each launch in a thread of its own, which takes the given seat; return what they return.

    The first is started first, and in each round everybody has one turn: in this order, or as
    `shuffle` has it where all want to time a block. A launch must end its process once its
    interrupt says so. Raises what they raise, and OSError.
    """
    stop = threading.Event()

    def must_stop() -> bool:
        return stop.is_set() or interrupted()

    with _seats(len(launches)) as seats, ThreadPoolExecutor(len(launches)) as threads:
        outcomes: list[Future[T]] = []
        try:
            for seat, launch in zip(seats, launches, strict=True):
                outcomes.append(threads.submit(_seated, seat, launch, must_stop))
                seat.hear()  # to be started is its first turn
            while taken := [seat for seat in seats if seat.is_taken]:
                _round(taken, shuffle)
        except BaseException:
            stop.set()
            raise
    return [outcome.result() for outcome in outcomes]


def _seated(seat: Seat, launch: Callable[[Seat, Interrupted], T], must_stop: Interrupted) -> T:
    try:
        return launch(seat, must_stop)
    finally:
        seat.leave()


def _round(seats: list[Seat], shuffle: Callable[[list[Seat]], None]) -> None:
    """Give everybody one turn; one without a block when all have had enough, or one too many."""
    words = {seat.word for seat in seats}
    are_timing = words <= {*TurnRequest} - {TurnRequest.PHASE}
    if are_timing:
        shuffle(seats)
    is_over = are_timing and (
        TurnRequest.BLOCK not in words or TurnRequest.BLOCK_AFTER_CAP in words
    )
    for seat in seats:
        seat.grant(TurnAnswer.TAKE_WITHOUT_BLOCK if is_over else TurnAnswer.TAKE)
        seat.hear()


@contextlib.contextmanager
def _seats(count: int) -> Iterator[list[Seat]]:
    with scratch.folder() as folder, contextlib.ExitStack() as stack:
        seats: list[Seat] = []
        for number in range(count):
            seats.append(Seat(folder.path / str(number)))
            stack.callback(seats[-1].close)
        yield seats
