"""The profiled launches of both sides, by what joins two commits, and how long things take in them.

A function is known by its file and its qualified name, never by its line. Times of the head are
divided by the factor by which everything that did not change differs in the pair: a machine that
slows down in between is no cause.
"""

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ci_perf.features.explain.model import (
    AuthorFunction,
    FunctionUse,
    OperatorUse,
    ProfiledPair,
    ProfiledPairs,
    StepProfile,
)
from ci_perf.judging import distributions

# Fewer pairs say nothing of how far they lie apart.
FEWEST_PAIRS: Final = 3
_TAIL: Final = 0.025
_MAX_SENTENCE_CHARS: Final = 1_000
# Calls per step are divisions of whole numbers: what differs by less is rounding.
_ROUNDING: Final = 1e-6
# An entry of ``varies``; "and 12 more" says that further ones are not known.
_ENTRY: Final = re.compile(
    r"(calls of|(?P<operator>\S+) in) (?P<function>\S+) \((?P<file>.*)\)|(?P<alone>\S+)",
    re.DOTALL,
)
# Fewer unchanged operators, or functions, do not tell the machine from one of them.
_FEWEST_UNCHANGED: Final = 8
_FEWEST_FUNCTIONS: Final = 3
# Of a step: below, a clock's tick and a cache decide.
_LEAST_OF_STEP: Final = 0.002
# A machine does not change by more from one launch to the next; a profile that lies may.
_LARGEST_FACTOR: Final = 10.0
# Times of 25 % quantiles are never closer than this, whatever a few of them say.
_SMALLEST_SPREAD: Final = 0.02
_UNKNOWN_SPREAD: Final = 0.05
# The standard deviation of a normal distribution, from the median of absolute values.
_SIGMA: Final = 1.4826
_SHORTEST_S: Final = 1e-9

Place = tuple[str, str]
"""A function of the repository: its file and its qualified name."""
Key = tuple[Place | None, str, bool, str]
"""Where an operator is dispatched (function, phase, in the backward pass), and its name."""


class Launch:
    """What one launch found, by what joins it with others.

    Calls of libraries are told like operators without arguments, in ``callees``; their time is a
    part of the function's own.
    """

    def __init__(self, profile: StepProfile) -> None:
        self.profile = profile
        self.uses: defaultdict[Key, list[OperatorUse]] = defaultdict(list)
        self.callees: dict[Key, list[OperatorUse]] = {}
        self.functions: dict[Place, FunctionUse] = {}
        self.places: dict[Place, AuthorFunction] = {}
        for use in profile.operators:
            place = place_of(use.caller) if use.caller else None
            self.uses[place, use.phase, use.is_backward, use.operator].append(use)
            if use.caller and place:
                self.places[place] = use.caller
        for function in profile.functions:
            place = place_of(function.function)
            self.places[place] = function.function
            self.functions[place] = function
            for callee in function.callees:
                seconds = callee.seconds
                use = OperatorUse(
                    operator=callee.name,
                    signature="",
                    arguments="",
                    caller=function.function,
                    line=function.function.line,
                    calls=callee.calls,
                    call_s=None if seconds is None else seconds / max(callee.calls, _ROUNDING),
                )
                self.callees[place, "", False, callee.name] = [use]

    def calls_by_signature(self, key: Key) -> dict[str, float]:
        """Return how often an operator is called, by the form of its arguments."""
        calls: dict[str, float] = defaultdict(float)
        for use in self.find_uses(key):
            calls[use.signature] += use.calls
        return calls

    def find_uses(self, key: Key) -> list[OperatorUse]:
        """Return the uses of an operator, or the calls of a library's function."""
        return self.uses.get(key) or self.callees.get(key, [])

    def operator_s(self, key: Key, signatures: Collection[str] | None = None) -> float | None:
        """Return what an operator or a library takes: with these arguments, or with all."""
        uses = [
            use for use in self.find_uses(key) if signatures is None or use.signature in signatures
        ]
        times = [use.calls * use.call_s for use in uses if use.call_s is not None]
        return math.fsum(times) if len(times) == len(uses) else None

    def calls_of(self, place: Place) -> float:
        """Return how often a step calls a function."""
        return self.functions[place].calls if place in self.functions else 0.0

    def working_s(self, place: Place) -> float | None:
        """Return how long a function itself works in a step; 0 where it is not called."""
        if place not in self.functions:
            return 0.0
        own_s = self.functions[place].own_s
        return None if own_s is None else max(own_s - (self.waiting_s(place) or 0.0), 0.0)

    def waiting_s(self, place: Place) -> float | None:
        """Return how long a function waits in a step; 0 where it is not called."""
        return self.functions[place].waiting_s if place in self.functions else 0.0

    @property
    def step_s(self) -> float:
        """Return how long a step takes; what is timed of it where nobody knows."""
        if self.profile.step_s:
            return self.profile.step_s
        operators_s = math.fsum(self.operator_s(key) or 0.0 for key in self.uses)
        return operators_s + math.fsum(use.own_s or 0.0 for use in self.functions.values())


