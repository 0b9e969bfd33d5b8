"""A bounded number of times, of however many, and the quantile that is believed of them."""

import random
from array import array
from collections.abc import Iterable
from typing import Final

# The 25 % quantile of so many is off by less than one rank in seventy of all (one deviation).
_MOST: Final = 1000
_NS_PER_S = 1e9


class Reservoir:
    """A fair sample of all times of one kind, in nanoseconds: at most 8 kB of them.

    The reservoir of algorithm R (Vitter 1985): each time has the same chance to be in it.
    """

    def __init__(self) -> None:
        self.count = 0
        self._kept = array("q")

    def add(self, time_ns: int) -> None:
        """Take one time into account."""
        self.count += 1
        if len(self._kept) < _MOST:
            self._kept.append(time_ns)
        elif (place := _random.randrange(self.count)) < _MOST:
            self._kept[place] = time_ns

    def quartile_s(self) -> float | None:
        """Return the 25 % quantile in seconds, `None` of nothing."""
        return quartile(self._kept) / _NS_PER_S if self.count else None


def quartile(values: Iterable[float]) -> float:
    """Return the 25 % quantile of at least one value: a time that was disturbed lies above it."""
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 4]


# Not the generator that the program may have seeded.
_random = random.Random(0)  # noqa: S311  no secret
