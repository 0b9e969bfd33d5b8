"""What the head does differently in a step: the counts of both sides, compared by function.

Exact evidence of a difference, and no proof that it takes the time. No verdict depends on it.
"""

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ci_perf.judging.signs import SLOWED
from ci_perf.model.comparison import Change, Row, Verdict
from ci_perf.model.explanation import (
    MOST_CAUSE_OPERATORS,
    MOST_CAUSES,
    MOST_OTHERS,
    Cause,
    CauseKind,
    Explanation,
    OperatorChange,
)
from ci_perf.model.step_counts import AuthorFunction, CountedSides, OperatorUse, StepCounts

# The rows that are explained: losses come first.
_EXPLAINED = (Verdict.REGRESSED, Verdict.LIKELY_SLOWER, Verdict.IMPROVED)
# What costs time: work that is added, or done on other shapes; and what saves it.
_SLOWS: frozenset[CauseKind] = frozenset({"new", "more", "other_shape"})
_SPEEDS: frozenset[CauseKind] = frozenset({"gone", "fewer", "other_shape"})
# Calls per step are divisions of whole numbers: what differs by less is rounding.
_ROUNDING = 1e-6
# Texts of measured code: longer ones are cut, for fifteen causes must stay small.
_MAX_CHARS, _MAX_PATH_CHARS = 200, 1_000
# An entry of ``varies``; "and 12 more" says that further ones are not known.
_ENTRY = re.compile(
    r"(calls of|(?P<operator>\S+) in) (?P<function>\S+) \((?P<file>.*)\)|(?P<alone>\S+)",
    re.DOTALL,
)

_Place = tuple[str, str]
"""A function of the repository by its file and its qualified name, never by its line."""
_Key = tuple[_Place | None, str, bool, str]
"""Where an operator is dispatched (function, phase, in the backward pass), and its name."""