@dataclass(frozen=True, slots=True)
class Sides:
    """Launches of both sides, pair by pair; at least one pair.

    ``varying`` are the operators and functions that differ within one side: they are no evidence.
    """

    base: Sequence[Launch]
    head: Sequence[Launch]
    varying: frozenset[tuple[Place | None, str]]

    @classmethod
    def from_pairs(cls, pairs: Sequence[ProfiledPair]) -> "Sides":
        """Index pairs that can be compared."""
        base = [Launch(pair.base) for pair in pairs]
        head = [Launch(pair.head) for pair in pairs]
        varying: set[tuple[Place | None, str]] = set()
        for entry in {name for launch in (*base, *head) for name in launch.profile.varies}:
            parts = _ENTRY.fullmatch(entry)
            if parts and parts["alone"]:
                varying.add((None, parts["alone"]))
            elif parts:
                varying.add(((parts["file"], parts["function"]), parts["operator"] or ""))
        for first, *others in (base, head):
            for other in others:
                for key in {*first.uses, *other.uses, *first.callees, *other.callees}:
                    if find_moved(first, other, key):
                        varying.add((key[0], key[3]))
                for place in first.functions.keys() | other.functions.keys():
                    if not is_equal(first.calls_of(place), other.calls_of(place)):
                        varying.add((place, ""))
        return cls(base, head, frozenset(varying))

    @property
    def launches(self) -> list[Launch]:
        """Return the launches of both sides."""
        return [*self.base, *self.head]

    @property
    def has_functions(self) -> bool:
        """Whether both sides counted functions: else those of one side are not known."""
        return all(launch.functions for launch in self.launches)

    def list_keys(self, *, of_libraries: bool = False) -> list[Key]:
        """Return all operators, or calls of libraries, that do not vary, in a fixed order."""
        seen = {
            key
            for launch in self.launches
            for key in (launch.callees if of_libraries else launch.uses)
        }
        return sorted((key for key in seen if (key[0], key[3]) not in self.varying), key=repr)

    def list_called_alike(self) -> list[Place]:
        """Return the functions that both sides call equally often, in a fixed order."""
        base, head = self.base[0], self.head[0]
        return sorted(
            place
            for place in base.functions.keys() & head.functions.keys()
            if (place, "") not in self.varying
            and is_equal(base.calls_of(place), head.calls_of(place))
        )


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds per step of both sides, pair by pair; none where a launch did not time them."""

    base: Sequence[float] = ()
    head: Sequence[float] = ()

    @classmethod
    def from_sides(
        cls, sides: Sides, read: Callable[[Launch], float | None], factors: Sequence[float]
    ) -> "Times":
        """Read the times off each launch; the head's are divided by the machine's factors."""
        base = [seconds for launch in sides.base if (seconds := read(launch)) is not None]
        head = [seconds for launch in sides.head if (seconds := read(launch)) is not None]
        if len(base) < len(factors) or len(head) < len(factors):
            return cls()
        return cls(base, [seconds / by for seconds, by in zip(head, factors, strict=True)])

    @property
    def deltas(self) -> list[float]:
        """Return what the head adds."""
        return [head - base for base, head in zip(self.base, self.head, strict=True)]

    def read_logs(self, least: float = _SHORTEST_S) -> list[float]:
        """Return the logarithms of head over base; nothing where one of the base is below that."""
        if not self.base or min(*self.base, *self.head) < _SHORTEST_S or min(self.base) < least:
            return []
        return [math.log(head / base) for base, head in zip(self.base, self.head, strict=True)]

    def is_far(self, spread: float) -> bool:
        """Whether ratios are four spreads from 1, and two in each pair, and the sides are apart.

        What wanders by itself is now and then longer in three launches than in three others: the
        sides lie further apart than the launches of either.
        """
        logs = self.read_logs()
        if not logs or abs(statistics.median(logs)) <= 4 * spread:
            return False
        shorter, longer = sorted((self.base, self.head), key=statistics.fmean)
        within = max(max(side) - min(side) for side in (self.base, self.head))
        return min(map(abs, logs)) > 2 * spread and min(longer) - max(shorter) > within


@dataclass(frozen=True, slots=True)
class Clock:
    """Times of both sides apart from the machine.

    ``factors`` are the machine's, head over base, of operators; ``function_factors`` of functions,
    which are timed at other moments. The spreads are how far what did not change lies apart all the
    same: a standard deviation of the logarithm of head over base.
    """

    sides: Sides
    step_s: float
    factors: Sequence[float]
    function_factors: Sequence[float]
    spread: float
    function_spread: float

    @classmethod
    def from_sides(cls, sides: Sides, changed: Collection[Key]) -> "Clock":
        """Read the machine's factors off what did not change."""
        ones = [1.0] * len(sides.base)
        step_s = statistics.median(launch.step_s for launch in sides.base)
        raw = cls(sides, step_s, ones, ones, _UNKNOWN_SPREAD, _UNKNOWN_SPREAD)
        least = _LEAST_OF_STEP * step_s
        unchanged = (key for key in sides.list_keys() if key not in changed)
        logs = [raw.time_operator(key).read_logs(least) for key in unchanged]
        factors, spread = _find_common(logs, _FEWEST_UNCHANGED)
        places = {key[0] for key in changed}
        alike = (place for place in sides.list_called_alike() if place not in places)
        logs = [raw.time_working(place).read_logs(least) for place in alike]
        function_factors, function_spread = _find_common(logs, _FEWEST_FUNCTIONS)
        return cls(
            sides,
            step_s,
            factors or ones,
            function_factors or factors or ones,
            spread,
            max(spread, function_spread),
        )

    def time_operator(self, key: Key, signatures: Collection[str] | None = None) -> Times:
        """Return the times of an operator: with these arguments, or with all."""
        return Times.from_sides(
            self.sides, lambda launch: launch.operator_s(key, signatures), self.factors
        )

    def time_callee(self, key: Key) -> Times:
        """Return the times of the calls of a library that a function makes."""
        return Times.from_sides(
            self.sides, lambda launch: launch.operator_s(key), self.function_factors
        )

    def time_working(self, place: Place) -> Times:
        """Return how long a function itself works."""
        return Times.from_sides(
            self.sides, lambda launch: launch.working_s(place), self.function_factors
        )

    def time_waiting(self, place: Place) -> Times:
        """Return how long a function waits: the machine's speed has no part in that."""
        ones = [1.0] * len(self.factors)
        return Times.from_sides(self.sides, lambda launch: launch.waiting_s(place), ones)

    def own_deltas(self, place: Place) -> list[float]:
        """Return what a function itself adds, its waiting included."""
        working = self.time_working(place).deltas
        return add_pairs([working, self.time_waiting(place).deltas or [0.0] * len(working)])

    def find_wait(self, place: Place) -> str:
        """Return the built-in function in which most launches of a side wait; the head's first."""
        for side in (self.sides.head, self.sides.base):
            names = [each.functions[place].waits_in for each in side if place in each.functions]
            name = statistics.mode(names) if names else ""
            if name and 2 * names.count(name) > len(side):
                return name
        return ""


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over pairs, with the half-width of its interval of 95 % by Student's t."""

    value: float
    half: float

    @property
    def is_resolved(self) -> bool:
        """Whether the interval excludes 0."""
        return abs(self.value) > self.half


