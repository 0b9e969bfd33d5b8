"""What operators and functions take longer in the head, pair by pair, apart from the machine.

All is per step. The head's times are first divided by the factor by which everything that did not
change differs in the pair: a machine that slows down in between is no cause.
"""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ci_perf.judging.causes.launches import Key, Place, ProfiledLaunch, Sides
from ci_perf.judging.causes.possible import have_one_sign, mean_of

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
# `loss.backward()` makes the first gradient of ones, in the function that calls it.
_BEGINS_BACKWARD: Final = "aten::ones_like"


@dataclass(frozen=True, slots=True)
class LaunchTimes:
    """One launch; all seconds are per step, `None` where they were not measured.

    ``within`` are the operators that run in a function itself. ``behind`` are those that autograd
    runs: their time passes in ``calls_backward``, whosever their forward operators are.
    """

    launch: ProfiledLaunch
    within: Mapping[Place | None, float]
    behind: float
    calls_backward: Place | None

    @classmethod
    def of(cls, launch: ProfiledLaunch, recomputed: Collection[Key]) -> "LaunchTimes":
        """Sum up operators; those that are `recomputed` run in their own function."""
        within: dict[Place | None, float] = defaultdict(float)
        behind = 0.0
        has_backward = False
        for key, uses in launch.uses.items():
            seconds = math.fsum(use.calls * (use.call_s or 0.0) for use in uses)
            if key[2] and key not in recomputed:
                behind, has_backward = behind + seconds, True
            else:
                within[key[0]] += seconds
        caller = _calls_backward(launch, within) if has_backward else None
        return cls(launch, within, behind, caller)

    @property
    def operators_s(self) -> float:
        """Return what all operators take that were timed."""
        return math.fsum(self.within.values()) + self.behind

    @property
    def step_s(self) -> float:
        """Return how long a step takes; what is timed of it where nobody knows."""
        if self.launch.step_s:
            return self.launch.step_s
        working = (self.working_s(place) or 0.0 for place in self.launch.functions)
        return max(math.fsum(working), self.operators_s)

    def operator_s(self, key: Key, signatures: Collection[str] | None = None) -> float | None:
        """Return what an operator takes: with these forms of arguments, or with all."""
        total = 0.0
        for use in self.launch.uses.get(key, ()):
            if signatures is None or use.signature in signatures:
                if use.call_s is None:
                    return None
                total += use.calls * use.call_s
        return total

    def working_s(self, place: Place) -> float | None:
        """Return the CPU time of a function, operators within included."""
        return _sum([use.working_s for use in self.launch.functions.get(place, ())])

    def waiting_s(self, place: Place) -> float | None:
        """Return how long a function waits."""
        return _sum([use.waiting_s for use in self.launch.functions.get(place, ())])

    def waits_in(self, place: Place) -> str:
        """Return the built-in function in which a function waits longest; empty if unknown."""
        uses = [use for use in self.launch.functions.get(place, ()) if use.waits_in]
        longest = max(uses, key=lambda use: use.waiting_s or 0.0, default=None)
        return longest.waits_in if longest else ""

    def own_s(self, place: Place) -> float | None:
        """Return a function's own Python: its CPU time less that of the operators within."""
        working, within = self.working_s(place), self.within.get(place, 0.0)
        is_missing = within > 0 and place not in self.launch.functions
        if working is None or is_missing:
            return None
        return working - within - (self.behind if place == self.calls_backward else 0.0)


def _sum(times: list[float | None]) -> float | None:
    known = [time for time in times if time is not None]
    return math.fsum(known) if len(known) == len(times) else None


def _calls_backward(launch: ProfiledLaunch, within: Mapping[Place | None, float]) -> Place | None:
    """Find the function whose own time is largest beside its operators, of those that may be it."""
    begin = {key[0] for key in launch.uses if key[3] == _BEGINS_BACKWARD and not key[2]}
    own = {
        place: math.fsum(use.working_s or 0.0 for use in uses) - within.get(place, 0.0)
        for place, uses in launch.functions.items()
    }
    among = [place for place in own if place in begin] or list(own)
    return max(among, key=own.__getitem__, default=None)


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
