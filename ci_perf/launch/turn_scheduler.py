"""Let two resident processes take turns, of which only one runs at any time: the parent's side.

The child's side is measuring/turn_client.py. A process that waits is stopped (SIGSTOP) with its
group: the workers of its data loader, or threads that spin, would otherwise work while the partner
is timed, and what they fetched ahead would make its own next block look fast. A process that
continues wakes up on the CPU on which the other one has just run (decision 009).
"""

import contextlib
import functools
import os
import random
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from ci_perf.launch import Interrupted
from ci_perf.model.task import TURN_ANSWERS, TURN_REQUESTS, TurnAnswer, TurnRequest
from ci_perf.system import processes, scratch
from ci_perf.system.child import Child

T = TypeVar("T")

# The request of a process that has ended.
_ENDED = b"g"


class Resident(Protocol):
    """The process that takes the turns of a slot, with all processes that it has started."""

    def signal(self, what: signal.Signals) -> None:
        """Send a signal to all of them; nothing once they have ended. Raises OSError."""

    def pid(self) -> int:
        """Return the id of the process that measures, 0 where it has none. Raises OSError."""


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """A child of ours that leads a group of its own.

    ``has_sessions``: processes below it may have left the group, as ranks do. To find them takes
    milliseconds, too long between the blocks of a pair.
    """

    child: Child
    has_sessions: bool

    def signal(self, what: signal.Signals) -> None:
        """See Resident."""
        if self.child.poll() is not None:
            return
        _send(os.killpg, self.child.pid, what)
        send = functools.partial(_send, os.kill)
        if self.has_sessions and not processes.signal_below(self.child.pid, what, send):
            # It starts others all the time, and would run beside the next launch: only it fails.
            _send(os.killpg, self.child.pid, signal.SIGKILL)

    def pid(self) -> int:
        """See Resident."""
        return self.child.pid if self.child.poll() is None else 0


