"""The profiled launches of both sides, by what joins two commits, and what differs between them.

A function is known by its file and its qualified name, never by its line.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ci_perf.model.step_profile import (
    AuthorFunction,
    FunctionUse,
    LibraryCall,
    MemoryUse,
    OperatorUse,
    ProfiledPair,
    ProfiledPairs,
    StepProfile,
)

# Calls per step are divisions of whole numbers: what differs by less is rounding.
ROUNDING: Final = 1e-6
_MAX_SENTENCE_CHARS: Final = 1_000
# An entry of ``varies``; "and 12 more" says that further ones are not known.
_ENTRY = re.compile(
    r"(calls of|(?P<operator>\S+) in) (?P<function>\S+) \((?P<file>.*)\)|(?P<alone>\S+)",
    re.DOTALL,
)

Place = tuple[str, str]
"""A function of the repository: its file and its qualified name."""
Key = tuple[Place | None, str, bool, str]
"""Where an operator is dispatched (function, phase, in the backward pass), and its name."""


@dataclass(frozen=True, slots=True)
class ProfiledLaunch:
    """What one launch found, by what joins it with others.

    Calls of libraries are told like operators that the function dispatches, in ``library``; their
    time is a part of the function's own. ``has_library`` says that they were counted.
    """

    uses: Mapping[Key, Sequence[OperatorUse]]
    functions: Mapping[Place, Sequence[FunctionUse]]
    step_s: float | None
    memory: MemoryUse | None
    library: Mapping[Key, Sequence[OperatorUse]]
    has_library: bool

    @classmethod
    def of(cls, profile: StepProfile) -> "ProfiledLaunch":
        """Index a profile."""
        uses: dict[Key, list[OperatorUse]] = defaultdict(list)
        functions: dict[Place, list[FunctionUse]] = defaultdict(list)
        for use in profile.operators:
            if use.calls > 0:
                caller = place_of(use.caller) if use.caller else None
                uses[caller, use.phase, use.is_backward, use.operator].append(use)
        for called in profile.functions:
            if called.calls > 0:
                functions[place_of(called.function)].append(called)
        library: dict[Key, list[OperatorUse]] = defaultdict(list)
        for call in profile.library_calls:
            if call.calls > 0:
                library[place_of(call.caller), "", False, call.callee].append(_as_operator(call))
        has_library = bool(functions) and "library_calls" not in profile.missing
        return cls(uses, functions, profile.step_s, profile.memory, library, has_library)

    def uses_of(self, key: Key) -> Sequence[OperatorUse]:
        """Return the uses of an operator, or the calls of a library's function."""
        return self.uses.get(key) or self.library.get(key, ())

    def places(self) -> dict[Place, AuthorFunction]:
        """Return every function that the launch names, with its line there."""
        every = (*self.uses.values(), *self.library.values())
        callers = (use.caller for uses in every for use in uses if use.caller)
        called = (use.function for uses in self.functions.values() for use in uses)
        return {place_of(function): function for function in (*callers, *called)}

    def calls_of(self, place: Place) -> float:
        """Return how often a step calls a function."""
        return sum(use.calls for use in self.functions.get(place, ()))


@dataclass(frozen=True, slots=True)
class Sides:
    """Launches of both sides, pair by pair; at least one pair."""

    base: Sequence[ProfiledLaunch]
    head: Sequence[ProfiledLaunch]
    varying_operators: frozenset[tuple[Place | None, str]]
    varying_functions: frozenset[Place]

    @classmethod
    def of(cls, pairs: Sequence[ProfiledPair]) -> "Sides":
        """Index pairs that can be compared; what differs within one side is no evidence."""
        base = [ProfiledLaunch.of(pair.base) for pair in pairs]
        head = [ProfiledLaunch.of(pair.head) for pair in pairs]
        operators, functions = _named_as_varying(pairs)
        for side in (base, head):
            for other in side[1:]:
                operators |= _other_operators(side[0], other)
                functions |= _other_functions(side[0], other)
        return cls(base, head, frozenset(operators), frozenset(functions))

    @property
    def varying(self) -> int:
        """Count what is left out because it varies."""
        return len(self.varying_operators) + len(self.varying_functions)

    @property
    def has_functions(self) -> bool:
        """Whether both sides counted functions: else those of one side are not known."""
        return all(launch.functions for launch in (*self.base, *self.head))

    def functions_called_alike(self) -> list[Place]:
        """Return the functions that both sides call equally often, in a fixed order."""
        base, head = self.base[0], self.head[0]
        return sorted(
            place
            for place in base.functions.keys() & head.functions.keys()
            if place not in self.varying_functions
            and is_equal(base.calls_of(place), head.calls_of(place))
        )

    def operators(self) -> list[Key]:
        """Return all operators that do not vary, in a fixed order."""
        return self._stable({key for launch in (*self.base, *self.head) for key in launch.uses})

    def library_calls(self) -> list[Key]:
        """Return all calls of libraries that do not vary; none where a launch did not count."""
        launches = (*self.base, *self.head)
        if not all(launch.has_library for launch in launches):
            return []
        return self._stable({key for launch in launches for key in launch.library})

    def _stable(self, seen: Collection[Key]) -> list[Key]:
        stable = (key for key in seen if (key[0], key[3]) not in self.varying_operators)
        return sorted(stable, key=repr)