@dataclass(frozen=True, slots=True)
class _Difference:
    """One operator in one function, with its uses on both sides."""

    key: _Key
    base: Sequence[OperatorUse]
    head: Sequence[OperatorUse]

    @property
    def calls_base(self) -> float:
        return _calls(self.base)

    @property
    def calls_head(self) -> float:
        return _calls(self.head)

    @property
    def operator(self) -> str:
        return self.key[3]

    @property
    def kind(self) -> CauseKind:
        if not self.base:
            return "new"
        if not self.head:
            return "gone"
        if _is_equal(self.calls_base, self.calls_head):
            return "other_shape"
        return "more" if self.calls_head > self.calls_base else "fewer"

    @property
    def size(self) -> float:
        """Return how many calls were added or taken away, or have other arguments."""
        if self.kind == "other_shape":
            return math.fsum(abs(moved) for moved in self.by_signature.values()) / 2
        return abs(self.calls_head - self.calls_base)

    @property
    def by_signature(self) -> dict[str, float]:
        """Return how many more calls the head makes, by their arguments: only differences."""
        moved: dict[str, float] = defaultdict(float)
        for sign, uses in ((-1, self.base), (1, self.head)):
            for use in uses:
                moved[use.signature] += sign * use.calls
        return {name: calls for name, calls in moved.items() if not _is_equal(calls, 0)}

    def telling(self, uses: Sequence[OperatorUse]) -> OperatorUse | None:
        """Return the use of one side that differs most from the other side."""
        moved = self.by_signature
        return max(uses, key=lambda use: abs(moved.get(use.signature, 0)), default=None)


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A cause, and what orders it: whether it explains the row, and how many calls it concerns."""

    cause: Cause
    is_likely: bool
    size: float


def attach(rows: Sequence[Row], counted: Iterable[CountedSides]) -> list[Row]:
    """Explain one row of each workload that was counted; no verdict changes.

    It is the worst one that moved: losses before gains, gates before the rest, times of a step
    before other metrics. `rows` are worst first.
    """
    sides: dict[str, CountedSides] = {}
    for of_workload in counted:
        sides.setdefault(of_workload.workload, of_workload)
    explained = list(rows)
    for index in _chosen(rows, sides):
        row = rows[index]
        explanation = explain(sides[row.workload], is_gain=row.verdict is Verdict.IMPROVED)
        explained[index] = msgspec.structs.replace(row, explanation=explanation)
    return explained


def _chosen(rows: Sequence[Row], workloads: Mapping[str, CountedSides]) -> Iterable[int]:
    """Choose the places of the rows to explain: one of each workload at most."""

    def place(index: int) -> tuple[int, bool, bool]:
        row = rows[index]
        assert isinstance(row, Change)
        return _EXPLAINED.index(row.verdict), not row.gate, row.metric not in SLOWED

    moved: dict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        if isinstance(row, Change) and row.verdict in _EXPLAINED and row.workload in workloads:
            moved[row.workload].append(index)
    return [min(places, key=place) for places in moved.values()]


def explain(sides: CountedSides, *, is_gain: bool) -> Explanation:
    """Name what the head does differently, the likeliest causes first.

    What differs in one function is one cause. Causes that add work, or do it on other shapes, come
    first where the row is a loss; those that take work away where it is a gain. Within both, the
    one with the most calls comes first: calls that were added, taken away or have other arguments
    count alike, so that a replaced operator counts together with what replaces it. The kind of a
    cause is that of its first operator, in the same order.
    """
    if obstacle := _obstacle(sides):
        return Explanation(trouble=obstacle)
    base, head = sides.base, sides.head
    assert base is not None
    assert head is not None
    varying = _Varying.of(base, head)
    differences = _differences(base, head, varying)
    in_head = _places(head)
    places = _places(base) | in_head
    ranked = [
        _of_place(
            of_place,
            places[place] if place else None,
            in_head=place is None or place in in_head,
            is_gain=is_gain,
        )
        for place, of_place in differences.items()
    ]
    if base.functions and head.functions:  # else those of one side are not known
        explained = differences.keys()
        ranked += _of_functions(base, head, varying, explained, is_gain=is_gain)
    ranked.sort(key=_rank)
    causes = tuple(each.cause for each in ranked)
    return Explanation(
        causes=causes[:MOST_CAUSES],
        others=causes[MOST_CAUSES : MOST_CAUSES + MOST_OTHERS],
        further=max(0, len(causes) - MOST_CAUSES - MOST_OTHERS),
        varying=len(varying.operators) + len(varying.functions),
    )


def _rank(ranked: _Ranked) -> tuple[bool, float, bool, str, str]:
    place = ranked.cause.place
    name = (place.file, place.function) if place else ("", "")
    return not ranked.is_likely, -ranked.size, ranked.cause.kind == "calls", *name


def _obstacle(sides: CountedSides) -> str:
    """Say why both sides cannot be compared; empty where they can."""
    if sides.trouble:
        return sides.trouble[:_MAX_PATH_CHARS]
    for name, counts in (("base", sides.base), ("head", sides.head)):
        if counts is None or (not counts.absent and not counts.steps):
            return f"no step of the {name} was counted"
        if counts.absent:
            return f"{name}: {counts.absent[:_MAX_PATH_CHARS]}"
        if counts.cut:
            return f"a step of the {name} does too many different things: {counts.cut:,} left out"
        if not all(map(_ENTRY.fullmatch, counts.varies)):
            return f"too much differs from one step of the {name} to the next"
    return ""


@dataclass(frozen=True, slots=True)
class _Varying:
    """What differs between the steps of one side, and is no evidence."""

    operators: frozenset[tuple[_Place | None, str]]
    functions: frozenset[_Place]

    @classmethod
    def of(cls, base: StepCounts, head: StepCounts) -> "_Varying":
        """Read the entries of both sides."""
        operators: set[tuple[_Place | None, str]] = set()
        functions: set[_Place] = set()
        for entry in filter(None, map(_ENTRY.fullmatch, (*base.varies, *head.varies))):
            place = (entry["file"], entry["function"])
            if entry["alone"]:
                operators.add((None, entry["alone"]))
            elif entry["operator"]:
                operators.add((place, entry["operator"]))
            else:
                functions.add(place)
        return cls(frozenset(operators), frozenset(functions))


# --- operators, by function


def _differences(
    base: StepCounts, head: StepCounts, varying: _Varying
) -> dict[_Place | None, list[_Difference]]:
    """Return what differs between the operators of both sides, by function."""
    before, after = _by_operator(base, varying), _by_operator(head, varying)
    by_place: dict[_Place | None, list[_Difference]] = defaultdict(list)
    for key in sorted(before.keys() | after.keys(), key=repr):
        difference = _Difference(key, before.get(key, ()), after.get(key, ()))
        if difference.by_signature:
            by_place[key[0]].append(difference)
    return by_place


def _by_operator(side: StepCounts, varying: _Varying) -> dict[_Key, list[OperatorUse]]:
    uses: dict[_Key, list[OperatorUse]] = defaultdict(list)
    for use in side.operators:
        place = _place(use.caller) if use.caller else None
        if use.calls > 0 and (place, use.operator) not in varying.operators:
            uses[place, use.phase, use.is_backward, use.operator].append(use)
    return uses


def _of_place(
    differences: Sequence[_Difference],
    function: AuthorFunction | None,
    *,
    in_head: bool,
    is_gain: bool,
) -> _Ranked:
    """Make one cause of all that differs in one function."""
    likely = _SPEEDS if is_gain else _SLOWS
    ordered = sorted(differences, key=lambda each: (each.kind not in likely, -each.size))
    first = ordered[0]
    before, after = first.telling(first.base), first.telling(first.head)
    operators = _operators(ordered)
    phases = {each.key[1] for each in ordered}
    is_shape = first.kind == "other_shape"
    cause = Cause(
        kind=first.kind,
        place=_shortened(function),
        in_head=in_head,
        line=_line(after if in_head else before, function),
        phase=_short(first.key[1]) if len(phases) == 1 else "",
        is_backward=all(each.key[2] for each in ordered),
        operators=operators[:MOST_CAUSE_OPERATORS],
        further=max(0, len(operators) - MOST_CAUSE_OPERATORS),
        calls_base=math.fsum(each.calls_base for each in ordered),
        calls_head=math.fsum(each.calls_head for each in ordered),
        arguments_base=_short(before.arguments) if is_shape and before else "",
        arguments_head=_short(after.arguments) if is_shape and after else "",
    )
    return _Ranked(cause, first.kind in likely, math.fsum(each.size for each in ordered))


def _operators(differences: Iterable[_Difference]) -> tuple[OperatorChange, ...]:
    """Name each operator once for each kind of difference, over all phases and both passes."""
    together: dict[tuple[CauseKind, str], list[_Difference]] = defaultdict(list)
    for each in differences:
        together[each.kind, each.operator].append(each)
    return tuple(
        OperatorChange(
            kind=kind,
            operator=_short(operator),
            calls_base=math.fsum(each.calls_base for each in of_operator),
            calls_head=math.fsum(each.calls_head for each in of_operator),
        )
        for (kind, operator), of_operator in together.items()
    )


# --- functions without operators that differ


def _of_functions(
    base: StepCounts,
    head: StepCounts,
    varying: _Varying,
    explained: Collection[_Place | None],
    *,
    is_gain: bool,
) -> Iterator[_Ranked]:
    """Yield functions that are called more or less often, and dispatch what they did."""
    before, after = _calls_by_place(base), _calls_by_place(head)
    places = _places(base) | _places(head)
    for place in sorted(before.keys() | after.keys()):
        calls_base, calls_head = before.get(place, 0.0), after.get(place, 0.0)
        is_known = place in explained or place in varying.functions
        if is_known or _is_equal(calls_base, calls_head):
            continue
        cause = Cause(
            kind="calls",
            place=_shortened(places[place]),
            in_head=calls_head > 0,
            line=places[place].line,
            calls_base=calls_base,
            calls_head=calls_head,
        )
        is_likely = (calls_head < calls_base) is is_gain
        yield _Ranked(cause, is_likely, abs(calls_head - calls_base))


def _calls_by_place(side: StepCounts) -> dict[_Place, float]:
    calls: dict[_Place, float] = defaultdict(float)
    for use in side.functions:
        if use.calls > 0:
            calls[_place(use.function)] += use.calls
    return calls


# --- small parts


def _places(side: StepCounts) -> dict[_Place, AuthorFunction]:
    """Return every function that one side names, with its line there."""
    named = (
        *(use.caller for use in side.operators if use.caller and use.calls > 0),
        *(use.function for use in side.functions if use.calls > 0),
    )
    return {_place(function): function for function in named}


def _place(function: AuthorFunction) -> _Place:
    return function.file, function.function


def _calls(uses: Iterable[OperatorUse]) -> float:
    return math.fsum(use.calls for use in uses)


def _is_equal(base: float, head: float) -> bool:
    return math.isclose(base, head, rel_tol=_ROUNDING, abs_tol=_ROUNDING)


def _line(use: OperatorUse | None, function: AuthorFunction | None) -> int:
    """Return the line of an operator; that of its function where the side has no such operator."""
    if use is not None:
        return use.line
    return function.line if function else 0


def _short(text: str) -> str:
    return text[:_MAX_CHARS]


def _shortened(function: AuthorFunction | None) -> AuthorFunction | None:
    if function is None:
        return None
    return msgspec.structs.replace(
        function, file=function.file[:_MAX_PATH_CHARS], function=_short(function.function)
    )
