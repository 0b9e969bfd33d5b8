"""What operators and functions take longer in the head, pair by pair, apart from the machine.

All is per step. The head's times are first divided by the factor by which everything that did not
change differs in the pair: a machine that slows down in between is no cause.
"""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ci_perf.judging.causes.launches import Key, Place, Sides
from ci_perf.judging.causes.possible import have_one_sign, mean_of
from ci_perf.judging.causes.timed import LaunchTimes

# Fewer unchanged operators do not tell the machine from one of them.
_FEWEST_UNCHANGED: Final = 8
_FEWEST_FUNCTIONS: Final = 3
# Of all that is timed: below, a clock's tick and a cache decide.
_NOTABLE: Final = 0.002
# A machine does not change by more from one launch to the next; a profile that lies may.
_LARGEST_FACTOR: Final = 10.0
# To be said: smaller ones come and go with the hour.
_FACTOR_TO_SAY: Final = 0.03
# Times of 25 % quantiles are never closer than this, whatever a few of them say.
_SMALLEST_SPREAD: Final = 0.02
_UNKNOWN_SPREAD: Final = 0.05
# The standard deviation of a normal distribution, from the median of absolute values.
_SIGMA: Final = 1.4826
_SHORTEST_S: Final = 1e-9

Seconds = Callable[[LaunchTimes], float | None]


@dataclass(frozen=True, slots=True)
class Clock:
    """Times of both sides, pair by pair.

    ``factors`` are the machine's, head over base. ``spread`` is how far what did not change lies
    apart all the same: a standard deviation of the logarithm of head over base.
    """

    base: Sequence[LaunchTimes]
    head: Sequence[LaunchTimes]
    factors: Sequence[float]
    spread: float

    @classmethod
    def of(cls, sides: Sides, changed: Collection[Key], recomputed: Collection[Key]) -> "Clock":
        """Read the machine's factors off the operators that did not change."""
        base = [LaunchTimes.of(launch, recomputed) for launch in sides.base]
        head = [LaunchTimes.of(launch, recomputed) for launch in sides.head]
        logs = [
            of_key
            for key in sides.operators()
            if key not in changed and (of_key := _logs(base, head, key))
        ]
        if len(logs) >= _FEWEST_UNCHANGED:
            factors = [statistics.median(of_pair) for of_pair in zip(*logs, strict=True)]
            if max(map(abs, factors)) < math.log(_LARGEST_FACTOR):
                spread = max(_SMALLEST_SPREAD, _spread(_without(of, factors) for of in logs))
                return cls(base, head, [math.exp(factor) for factor in factors], spread)
        return cls(base, head, [1.0] * len(base), _UNKNOWN_SPREAD)

    @property
    def common_factor(self) -> float | None:
        """How much longer everything takes; `None` where pairs do not agree on a notable factor."""
        logs = [math.log(factor) for factor in self.factors]
        mean = mean_of(logs)
        if mean is None or not (mean.is_resolved and have_one_sign(logs)):
            return None
        return math.exp(mean.value) if abs(mean.value) >= math.log1p(_FACTOR_TO_SAY) else None

    @property
    def step_s(self) -> float:
        """Return how long a step of the base takes: the median of these launches."""
        return statistics.median(timed.step_s for timed in self.base)

    def deltas(self, seconds: Seconds, *, is_waiting: bool = False) -> list[float]:
        """Return what the head adds, pair by pair; nothing where one launch was not timed.

        The machine's speed has no part in how long something waits.
        """
        differences: list[float] = []
        for base, head, factor in zip(self.base, self.head, self.factors, strict=True):
            before, after = seconds(base), seconds(head)
            if before is None or after is None:
                return []
            differences.append(after / (1.0 if is_waiting else factor) - before)
        return differences

    def log_ratios(self, seconds: Seconds) -> list[float]:
        """Return the logarithms of head over base; nothing where a side is not known, or 0."""
        logs: list[float] = []
        for base, head, factor in zip(self.base, self.head, self.factors, strict=True):
            before, after = seconds(base), seconds(head)
            if not before or not after or min(before, after) < _SHORTEST_S:
                return []
            logs.append(math.log(after / before / factor))
        return logs

    def waits_in(self, place: Place) -> str:
        """Return the built-in function in which most launches of a side wait; the head's first."""
        for side in (self.head, self.base):
            names = Counter(timed.waits_in(place) for timed in side)
            (name, launches), *_ = names.most_common(1)
            if name and 2 * launches > len(side):
                return name
        return ""

    def functions_spread(self, unchanged: Iterable[Place]) -> float:
        """Return how far the times of functions lie apart that did not change."""
        least = _NOTABLE * self.step_s
        logs: list[float] = []
        for place in unchanged:
            if min(timed.working_s(place) or 0.0 for timed in self.base) > least:
                of_place = self.log_ratios(lambda timed, place=place: timed.working_s(place))  # type: ignore[misc]
                logs += [statistics.median(of_place)] if of_place else []
        known = _spread(logs) if len(logs) >= _FEWEST_FUNCTIONS else _UNKNOWN_SPREAD
        return max(self.spread, known)


def added(parts: Iterable[Sequence[float]]) -> list[float]:
    """Add up seconds by pair; nothing where a part was not timed."""
    every = list(parts)
    if not every or not all(every):
        return []
    return [math.fsum(of_pair) for of_pair in zip(*every, strict=True)]


def _logs(base: Sequence[LaunchTimes], head: Sequence[LaunchTimes], key: Key) -> list[float]:
    """Return the logarithms of head over base of an operator that takes notable time."""
    logs: list[float] = []
    for first, other in zip(base, head, strict=True):
        before, after = first.operator_s(key), other.operator_s(key)
        least = max(_SHORTEST_S, _NOTABLE * first.operators_s)
        if not before or not after or before < least or after < _SHORTEST_S:
            return []
        logs.append(math.log(after / before))
    return logs


def _without(logs: Sequence[float], factors: Sequence[float]) -> float:
    """Return what is left of a ratio without the machine: the median over pairs."""
    return statistics.median(log - factor for log, factor in zip(logs, factors, strict=True))


def _spread(logs: Iterable[float]) -> float:
    return _SIGMA * statistics.median(map(abs, logs))