def mean_of_pairs(values: Sequence[float]) -> Mean | None:
    """Return the mean of a number by pair; `None` of fewer than three pairs."""
    if len(values) < FEWEST_PAIRS or not all(map(math.isfinite, values)):
        return None
    error = statistics.stdev(values) / math.sqrt(len(values))
    quantile = distributions.student_quantile(_TAIL, len(values) - 1)
    return Mean(statistics.fmean(values), quantile * error)


def find_comparable(profiled: ProfiledPairs) -> tuple[list[ProfiledPair], str]:
    """Return the pairs of which both sides can be compared; where there is none, say why."""
    obstacles = [find_obstacle(pair) for pair in profiled.pairs]
    good = [pair for pair, why in zip(profiled.pairs, obstacles, strict=True) if not why]
    if good:
        return good, ""
    why = obstacles[0] if obstacles else profiled.trouble[:_MAX_SENTENCE_CHARS]
    return [], why or "no pair was profiled"


def find_obstacle(pair: ProfiledPair) -> str:
    """Say why both sides cannot be compared; empty where they can."""
    for name, counts in (("base", pair.base), ("head", pair.head)):
        if counts.absent:
            return f"{name}: {counts.absent[:_MAX_SENTENCE_CHARS]}"
        if not counts.steps:
            return f"no step of the {name} was counted"
        if counts.cut:
            return f"a step of the {name} does too many different things: {counts.cut:,} left out"
        if not all(map(_ENTRY.fullmatch, counts.varies)):
            return f"too much differs from one step of the {name} to the next"
    return ""


