"""What operators and functions take longer in the head, pair by pair, apart from the machine.

All is per step. The head's times are first divided by the factor by which everything that did not
change differs in the pair: a machine that slows down in between is no cause.
"""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
        """Return what an operator or a library takes: with these arguments, or with all."""
        total = 0.0
        for use in self.launch.uses_of(key):
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
        working, within = self.working_s(place), self.within_s(place)
        return None if working is None or within is None else working - within

    def within_s(self, place: Place) -> float | None:
        """Return what operators take that run in a function; `None` where it was not counted."""
        within = self.within.get(place, 0.0)
        if within > 0 and place not in self.launch.functions:
            return None
        return within + (self.behind if place == self.calls_backward else 0.0)


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

    ``factors`` are the machine's, head over base, of operators; ``function_factors`` of functions,
    which are timed at other moments; ``levels`` and ``function_levels`` those of each launch of the
    base over its first one. ``spread`` is how far what did not change lies apart all the same: a
    standard deviation of the logarithm of head over base.
    """

    base: Sequence[LaunchTimes]
    head: Sequence[LaunchTimes]
    factors: Sequence[float]
    function_factors: Sequence[float]
    spread: float
    levels: Sequence[float] = ()
    function_levels: Sequence[float] = ()

    @classmethod
    def of(cls, sides: Sides, changed: Collection[Key], recomputed: Collection[Key]) -> "Clock":
        """Read the machine's factors off what did not change."""
        first = replace(sides, base=[sides.base[0]] * len(sides.base), head=sides.base)
        level = cls._between(first, changed, recomputed)
        return replace(
            cls._between(sides, changed, recomputed),
            levels=level.factors,
            function_levels=level.function_factors,
        )

    @classmethod
    def _between(
        cls, sides: Sides, changed: Collection[Key], recomputed: Collection[Key]
    ) -> "Clock":
        base = [LaunchTimes.of(launch, recomputed) for launch in sides.base]
        head = [LaunchTimes.of(launch, recomputed) for launch in sides.head]
        logs = [
            of_key
            for key in sides.operators()
            if key not in changed and (of_key := _logs(base, head, key))
        ]
        factors, spread = [1.0] * len(base), _UNKNOWN_SPREAD
        if len(logs) >= _FEWEST_UNCHANGED and (common := _common(logs)):
            factors = [math.exp(factor) for factor in common]
            spread = max(_SMALLEST_SPREAD, _spread(_without(of, common) for of in logs))
        clock = cls(base, head, factors, factors, spread)
        of_functions = clock.unchanged_functions(sides, changed)
        if len(of_functions) >= _FEWEST_FUNCTIONS and (common := _common(of_functions)):
            clock = replace(clock, function_factors=[math.exp(factor) for factor in common])
        return clock

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

    def are_apart(self, seconds: Seconds) -> bool:
        """Whether an operator's times lie further apart between the sides than within either.

        What wanders by itself is now and then longer in three launches than in three others.
        """
        return self._are_apart(seconds, self.levels, self.factors)

    def function_is_apart(self, place: Place) -> bool:
        """Whether those of a function do."""
        return self._are_apart(
            lambda timed: timed.working_s(place), self.function_levels, self.function_factors
        )

    def waiting_is_apart(self, place: Place) -> bool:
        """Whether its waiting does."""
        nothing = [1.0] * len(self.base)
        return self._are_apart(lambda timed: timed.waiting_s(place), nothing, nothing)

    def _are_apart(
        self, seconds: Seconds, levels: Sequence[float], factors: Sequence[float]
    ) -> bool:
        base = [
            (seconds(timed) or 0.0) / level for timed, level in zip(self.base, levels, strict=True)
        ]
        head = [
            (seconds(timed) or 0.0) / level / factor
            for timed, level, factor in zip(self.head, levels, factors, strict=True)
        ]
        shorter, longer = sorted((base, head), key=statistics.fmean)
        within = max(max(side) - min(side) for side in (base, head))
        return min(longer) - max(shorter) > within

    def deltas(self, seconds: Seconds) -> list[float]:
        """Return what operators of the head add, pair by pair; nothing where one was not timed."""
        return self._deltas(seconds, self.factors)

    def own_deltas(self, place: Place) -> list[float]:
        """Return what a function's own Python adds, pair by pair."""
        working = self._deltas(lambda timed: timed.working_s(place), self.function_factors)
        within = self._deltas(lambda timed: timed.within_s(place), self.factors)
        return added([working, [-seconds for seconds in within]])

    def waiting_deltas(self, place: Place) -> list[float]:
        """Return how much longer a function waits: the machine's speed has no part in that."""
        return self._deltas(lambda timed: timed.waiting_s(place), [1.0] * len(self.base))

    def _deltas(self, seconds: Seconds, factors: Sequence[float]) -> list[float]:
        differences: list[float] = []
        for base, head, factor in zip(self.base, self.head, factors, strict=True):
            before, after = seconds(base), seconds(head)
            if before is None or after is None:
                return []
            differences.append(after / factor - before)
        return differences

    def log_ratios(self, seconds: Seconds) -> list[float]:
        """Return the logarithms of head over base; nothing where a side is not known, or 0."""
        return self._log_ratios(seconds, self.factors)

    def function_log_ratios(self, place: Place) -> list[float]:
        """Return those of a function, its operators included."""
        return self._log_ratios(lambda timed: timed.working_s(place), self.function_factors)

    def _log_ratios(self, seconds: Seconds, factors: Sequence[float]) -> list[float]:
        logs: list[float] = []
        for base, head, factor in zip(self.base, self.head, factors, strict=True):
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

    def functions_spread(self, sides: Sides, changed: Collection[Key]) -> float:
        """Return how far the times of functions lie apart that did not change."""
        logs = self.unchanged_functions(sides, changed)
        known = _UNKNOWN_SPREAD
        if len(logs) >= _FEWEST_FUNCTIONS:
            factors = [math.log(factor) for factor in self.function_factors]
            known = _spread(_without(of_place, factors) for of_place in logs)
        return max(self.spread, known)

    def unchanged_functions(self, sides: Sides, changed: Collection[Key]) -> list[list[float]]:
        """Return the logarithms of head over base of each function that takes notable time.

        Of those that both sides call equally often, and in which no operator runs that has
        `changed`.
        """
        places = {key[0] for key in changed}
        if any(key[2] for key in changed):
            places |= {timed.calls_backward for timed in (*self.base, *self.head)}
        least = _NOTABLE * self.step_s
        nothing = [1.0] * len(self.base)
        logs: list[list[float]] = []
        for place in sides.functions_called_alike():
            is_notable = min(timed.working_s(place) or 0.0 for timed in self.base) > least
            if place not in places and is_notable:
                logs.append(self._log_ratios(lambda t, place=place: t.working_s(place), nothing))  # type: ignore[misc]
        return [of_place for of_place in logs if of_place]


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


def _common(logs: Sequence[Sequence[float]]) -> list[float]:
    """Return the logarithm that is common to all, pair by pair; nothing where no machine is so."""
    factors = [statistics.median(of_pair) for of_pair in zip(*logs, strict=True)]
    return factors if max(map(abs, factors)) < math.log(_LARGEST_FACTOR) else []


def _without(logs: Sequence[float], factors: Sequence[float]) -> float:
    """Return what is left of a ratio without the machine: the median over pairs."""
    return statistics.median(log - factor for log, factor in zip(logs, factors, strict=True))


def _spread(logs: Iterable[float]) -> float:
    return _SIGMA * statistics.median(map(abs, logs))
