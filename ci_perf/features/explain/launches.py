"""The profiled launches of both sides, by what joins two commits.

A function is known by its file and its qualified name, never by its line.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from ci_perf.model.explanation import (
    AuthorFunction,
    FunctionUse,
    OperatorUse,
    ProfiledPair,
    ProfiledPairs,
    StepProfile,
)

_MAX_SENTENCE_CHARS: Final = 1_000
# Calls per step are divisions of whole numbers: what differs by less is rounding.
_ROUNDING: Final = 1e-6

Place = tuple[str, str]
"""A function of the repository: its file and its qualified name."""
Key = tuple[Place | None, bool, str]
"""Where an operator is dispatched (function, whether in the backward pass), and its name."""


class Launch:
    """What one launch found, by what joins it with others.

    Calls of libraries are told like operators, but with an empty signature; their time is a part of
    the function's own.
    """

    def __init__(self, profile: StepProfile, functions: Sequence[FunctionUse]) -> None:
        """`functions` are those of the profile, where all launches have counted theirs."""
        self.step_s = profile.step_s or 0.0
        self.uses: dict[Key, list[OperatorUse]] = {}
        self.functions = {place_of(each.function): each for each in functions}
        self.places = {place: each.function for place, each in self.functions.items()}
        for use in (*profile.operators, *chain.from_iterable(map(_read_callees, functions))):
            place = place_of(use.caller) if use.caller else None
            self.uses.setdefault((place, use.is_backward, use.operator), []).append(use)
            if use.caller and place:
                self.places[place] = use.caller

    def calls_by_signature(self, key: Key) -> dict[str, float]:
        """Return how often an operator is called, by the form of its arguments."""
        calls: dict[str, float] = defaultdict(float)
        for use in self.uses.get(key, ()):
            calls[use.signature] += use.calls
        return calls

    def operator_s(self, key: Key, signatures: Collection[str] | None = None) -> float | None:
        """Return what an operator or a library takes: with these arguments, or with all."""
        uses = [
            use
            for use in self.uses.get(key, ())
            if signatures is None or use.signature in signatures
        ]
        times = [use.calls * use.call_s for use in uses if use.call_s is not None]
        return math.fsum(times) if len(times) == len(uses) else None

    def calls_of(self, place: Place | None) -> float:
        """Return how often a step calls a function."""
        return self.functions[place].calls if place in self.functions else 0.0

    def own_s(self, place: Place | None) -> float | None:
        """Return what a function itself takes in a step; 0 where it is not called."""
        return self.functions[place].own_s if place in self.functions else 0.0


def _read_callees(function: FunctionUse) -> Iterator[OperatorUse]:
    for callee in function.callees:
        seconds = callee.seconds
        yield OperatorUse(
            operator=callee.name,
            signature="",
            arguments="",
            caller=function.function,
            line=function.function.line,
            calls=callee.calls,
            call_s=None if seconds is None else seconds / max(callee.calls, _ROUNDING),
        )


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
        """Index pairs that can be compared. Functions need to be counted on both sides."""
        profiles = [[pair.base for pair in pairs], [pair.head for pair in pairs]]
        has_functions = all(each.functions for each in chain(*profiles))
        base, head = (
            [Launch(each, each.functions if has_functions else ()) for each in side]
            for side in profiles
        )
        varying = {
            (place_of(each.caller) if each.caller else None, each.operator)
            for profile in chain(*profiles)
            for each in profile.varies
        }
        for first, *others in (base, head):
            for other in others:
                for key in first.uses.keys() | other.uses.keys():
                    if find_moved(first, other, key):
                        varying.add((key[0], key[2]))
                for place in first.functions.keys() | other.functions.keys():
                    if not is_equal(first.calls_of(place), other.calls_of(place)):
                        varying.add((place, ""))
        return cls(base, head, frozenset(varying))

    @property
    def step_s(self) -> float:
        """Return how long a step of the base takes; 0 where nobody knows."""
        return statistics.median(launch.step_s for launch in self.base)

    def list_keys(self) -> list[Key]:
        """Return all operators and calls of libraries that do not vary, in a fixed order."""
        seen = {key for launch in (*self.base, *self.head) for key in launch.uses}
        return sorted((key for key in seen if (key[0], key[2]) not in self.varying), key=repr)

    def read_times(
        self, read: Callable[[Launch], float | None]
    ) -> tuple[list[float], list[float]] | None:
        """Return seconds of the base and of the head, pair by pair; `None` where one has none."""
        base, head = ([read(launch) for launch in side] for side in (self.base, self.head))
        known = [[each for each in side if each is not None] for side in (base, head)]
        return (known[0], known[1]) if known == [base, head] else None

    def find_added_s(self, read: Callable[[Launch], float | None]) -> list[float]:
        """Return the seconds that the head adds, pair by pair; nothing where one has no time."""
        times = self.read_times(read)
        return [after - before for before, after in zip(*times, strict=True)] if times else []


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