def place_of(function: AuthorFunction) -> Place:
    """Return what joins a function of two commits."""
    return function.file, function.function


def find_moved(base: Launch, head: Launch, key: Key) -> dict[str, float]:
    """Return how many more calls the head makes, by their arguments: only differences."""
    before, after = base.calls_by_signature(key), head.calls_by_signature(key)
    return {
        name: after.get(name, 0.0) - before.get(name, 0.0)
        for name in before | after
        if not is_equal(before.get(name, 0.0), after.get(name, 0.0))
    }


def is_equal(base: float, head: float) -> bool:
    """Whether two counts are the same but for rounding."""
    return abs(base - head) <= _ROUNDING * max(1.0, abs(base), abs(head))


def have_one_sign(values: Sequence[float]) -> bool:
    """Whether all pairs agree on a direction."""
    return all(value > 0 for value in values) or all(value < 0 for value in values)


def add_pairs(parts: Iterable[Sequence[float]]) -> list[float]:
    """Add up seconds by pair; nothing where a part was not timed."""
    every = list(parts)
    if not every or not all(every):
        return []
    return [math.fsum(of_pair) for of_pair in zip(*every, strict=True)]


def _find_common(logs: Iterable[Sequence[float]], fewest: int) -> tuple[list[float], float]:
    """Return the factor that is common to all, pair by pair, and how far they lie apart.

    No factor where too few tell of it, or no machine is so.
    """
    known = [of_one for of_one in logs if of_one]
    if len(known) < fewest:
        return [], _UNKNOWN_SPREAD
    common = [statistics.median(of_pair) for of_pair in zip(*known, strict=True)]
    if max(map(abs, common)) >= math.log(_LARGEST_FACTOR):
        return [], _UNKNOWN_SPREAD
    left = [
        abs(statistics.median(log - factor for log, factor in zip(of_one, common, strict=True)))
        for of_one in known
    ]
    return list(map(math.exp, common)), max(_SMALLEST_SPREAD, _SIGMA * statistics.median(left))
