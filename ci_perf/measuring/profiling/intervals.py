"""How much of a time is covered by spans that may overlap."""

import bisect
from collections.abc import Iterable
from typing import Protocol


class Lasting(Protocol):
    """Anything with a start and an end."""

    @property
    def start(self) -> float:
        """Seconds since an unknown moment."""

    @property
    def end(self) -> float:
        """Seconds since the same moment."""


class Cover:
    """The union of spans of seconds."""

    def __init__(self, spans: Iterable[tuple[float, float]], *, bridge: float = 0.0) -> None:
        """Take (start, end) in any order; `bridge` seconds between two of them count as covered."""
        self.starts: list[float] = []
        self.ends: list[float] = []
        for start, end in sorted(spans):
            if self.ends and start <= self.ends[-1] + bridge:
                self.ends[-1] = max(self.ends[-1], end)
            else:
                self.starts.append(start)
                self.ends.append(end)
        self._before = [0.0]
        for start, end in zip(self.starts, self.ends, strict=True):
            self._before.append(self._before[-1] + (end - start))

    def spans(self) -> list[tuple[float, float]]:
        """Return (start, end) of what is covered, in order."""
        return list(zip(self.starts, self.ends, strict=True))

    @property
    def whole(self) -> float:
        """Return the seconds of all spans together."""
        return self._before[-1]

    def seconds(self, start: float, end: float) -> float:
        """Return how many of the seconds from `start` to `end` are covered."""
        return max(self._until(end) - self._until(start), 0.0) if end > start else 0.0

    def touching(self, start: float, end: float) -> float:
        """Return the whole length of the spans of which any part lies from `start` to `end`."""
        first = bisect.bisect_left(self.ends, start)
        last = bisect.bisect_right(self.starts, end)
        return self._before[last] - self._before[first] if last > first else 0.0

    def _until(self, moment: float) -> float:
        index = bisect.bisect_right(self.starts, moment)
        if not index:
            return 0.0
        return self._before[index - 1] + (
            min(moment, self.ends[index - 1]) - self.starts[index - 1]
        )


def of(spans: Iterable[Lasting]) -> Cover:
    """Return the union of things that last."""
    return Cover((span.start, span.end) for span in spans)
