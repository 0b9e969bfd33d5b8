"""Take turns with the other process of a resident pair: the child's side.

Of the two, only one runs at any time. A process is started in its first turn. Before each phase and
each block it asks for the next turn, which gives back the turn it has: between two questions it has
the machine for itself. A process without a partner has it always. The parent's side is
launch/turn_scheduler.py.
"""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from ci_perf.model.process import Stop
from ci_perf.model.task import (
    IMPORTED,
    RANKS_TURN,
    TURN_ANSWERS,
    TURN_REQUESTS,
    Task,
    TurnAnswer,
    TurnRequest,
    name_rank_file,
)

Clock = Callable[[], float]

# How often an agent looks whether its ranks have imported; nothing is timed meanwhile.
_LOOK_S = 0.01


class TurnTaker:
    """When a process may run, and for how long it has: without a partner, always.

    ``is_shared`` says that a partner uses the machine, and its caches, between two turns.
    """

    is_shared = False

    def __init__(self, clock: Clock = time.perf_counter) -> None:
        self._clock = clock
        self._waited_s = 0.0

    def clock(self) -> float:
        """Return seconds; they do not pass while the process waits for its turn."""
        return self._clock() - self._waited_s

    def take_for_import(self) -> None:
        """Wait until code may be imported: beside others, as nothing is timed."""

    def take(self) -> None:
        """Wait for the next turn."""

    def take_for_block(self, stopped: Stop | None) -> bool:
        """Wait for the next turn; return whether to time a block in it.

        `stopped` says why there is nothing more to learn here. Partners go on until both have
        enough, so that every block of one has a block of the other beside it, or until one of them
        has timed for as long as it may.
        """
        return stopped is None


class Shared(TurnTaker):
    """A process with a partner. When the parent grants no more turns, the process goes on alone."""

    is_shared = True

    def __init__(self, folder: Path, clock: Clock = time.perf_counter) -> None:
        """Open the pipes in `folder`. Raises OSError when they are not there."""
        super().__init__(clock)
        self._asked = os.open(folder / TURN_REQUESTS, os.O_WRONLY)
        self._granted = os.open(folder / TURN_ANSWERS, os.O_RDONLY)

    def take_for_import(self) -> None:
        """See TurnTaker."""
        self._ask(TurnRequest.IMPORT)

    def take(self) -> None:
        """See TurnTaker."""
        self._ask(TurnRequest.PHASE)

    def take_for_block(self, stopped: Stop | None) -> bool:
        """See TurnTaker."""
        answer = self._ask(_request_of_block(stopped))
        return answer == TurnAnswer.TAKE if answer else stopped is None

    def _ask(self, request: TurnRequest) -> bytes:
        """Ask, and wait for the answer; it is empty when the parent is gone."""
        start = self._clock()
        try:
            os.write(self._asked, request)
            return os.read(self._granted, 1)
        except BrokenPipeError:
            return b""
        finally:
            self._waited_s += self._clock() - start


def _request_of_block(stopped: Stop | None) -> TurnRequest:
    if stopped is None:
        return TurnRequest.BLOCK
    return TurnRequest.BLOCK_AFTER_CAP if stopped == "cap" else TurnRequest.BLOCK_AFTER_ENOUGH


class Ahead(Shared):
    """A process that imports beside others, waits, and then has the machine to its end."""

    is_shared = False
    _has_turn = False

    def take(self) -> None:
        """See TurnTaker."""
        if not self._has_turn:
            super().take()
            self._has_turn = True

    def take_for_block(self, stopped: Stop | None) -> bool:
        """See TurnTaker."""
        return stopped is None


class Rank(TurnTaker):
    """One of several ranks: it imports beside others, and waits once, for the turn of its agent."""

    def __init__(self, folder: Path, rank: int, clock: Clock = time.perf_counter) -> None:
        """`folder` is that of the launch."""
        super().__init__(clock)
        self._imported = folder / name_rank_file(IMPORTED, rank)
        self._turn = folder / RANKS_TURN

    def take(self) -> None:
        """See TurnTaker."""
        if not self._imported.exists():
            start = self._clock()
            self._imported.touch()
            os.close(os.open(self._turn, os.O_RDONLY))  # waits until the agent has opened it
            self._waited_s = self._clock() - start


class RanksAgent:
    """The agent of several ranks: it takes one turn for all of them, once they have imported."""

    def __init__(self, todo: Task, folder: Path) -> None:
        """`folder` is that of the launch. Raises OSError."""
        self._own = Ahead(Path(todo.turns))
        self._marks = [
            folder / name_rank_file(IMPORTED, rank) for rank in range(todo.workload.world_size)
        ]
        self._turn = folder / RANKS_TURN
        os.mkfifo(self._turn, 0o600)

    def take_for_import(self) -> None:
        """Wait until code may be imported, then wait for the ranks in a thread."""
        self._own.take_for_import()
        threading.Thread(target=self._take_for_all, daemon=True).start()

    def _take_for_all(self) -> None:
        while not all(mark.exists() for mark in self._marks):
            time.sleep(_LOOK_S)
        self._own.take()
        os.open(self._turn, os.O_RDWR | os.O_NONBLOCK)  # open to the end of this process


def open_turn_taker(todo: Task, folder: Path) -> TurnTaker:
    """Return the turns that a task grants; `folder` is that of the launch. Raises OSError."""
    if not todo.turns:
        return TurnTaker()
    if todo.workload.launch == "torchrun":
        return Rank(folder, int(os.environ["RANK"]))
    return (Ahead if todo.imports_ahead else Shared)(Path(todo.turns))
