"""The step times that a command prints, as they arrive; and the turns between them.

Two copies of a command may exist at once if each can be stopped at any line: one runs for a few
steps while the other one waits. What speaks against that is found here, in the launches before.
"""

import contextlib
import os
import re
import select
import statistics
import time
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import NamedTuple

from ci_perf.measuring.turn_client import TurnTaker
from ci_perf.model.task import CommandTurn
from ci_perf.system import processes, scratch

# How often to ask whether a silent command has ended: its own clock times the steps.
_LOOK_S = 0.02
_CHUNK_BYTES = 2**20
_LINE_END = re.compile(rb"\r\n|\r|\n")
_MOST_NOTES = 100_000
# What arrives so soon after a switch was printed before it.
_SETTLE_S = 0.001
# By how much the gap between two lines may differ from the time that the second one has.
_LEAST_SHARE, _MOST_SHARE = 0.8, 1.2
_GPU_FILES = ("/dev/nvidia", "/dev/kfd", "/dev/dri")


class Step(NamedTuple):
    """A step time in seconds, when it arrived, and in which turn (from 0)."""

    time_s: float
    arrived: float
    turn: int = 0


class Output(ABC):
    """What a command prints, while it prints it. ``clock`` does not pass while it is stopped.

    ``against`` says why it cannot be stopped beside a copy of itself, as far as is known.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._begin = clock()
        self._looks = 0
        self.against = ""

    def copy(self, pid: int, pipe: int, file: int) -> None:
        """Copy it to a file until the process has ended: what that leaves behind may go on.

        Nothing stays in a buffer: a fork that reads the file would write it, too. Raises
        RuntimeError: it waits for its copy, or the disk is full.
        """
        os.set_blocking(pipe, False)
        has_ended = False
        while not has_ended:
            now = os.WEXITED | os.WNOHANG | os.WNOWAIT
            has_ended = os.waitid(os.P_PID, pid, now) is not None
            select.select([pipe], [], [], 0 if has_ended else _LOOK_S)
            chunk = b""
            with contextlib.suppress(BlockingIOError):
                chunk = os.read(pipe, _CHUNK_BYTES)
                if not chunk:  # all have closed it
                    break
                _write(file, chunk)
            self.note(chunk)
        self._look()
        with contextlib.suppress(BlockingIOError):  # what is left behind must hear no SIGPIPE
            if not os.read(pipe, 1):
                os.close(pipe)

    @abstractmethod
    def note(self, chunk: bytes) -> None:
        """Note what has just arrived, nothing while it is silent. Raises RuntimeError."""

    def look(self) -> None:
        """Look at the processes of the launch now and then: the 1st, 2nd, 4th, 8th time."""
        self._looks += 1
        if self._looks & (self._looks - 1) == 0:
            self._look()

    def _look(self) -> None:
        self.against = self.against or _find_against()

    def compare_gaps(self, steps: Sequence[Step]) -> None:
        """Compare the gaps between lines with the times that they have."""
        shares = [
            (step.arrived - before.arrived) / step.time_s
            for before, step in pairwise(steps)
            if before.turn == step.turn
        ]
        share = statistics.median(shares) if shares else 1.0
        if not _LEAST_SHARE <= share <= _MOST_SHARE:
            self.against = self.against or (
                f"between two lines pass {share:.3g} times the seconds that it prints"
            )


class Untouched(Output):
    """The output of a command that runs as it is."""

    def __init__(self) -> None:
        super().__init__()
        # How many lines were there, and when.
        self._notes: list[tuple[int, float]] = [(0, self._begin)]

    def note(self, chunk: bytes) -> None:
        """See Output."""
        if chunk and len(self._notes) < _MOST_NOTES:
            lines = self._notes[-1][0] + len(_LINE_END.findall(chunk))
            self._notes.append((lines, self._clock()))
            self.look()

    def check(self, timed: Sequence[tuple[int, float]], skip: int) -> float:
        """Compare the times that were found, each with the number of its line from 1 on.

        Return the longest that none came, in seconds.
        """
        steps = []
        for line, time_s in timed:
            position = bisect_left(self._notes, (line,))
            if position < len(self._notes):
                steps.append(Step(time_s, self._notes[position][1]))
        self.compare_gaps(steps[skip:])
        moments = [self._begin, *(step.arrived for step in steps), self._clock()]
        return max(after - before for before, after in pairwise(moments))


class TurnOutput(Output):
    """The output of a command that has a copy: after each `turn.steps` it waits for its turn.

    The first turn ends with the times that are skipped. The first time of each other turn is
    ignored: it has the wait in it. `find` returns the step time of a line.
    """

    def __init__(
        self,
        turn: CommandTurn,
        taker: TurnTaker,
        find: Callable[[str], float | None],
        *,
        skip: int,
    ) -> None:
        super().__init__(taker.clock)
        self._plan, self._taker, self._find = turn, taker, find
        self._rest = b""
        self._turn, self._left = 0, max(1, skip)
        self._since = self._last = self._begin
        self._is_alone = False
        self._steps: list[Step] = []

    def note(self, chunk: bytes) -> None:
        """See Output."""
        now = self._clock()
        if now - self._last > self._plan.timeout_s:
            raise RuntimeError(
                f"expected a step time within {self._plan.timeout_s:.3g} s beside a copy of the "
                "command, found none"
            )
        *lines, self._rest = _LINE_END.split(self._rest + chunk)
        for line in lines:
            time_s = self._find(line.decode(errors="replace"))
            if time_s is None:
                continue
            self._last = now
            if self._is_alone or now - self._since < _SETTLE_S:
                continue
            self._steps.append(Step(time_s, now, self._turn))
            self._left -= 1
            if not self._left:
                self.look()
                self._is_alone = not self._taker.take_for_block(None)
                self._turn, self._left = self._turn + 1, 1 + self._plan.steps
                # The rest of the chunk is older.
                now = self._since = self._last = self._clock()

    def end(self) -> list[list[float]]:
        """Give the turn back; return the step times of each turn that was complete."""
        if not self._is_alone:
            self._taker.take_for_block("cap")
        by_turn = [list(steps) for turn, steps in groupby(self._steps, lambda s: s.turn) if turn]
        whole = [steps for steps in by_turn if len(steps) > self._plan.steps]
        self.compare_gaps([step for steps in whole for step in steps])
        return [[step.time_s for step in steps[1:]] for steps in whole]


def _write(file: int, chunk: bytes) -> None:
    left = memoryview(chunk)
    try:
        while left:
            left = left[os.write(file, left) :]
    except OSError as error:
        raise RuntimeError(
            f"the output of the command cannot be kept: {error.strerror}; TMPDIR names another "
            "place for temporary files"
        ) from None


def _find_against() -> str:
    """Say which process of this launch would run on while all others are stopped, or uses a GPU."""
    carrying = processes.find_carrying(scratch.COOKIE, os.environ.get(scratch.COOKIE, ""))
    for pid in {*carrying, *(process.pid for process in processes.below(os.getpid()))}:
        try:
            if os.getpgid(pid) != os.getpgrp():
                return "one of its processes has left its group"
            if any(map(_is_gpu, _list_files(pid))):
                return "it uses a GPU"
        except OSError:  # it has ended
            continue
    return ""


def _list_files(pid: int) -> Iterator[str]:
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        yield str(handle.readlink())


def _is_gpu(file: str) -> bool:
    return file.startswith(_GPU_FILES)