def comparable(profiled: ProfiledPairs) -> tuple[list[ProfiledPair], str]:
    """Return the pairs of which both sides can be compared; where there is none, say why."""
    obstacles = [obstacle(pair) for pair in profiled.pairs]
    good = [pair for pair, why in zip(profiled.pairs, obstacles, strict=True) if not why]
    if good:
        return good, ""
    why = obstacles[0] if obstacles else profiled.trouble[:_MAX_SENTENCE_CHARS]
    return [], why or "no pair was profiled"


def place_of(function: AuthorFunction) -> Place:
    """Return what joins a function of two commits."""
    return function.file, function.function


def _as_operator(call: LibraryCall) -> OperatorUse:
    """Return a call as an operator without arguments: one of many takes a part of their time."""
    seconds = None
    if call.working_s is not None and call.waiting_s is not None:
        seconds = (call.working_s + call.waiting_s) / max(call.calls, ROUNDING)
    return OperatorUse(
        operator=call.callee,
        signature="",
        arguments="",
        caller=call.caller,
        line=call.line,
        calls=call.calls,
        call_s=seconds,
    )


def by_signature(uses: Iterable[OperatorUse]) -> dict[str, float]:
    """Return the calls of each form of arguments."""
    calls: dict[str, float] = defaultdict(float)
    for use in uses:
        calls[use.signature] += use.calls
    return calls


def is_equal(base: float, head: float) -> bool:
    """Whether two counts are the same but for rounding."""
    return abs(base - head) <= ROUNDING * max(1.0, abs(base), abs(head))


def obstacle(pair: ProfiledPair) -> str:
    """Say why both sides cannot be compared; empty where they can."""
    for name, counts in (("base", pair.base), ("head", pair.head)):
        if not counts.absent and not counts.steps:
            return f"no step of the {name} was counted"
        if counts.absent:
            return f"{name}: {counts.absent[:_MAX_SENTENCE_CHARS]}"
        if counts.cut:
            return f"a step of the {name} does too many different things: {counts.cut:,} left out"
        if not all(map(_ENTRY.fullmatch, counts.varies)):
            return f"too much differs from one step of the {name} to the next"
    return ""


def _named_as_varying(
    pairs: Iterable[ProfiledPair],
) -> tuple[set[tuple[Place | None, str]], set[Place]]:
    """Read what the launches themselves found to differ from step to step."""
    operators: set[tuple[Place | None, str]] = set()
    functions: set[Place] = set()
    entries = {entry for pair in pairs for side in (pair.base, pair.head) for entry in side.varies}
    for entry in filter(None, map(_ENTRY.fullmatch, entries)):
        place = (entry["file"], entry["function"])
        if entry["alone"]:
            operators.add((None, entry["alone"]))
        elif entry["operator"]:
            operators.add((place, entry["operator"]))
        else:
            functions.add(place)
    return operators, functions


def _other_operators(first: ProfiledLaunch, other: ProfiledLaunch) -> set[tuple[Place | None, str]]:
    keys = first.uses.keys() | other.uses.keys()
    if first.has_library and other.has_library:
        keys |= first.library.keys() | other.library.keys()
    return {
        (key[0], key[3])
        for key in keys
        if _differ(by_signature(first.uses_of(key)), by_signature(other.uses_of(key)))
    }


def _other_functions(first: ProfiledLaunch, other: ProfiledLaunch) -> set[Place]:
    places = first.functions.keys() | other.functions.keys()
    return {place for place in places if not is_equal(first.calls_of(place), other.calls_of(place))}


def _differ(first: Mapping[str, float], other: Mapping[str, float]) -> bool:
    names = first.keys() | other.keys()
    return any(not is_equal(first.get(name, 0.0), other.get(name, 0.0)) for name in names)
