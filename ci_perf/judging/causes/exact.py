"""What a step of the head does differently: counts that are the same in all launches of a side.

Calls of libraries and of built-in functions are told like operators.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ci_perf.judging.causes.launches import (
    Key,
    Place,
    ProfiledLaunch,
    Sides,
    by_signature,
    is_equal,
)
from ci_perf.judging.causes.possible import SLOWS, SPEEDS, PossibleCause, short, shortened
from ci_perf.model.explanation import MOST_CAUSE_OPERATORS, Cause, CauseKind, OperatorChange
from ci_perf.model.step_profile import AuthorFunction, OperatorUse

# What makes the host wait until the device has come so far, because its answer is a Python number
# or decides a shape.
_SYNCHRONISES: Final = frozenset(
    f"aten::{name}"
    for name in (
        "_local_scalar_dense",
        "item",
        "is_nonzero",
        "equal",
        "nonzero",
        "masked_select",
        "_unique2",
        "unique_dim",
        "unique_consecutive",
    )
)
# Of what a function does forward: so much of it again, in the backward pass, is a checkpoint.
_RECOMPUTED: Final = 0.5
# Per step: calls are whole numbers over a few steps, so that less is rounding.
_NO_CALLS: Final = 1e-6


@dataclass(frozen=True, slots=True)
class OperatorDifference:
    """One operator in one function, with its uses on both sides; ``kind`` is what has changed.

    ``is_library``: it is no operator, but a call of a library or of a built-in function.
    """

    key: Key
    base: Sequence[OperatorUse]
    head: Sequence[OperatorUse]
    kind: CauseKind
    is_library: bool = False

    @property
    def calls_base(self) -> float:
        """Return how often a step of the base calls it."""
        return _calls(self.base)

    @property
    def calls_head(self) -> float:
        """Return how often a step of the head calls it."""
        return _calls(self.head)

    @property
    def size(self) -> float:
        """Return how many calls were added or taken away, or have other arguments."""
        if self.kind == "other_shape":
            return math.fsum(map(abs, self.moved.values())) / 2
        return abs(self.calls_head - self.calls_base)

    @property
    def moved(self) -> dict[str, float]:
        """Return how many more calls the head makes, by their arguments: only differences."""
        return _moved(self.base, self.head)

    def telling(self, uses: Sequence[OperatorUse]) -> OperatorUse | None:
        """Return the use of one side that differs most from the other side."""
        moved = self.moved
        return max(uses, key=lambda use: abs(moved.get(use.signature, 0)), default=None)


Seconds = Callable[[OperatorDifference], float | None]
"""What a difference adds to a step, head minus base; `None` where it was not timed."""


@dataclass(frozen=True, slots=True)
class Differences:
    """All operators that differ, by function.

    ``of_called`` are calls of libraries that differ in functions which are themselves called more
    or less often, and dispatch the same operators.
    """

    of_place: Mapping[Place | None, Sequence[OperatorDifference]]
    of_called: Mapping[Place | None, Sequence[OperatorDifference]] = field(default_factory=dict)

    @classmethod
    def of(cls, sides: Sides, *, on_device: bool) -> "Differences":
        """Compare both sides; `on_device` tells whether operators run on a GPU."""
        base, head = sides.base[0], sides.head[0]
        again = {
            place: recomputed
            for place in {key[0] for key in head.uses if key[2]}
            if (recomputed := _recomputed(place, base, head))
        }
        by_place: dict[Place | None, list[OperatorDifference]] = defaultdict(list)
        for keys, is_library in ((sides.operators(), False), (sides.library_calls(), True)):
            for key in keys:
                before, after = base.uses_of(key), head.uses_of(key)
                if _moved(before, after):
                    is_again = key in again.get(key[0], ())
                    kind = _kind(key, before, after, is_again=is_again, on_device=on_device)
                    difference = OperatorDifference(key, before, after, kind, is_library)
                    by_place[key[0]].append(difference)
        return cls(by_place)

    def keys(self) -> frozenset[Key]:
        """Return all operators that differ."""
        return frozenset(each.key for of_place in self.of_place.values() for each in of_place)

    def only_moved(self) -> frozenset[Place | None]:
        """Return functions whose operators others dispatch that much less, or more, in turn.

        All functions together do what they did: the code stands elsewhere, or has another name.
        """
        net: dict[tuple[str, bool, str, str], float] = defaultdict(float)
        forms: dict[Place | None, list[tuple[str, bool, str, str]]] = defaultdict(list)
        for place, of_place in self.of_place.items():
            for each in of_place:
                for signature, calls in each.moved.items():
                    form = (*each.key[1:], signature)
                    net[form] += calls
                    forms[place].append(form)
        return frozenset(
            place
            for place, of_place in forms.items()
            if all(math.isclose(net[form], 0.0, abs_tol=_NO_CALLS) for form in of_place)
        )

    def recomputed(self) -> frozenset[Key]:
        """Return those of the backward pass that only run forward operators again."""
        every = (each for of_place in self.of_place.values() for each in of_place)
        return frozenset(each.key for each in every if each.kind == "recomputed")


def of_operators(
    sides: Sides, differences: Differences, seconds: Seconds, *, is_gain: bool
) -> Iterator[PossibleCause]:
    """Yield one candidate of each function that dispatches other operators.

    `seconds` tells what a difference adds to a step: in a function of which all were timed, those
    that add or save most come first.
    """
    in_head = sides.head[0].places()
    places = sides.base[0].places() | in_head
    for place, of_place in differences.of_place.items():
        yield _of_place(
            _ordered(of_place, seconds, is_gain=is_gain),
            place,
            places[place] if place else None,
            in_head=place is None or place in in_head,
            is_gain=is_gain,
        )


def of_functions(
    sides: Sides, differences: Differences, *, is_gain: bool
) -> Iterator[PossibleCause]:
    """Yield functions that are called more or less often, and dispatch what they did."""
    if not sides.has_functions:
        return
    base, head = sides.base[0], sides.head[0]
    places = base.places() | head.places()
    for place in sorted(base.functions.keys() | head.functions.keys()):
        calls_base, calls_head = base.calls_of(place), head.calls_of(place)
        is_known = place in differences.of_place or place in sides.varying_functions
        if is_known or is_equal(calls_base, calls_head):
            continue
        called = _operators(differences.of_called.get(place, ()))
        cause = Cause(
            kind="calls",
            place=shortened(places[place]),
            in_head=calls_head > 0,
            line=places[place].line,
            operators=called[:MOST_CAUSE_OPERATORS],
            further=max(0, len(called) - MOST_CAUSE_OPERATORS),
            calls_base=calls_base,
            calls_head=calls_head,
        )
        is_likely = (calls_head < calls_base) is is_gain
        size = abs(calls_head - calls_base)
        yield PossibleCause(cause=cause, place=place, is_likely=is_likely, size=size)


# --- the operators of one function


def _of_place(
    ordered: Sequence[OperatorDifference],
    place: Place | None,
    function: AuthorFunction | None,
    *,
    in_head: bool,
    is_gain: bool,
) -> PossibleCause:
    """Make one cause of all that differs in one function, in this order."""
    first = ordered[0]
    before, after = first.telling(first.base), first.telling(first.head)
    operators = _operators(ordered)
    phases = {each.key[1] for each in ordered}
    is_shape = first.kind == "other_shape"
    cause = Cause(
        kind=first.kind,
        place=shortened(function),
        in_head=in_head,
        line=_line(after if in_head else before, function),
        phase=short(first.key[1]) if len(phases) == 1 else "",
        is_backward=all(each.key[2] for each in ordered),
        operators=operators[:MOST_CAUSE_OPERATORS],
        further=max(0, len(operators) - MOST_CAUSE_OPERATORS),
        calls_base=math.fsum(each.calls_base for each in ordered),
        calls_head=math.fsum(each.calls_head for each in ordered),
        arguments_base=short(before.arguments) if is_shape and before else "",
        arguments_head=short(after.arguments) if is_shape and after else "",
    )
    size = math.fsum(each.size for each in ordered)
    is_likely = first.kind in _likely(is_gain=is_gain)
    return PossibleCause(cause=cause, place=place, is_likely=is_likely, size=size)


def _likely(*, is_gain: bool) -> frozenset[CauseKind]:
    return SPEEDS if is_gain else SLOWS


def _ordered(
    differences: Sequence[OperatorDifference], seconds: Seconds, *, is_gain: bool
) -> list[OperatorDifference]:
    """Put kinds that move a row to this side first, then what takes most time, or most calls."""
    likely = _likely(is_gain=is_gain)
    ordered = sorted(differences, key=lambda each: (each.kind not in likely, -each.size))
    times = [seconds(each) for each in ordered]
    if None in times:
        return ordered
    places = range(len(ordered))
    by_time = sorted(
        places, key=lambda at: (ordered[at].kind not in likely, -abs(times[at] or 0.0))
    )
    return [ordered[at] for at in by_time]


def _operators(differences: Iterable[OperatorDifference]) -> tuple[OperatorChange, ...]:
    """Name each operator once for each kind of difference, over all phases and both passes."""
    together: dict[tuple[CauseKind, str], list[OperatorDifference]] = defaultdict(list)
    for each in differences:
        together[each.kind, each.key[3]].append(each)
    return tuple(
        OperatorChange(
            kind=kind,
            operator=short(operator),
            calls_base=math.fsum(each.calls_base for each in of_operator),
            calls_head=math.fsum(each.calls_head for each in of_operator),
        )
        for (kind, operator), of_operator in together.items()
    )


# --- kinds


def _kind(
    key: Key,
    base: Sequence[OperatorUse],
    head: Sequence[OperatorUse],
    *,
    is_again: bool,
    on_device: bool,
) -> CauseKind:
    """Say what has changed of one operator."""
    before, after = _calls(base), _calls(head)
    if after > before and is_again:
        return "recomputed"
    if after > before and on_device and key[3] in _SYNCHRONISES:
        return "synchronises"
    if not base:
        return "new"
    if not head:
        return "gone"
    if is_equal(before, after):
        return "other_shape"
    return "more" if after > before else "fewer"


def _recomputed(place: Place | None, base: ProfiledLaunch, head: ProfiledLaunch) -> frozenset[Key]:
    """Return the operators that the head's backward pass runs again, as forward.

    A backward pass shares some operators with the forward one ("aten::mul"), in which both change
    together. A checkpoint repeats most of what its function does forward, which is as it was.
    """
    before, forward = _forward(place, base), _forward(place, head)
    same = {form for form, calls in forward.items() if is_equal(calls, before.get(form, 0.0))}
    again: dict[tuple[str, str], Key] = {}
    for key, uses in head.uses.items():
        if key[0] == place and key[2]:
            moved = _moved(base.uses.get(key, ()), uses)
            repeated = (signature for signature, calls in moved.items() if calls > 0)
            again |= {(key[3], name): key for name in repeated if (key[3], name) in same}
    repeated_calls = math.fsum(forward[each] for each in again)
    is_most = repeated_calls >= _RECOMPUTED * math.fsum(forward.values())
    return frozenset(again.values()) if again and is_most else frozenset()


# --- small parts


def _forward(place: Place | None, launch: ProfiledLaunch) -> dict[tuple[str, str], float]:
    """Return the calls of a function's forward operators, by name and arguments."""
    calls: dict[tuple[str, str], float] = defaultdict(float)
    for key, uses in launch.uses.items():
        if key[0] == place and not key[2]:
            for use in uses:
                calls[key[3], use.signature] += use.calls
    return calls


def _moved(base: Iterable[OperatorUse], head: Iterable[OperatorUse]) -> dict[str, float]:
    before, after = by_signature(base), by_signature(head)
    moved = {name: after.get(name, 0.0) - before.get(name, 0.0) for name in (before | after)}
    return {
        name: calls
        for name, calls in moved.items()
        if not is_equal(before.get(name, 0.0), after.get(name, 0.0))
    }


def _calls(uses: Iterable[OperatorUse]) -> float:
    return math.fsum(use.calls for use in uses)


def _line(use: OperatorUse | None, function: AuthorFunction | None) -> int:
    """Return the line of an operator; that of its function where the side has no such operator."""
    if use is not None:
        return use.line
    return function.line if function else 0