def _send(kill: Callable[[int, signal.Signals], object], number: int, what: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        kill(number, what)


class Slot:
    """The turns of one process. One thread schedules them, another waits for the process.

    The named pipes are open for reading and writing: so opening them waits for nobody, and a
    process that has died, or whose own children keep one open, changes nothing. What comes out of
    them may be anything; the end of the process is told by a pipe that has no name.
    """

    def __init__(self, folder: Path, *, has_sessions: bool = False) -> None:
        """Make the pipes in `folder`, which is made. See ProcessGroup. Raises OSError."""
        folder.mkdir()
        self._has_sessions = has_sessions
        self.folder = folder
        # What the process asked for last; the measured code may have written any byte.
        self.request = b""
        # On which its first thread was when it asked, where that is known.
        self.cpu: int | None = None
        self._resident: Resident | None = None
        # Seconds that it has waited, and since when it waits now: changed at once.
        self._waited: tuple[float, float | None] = (0.0, None)
        paths = [folder / name for name in (TURN_REQUESTS, TURN_ANSWERS)]
        for path in paths:
            os.mkfifo(path, 0o600)
        flags = os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC
        self._requests, self._answers = (os.open(path, flags) for path in paths)
        self._end_read, self._end_write = os.pipe()

    def started(self, child: Child) -> None:
        """Let this child take the turns; it leads a group of its own."""
        self.assign(ProcessGroup(child, self._has_sessions))

    def assign(self, resident: "Resident") -> None:
        """Let this process take the turns."""
        self._resident = resident

    def leave(self) -> None:
        """Note that the process has ended, however it did: it needs no more turns."""
        os.write(self._end_write, _ENDED)

    def clock(self) -> float:
        """Return seconds; they do not pass while the process waits for its turn."""
        waited_s, since = self._waited
        now = time.monotonic()
        return now - waited_s - (0.0 if since is None else now - since)

    @property
    def handles(self) -> tuple[int, int]:
        """What becomes readable when the process asks for a turn, or has ended."""
        return self._requests, self._end_read

    @property
    def is_taken(self) -> bool:
        """Whether there is a process that will need turns."""
        return self.request != _ENDED

    def wait_for_request(self) -> None:
        """Wait until the process asks for its next turn, or has ended."""
        self.request = self._next_request()
        if self.is_taken:
            # To be stopped it wakes up, perhaps elsewhere.
            self.cpu = processes.last_cpu(self._pid())
            self._waited = (self._waited[0], time.monotonic())
            self._signal(signal.SIGSTOP)

    def answer(self, turn: TurnAnswer, *, cpu: int | None = None) -> None:
        """Let the process run; on this CPU at first, if one is named."""
        waited_s, since = self._waited
        self._waited = (waited_s + (time.monotonic() - since if since else 0.0), None)
        # It waits for the answer there. Threads that its code starts must not be held there.
        with self._woken_on(cpu):
            self._signal(signal.SIGCONT)
        with contextlib.suppress(BlockingIOError):  # it asks without reading the answers
            os.write(self._answers, turn)

    def close(self) -> None:
        """Close the pipes: a process that still waits then goes on alone."""
        for pipe in (self._requests, self._answers, self._end_read, self._end_write):
            os.close(pipe)

    def _next_request(self) -> bytes:
        while True:
            ready, _, _ = select.select(self.handles, [], [])
            if self._end_read in ready:
                return _ENDED
            with contextlib.suppress(BlockingIOError):  # another process has read it
                return os.read(self._requests, 1)

    def _woken_on(self, cpu: int | None) -> contextlib.AbstractContextManager[None]:
        if cpu is None or not (pid := self._pid()):
            return contextlib.nullcontext()
        return processes.wake_on(pid, cpu)

    def _pid(self) -> int:
        return self._resident.pid() if self._resident else 0

    def _signal(self, what: signal.Signals) -> None:
        # A process that asks before it is assigned has not reached its workload.
        if self._resident is not None:
            self._resident.signal(what)


def schedule(
    launches: Sequence[Callable[[Slot, Interrupted], T]],
    interrupted: Interrupted,
    *,
    shuffle: Callable[[list[Slot]], None] = random.shuffle,
) -> list[T]:
    """Run each launch in a thread of its own, with a slot for its process; return the results.

    All import at once. Then each process has one turn in a round: in the order of the launches, or
    in that of `shuffle` if all want to time a block. A launch must end its process
    when `Interrupted` says so. Raises what the launches raise, and OSError.
    """
    with _begun(launches, interrupted) as begun:
        cpu: int | None = None
        while taken := [slot for slot, _ in begun if slot.is_taken]:
            cpu = _round(taken, shuffle, cpu)
    return [outcome.result() for _, outcome in begun]


@contextlib.contextmanager
def make_ready(
    launches: Sequence[Callable[[Slot, Interrupted], T]], interrupted: Interrupted
) -> Iterator[Sequence[Callable[[], T]]]:
    """Let the processes of all launches import at once; provide calls that let one run to its end.

    A call returns what its launch returns, and raises what it raises. Processes that were not
    called end with the context. Raises OSError.
    """
    with _begun(launches, interrupted, have_sessions=True) as begun:
        yield [functools.partial(_run_to_end, *each) for each in begun]


def _run_to_end(slot: Slot, outcome: Future[T]) -> T:
    while slot.is_taken:
        slot.answer(TurnAnswer.TAKE)
        slot.wait_for_request()
    return outcome.result()


@contextlib.contextmanager
def _begun(
    launches: Sequence[Callable[[Slot, Interrupted], T]],
    interrupted: Interrupted,
    *,
    have_sessions: bool = False,
) -> Iterator[list[tuple[Slot, Future[T]]]]:
    """Begin all launches and let them import; those that still run at the end must stop."""
    stop = threading.Event()

    def must_stop() -> bool:
        return stop.is_set() or interrupted()

    with (
        scratch.folder() as folder,
        contextlib.ExitStack() as pipes,
        ThreadPoolExecutor(len(launches)) as threads,
    ):
        slots: list[Slot] = []
        for number in range(len(launches)):
            slots.append(Slot(folder.path / str(number), has_sessions=have_sessions))
            pipes.callback(slots[-1].close)
        try:
            outcomes = [
                threads.submit(_run_in_slot, slot, launch, must_stop)
                for slot, launch in zip(slots, launches, strict=True)
            ]
            _import_at_once(slots)
            yield list(zip(slots, outcomes, strict=True))
        finally:
            stop.set()


def _import_at_once(slots: Sequence[Slot]) -> None:
    """Wait until all processes have started, then until all have imported what they run."""
    for _ in (TurnRequest.IMPORT, TurnRequest.PHASE):
        waiting = list(slots)
        while waiting:
            ready, _, _ = select.select([each for slot in waiting for each in slot.handles], [], [])
            for slot in [slot for slot in waiting if not set(ready).isdisjoint(slot.handles)]:
                # It is stopped: time must not pass for it while a slower one imports.
                slot.wait_for_request()
                waiting.remove(slot)
        importing = [slot for slot in slots if slot.request == TurnRequest.IMPORT]
        for slot in importing:
            slot.answer(TurnAnswer.TAKE)
        slots = importing


def _run_in_slot(slot: Slot, launch: Callable[[Slot, Interrupted], T], must_stop: Interrupted) -> T:
    try:
        return launch(slot, must_stop)
    finally:
        slot.leave()


def _round(slots: list[Slot], shuffle: Callable[[list[Slot]], None], cpu: int | None) -> int | None:
    """Give each process a turn: without a block if all have enough, or one has reached its cap.

    Each wakes up on the CPU on which the one before it has run; the first one on `cpu`. Returns
    the CPU of the last one.
    """
    requests = {slot.request for slot in slots}
    are_timing = requests <= {*TurnRequest} - {TurnRequest.IMPORT, TurnRequest.PHASE}
    if are_timing:
        shuffle(slots)
    is_over = are_timing and (
        TurnRequest.BLOCK not in requests or TurnRequest.BLOCK_AFTER_CAP in requests
    )
    for slot in slots:
        slot.answer(TurnAnswer.TAKE_WITHOUT_BLOCK if is_over else TurnAnswer.TAKE, cpu=cpu)
        slot.wait_for_request()
        cpu = slot.cpu
    return cpu
