"""How long each phase of a process takes, and in which one it is."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from ci_perf.measure import turns
from ci_perf.measure.device import Device
from ci_perf.measure.turns import Turns
from ci_perf.model.process import Phase, PhaseTimes


class Stopwatch:
    """Times the phases apart, and leaves a note of the current one for the parent."""

    def __init__(self, note: Path) -> None:
        self._note = note
        self.current = Phase.LAUNCH
        self.seconds: dict[Phase, float] = {}
        # What had been opened when things went wrong.
        self.device: Device | None = None
        self.turns: Turns = turns.Alone()

    @contextlib.contextmanager
    def phase(self, phase: Phase) -> Iterator[None]:
        """Enter a phase, in its turn; a crash that kills the process leaves its name behind."""
        self.turns.take()
        self.current = phase
        self._note.write_text(phase.value)
        start = self.turns.clock()
        yield
        self.seconds[phase] = self.turns.clock() - start

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
