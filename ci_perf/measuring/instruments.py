"""Time each phase, count the time that is left, and take instruments that may fail alone."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from ci_perf.measuring import memory
from ci_perf.measuring.device import Device
from ci_perf.measuring.distributed import Group
from ci_perf.measuring.turn_client import TurnTaker
from ci_perf.model.base import MAX_ABSENT_CHARS
from ci_perf.model.process import Phase, PhaseTimes

T = TypeVar("T")

Clock = Callable[[], float]

# Shares of the time that is left to a process. A step may take longer while it is watched.
_SHARE = 0.5
_SHARE_BEFORE_TIMING = 0.25


class Stopwatch:
    """Times the phases apart, and leaves a note of the current one for the parent."""

    def __init__(self, note: Path) -> None:
        self._note = note
        self.folder = note.parent
        self.current = Phase.LAUNCH
        self.seconds: dict[Phase, float] = {}
        # What had been opened when things went wrong.
        self.device: Device | None = None
        self.turn_taker = TurnTaker()

    @contextlib.contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        """Enter a phase, in its turn; a crash that kills the process leaves its name behind."""
        if phase is Phase.IMPORT:
            self.turn_taker.take_for_import()
        else:
            self.turn_taker.take()
        self.current = phase
        self._note.write_text(phase.value)
        start = self.turn_taker.clock()
        yield
        self.seconds[phase] = self.turn_taker.clock() - start

    def start_s(self, imports_at_once: float) -> float:
        """Return what the launch has cost so far: of an import beside others, its share.

        That is too little where others import only libraries beside the file's own code.
        """
        others_s = self.seconds[Phase.IMPORT] * (1 - 1 / max(1, imports_at_once))
        return sum(self.seconds.values()) - others_s

    def times(self, first_step_s: float) -> PhaseTimes:
        """Return how long each phase took; one after the timed region may not have come yet."""
        return PhaseTimes(
            import_s=self.seconds[Phase.IMPORT],
            build_s=self.seconds[Phase.BUILD],
            first_step_s=first_step_s,
            fingerprint_s=self.seconds[Phase.FINGERPRINT],
            warmup_s=self.seconds[Phase.WARMUP],
            timed_s=self.seconds[Phase.TIMED],
            memory_s=self.seconds.get(Phase.MEMORY, 0.0),
            counters_s=self.seconds.get(Phase.COUNTERS, 0.0),
        )


class TimeLeft:
    """How long a process may still run before its launch is ended (`timeout_s`)."""

    def __init__(self, limit_s: float, clock: Clock) -> None:
        """Begin now."""
        self._limit_s = limit_s
        self._clock = clock
        self._start = clock()

    @property
    def seconds(self) -> float:
        """How many are left of the launch of this process; none where it is too late."""
        return max(self._limit_s - (self._clock() - self._start), 0.0)

    def before_timing(self, group: Group) -> Callable[[int, float], str]:
        """Return the refusal of steps before the timed region, which is still to come."""
        return lambda steps, step_s: self.refusal(
            steps, group.maximum(step_s), group, share=_SHARE_BEFORE_TIMING
        )

    def refusal(self, steps: int, step_s: float, group: Group, *, share: float = _SHARE) -> str:
        """Say why `steps` steps do not fit into this share of what is left; empty when they do.

        All ranks must call it with the same `step_s`, or none: then all get the same answer.
        """
        left_s = self._limit_s - group.maximum(self._clock() - self._start)
        if steps * step_s <= share * left_s:
            return ""
        return (
            f"{steps} steps of {step_s:.3g} s were too long for the {max(left_s, 0):.3g} s that "
            f"were left of the time limit ({self._limit_s:g} s, `timeout_s` in suite.toml)"
        )


class Instruments:
    """Takes one instrument after the other; ``absent`` has the reason of each that failed."""

    def __init__(self, left: TimeLeft, step_s: float, group: Group) -> None:
        """Expect steps of `step_s`, as they were when they were timed."""
        self.absent: dict[str, str] = {}
        self._left = left
        self._step_s = step_s
        self._group = group

    def take(self, name: str, instrument: Callable[[], T], *, steps: int) -> T | None:
        """Return what `instrument` shows in so many steps, or `None` and note why in `absent`.

        An error in a step is raised where memory ran out, and where there are several ranks: the
        others would wait for this one.
        """
        if refusal := self._left.refusal(steps, self._step_s, self._group):
            self.absent[name] = refusal
            return None
        try:
            return instrument()
        except BaseException as error:  # also SystemExit: a step and a teardown are the author's
            if steps and (self._group.world_size > 1 or memory.find_exhausted(error, None)):
                raise
            words = " ".join(f"{type(error).__name__}: {error}".split())
            self.absent[name] = words[:MAX_ABSENT_CHARS]
        return None
