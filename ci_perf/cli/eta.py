"""How long the rest will take, by how long the same things have taken so far."""

import statistics
import time
from collections.abc import Callable

# They are expected like processes; no workload is called so, and no workload takes as long.
CANARIES = ""


class TimeEstimate:
    """Processes that are expected, one after the other, each known by what it is a process of."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[str, int] = {}
        self._took: dict[str, list[float]] = {}
        self._running: str | None = None
        self._since = 0.0

    def expect(self, name: str, count: int) -> None:
        """Expect so many more of this name, however many were expected before."""
        self._waiting[name] = count

    def begin(self, name: str) -> None:
        """Note that one has begun: it is expected no longer, and is not yet over."""
        self._waiting[name] = max(0, self._waiting.get(name, 0) - 1)
        self._running, self._since = name, self._clock()

    def end(self) -> None:
        """Note that it is over."""
        if self._running is not None:
            self._took.setdefault(self._running, []).append(self._clock() - self._since)
        self._running = None

    def give_up(self) -> None:
        """Note that it failed: none of its name will follow, and its time says nothing."""
        if self._running is not None:
            self._waiting[self._running] = 0
        self._running = None

    def left_s(self) -> float | None:
        """Return the seconds until all are over; `None` while nobody can know.

        One of a name that has been seen takes as long as those on average; another one as long as
        the average workload. The one that runs counts for no longer than it was thought to take.
        """
        left = 0.0
        for name, count in self._waiting.items():
            usual_s = self._usual_s(name)
            if count and usual_s is None:
                return None
            left += count * (usual_s or 0.0)
        if self._running is not None:
            usual_s = self._usual_s(self._running)
            if usual_s is None:
                return None
            left += max(0.0, usual_s - (self._clock() - self._since))
        return left

    def _usual_s(self, name: str) -> float | None:
        if own := self._took.get(name):
            return statistics.fmean(own)
        others = [statistics.fmean(took) for other, took in self._took.items() if other != CANARIES]
        return statistics.fmean(others) if others else None


def in_words(seconds: float) -> str:
    """45 s, 2 min 10 s, 1 h 5 min."""
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, rest = divmod(minutes, 60)
    return f"{hours} h {rest} min"
