"""Which functions hold more or less memory at the peak, and which leave some behind in every step.

Bytes are exact: what differs between the launches of one side is no evidence.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ci_perf.judging.causes.launches import Place, ProfiledLaunch, Sides, place_of
from ci_perf.judging.causes.possible import SLOWS, SPEEDS, PossibleCause, short, shortened
from ci_perf.model.base import LARGEST
from ci_perf.model.explanation import MOST_CAUSE_OPERATORS, Cause, CauseKind, OperatorChange
from ci_perf.model.step_profile import Allocation

# Of the base's peak: less is a peak at another moment.
_LARGE = 0.05

_Line = tuple[Place | None, bool, str]
"""The function that made tensors, whether `build` did, and the operator."""


@dataclass(slots=True)
class _Held:
    """The bytes of some lines of one side: at the peak, and left behind by each step."""

    peak: int = 0
    growth: int = 0
    largest: Allocation | None = None

    def add(self, other: "_Held") -> None:
        self.peak += other.peak
        self.growth += other.growth
        if other.largest and (not self.largest or _size(other.largest) > _size(self.largest)):
            self.largest = other.largest


@dataclass(slots=True)
class _Function:
    """One function on both sides: what differs, operator by operator."""

    base: _Held = field(default_factory=_Held)
    head: _Held = field(default_factory=_Held)
    operators: dict[str, int] = field(default_factory=dict)


def candidates(sides: Sides, *, is_gain: bool) -> Iterator[PossibleCause]:
    """Yield one candidate of each function that holds other bytes, or leaves more behind."""
    if any(launch.memory is None for launch in (*sides.base, *sides.head)):
        return
    base, head = _same(sides.base), _same(sides.head)
    if _is_cut(sides.base) or _is_cut(sides.head):  # a line that is not listed is not known
        listed = base.keys() & head.keys()
        base, head = ({line: of[line] for line in listed} for of in (base, head))
    in_head = sides.head[0].places()
    for (place, in_build), function in _differing(base, head).items():
        if function.operators:
            yield _candidate(
                place,
                function,
                in_head=place is None or place in in_head or function.head.largest is not None,
                in_build=in_build,
                is_gain=is_gain,
            )


def large(candidates: Iterable[PossibleCause], sides: Sides) -> list[PossibleCause]:
    """Keep what each step leaves behind, and what moves the base's peak by a twentieth.

    A peak at another moment changes what many functions hold.
    """
    peaks = [launch.memory.peak_bytes for launch in sides.base if launch.memory]
    least = _LARGE * max(peaks, default=0)

    def is_large(cause: Cause) -> bool:
        moved = abs((cause.bytes_head or 0) - (cause.bytes_base or 0))
        return cause.kind == "grows" or moved > least

    return [candidate for candidate in candidates if is_large(candidate.cause)]


def _differing(
    base: Mapping[_Line, _Held | None], head: Mapping[_Line, _Held | None]
) -> dict[tuple[Place | None, bool], _Function]:
    functions: dict[tuple[Place | None, bool], _Function] = defaultdict(_Function)
    for line in sorted(base.keys() | head.keys(), key=repr):
        before, after = base.get(line, _Held()), head.get(line, _Held())
        if before is None or after is None:
            continue
        if (before.peak, before.growth) != (after.peak, after.growth):
            function = functions[line[0], line[1]]
            function.base.add(before)
            function.head.add(after)
            moved = abs(after.peak - before.peak) + abs(after.growth - before.growth)
            function.operators[line[2]] = moved
    return functions


def _same(launches: Sequence[ProfiledLaunch]) -> Mapping[_Line, _Held | None]:
    """Return the bytes of each line; `None` where launches differ."""
    known = [_lines(launch) for launch in launches]
    lines = {line for launch in known for line in launch}
    same: dict[_Line, _Held | None] = {}
    for line in lines:
        of_line = [launch.get(line, _Held()) for launch in known]
        is_same = len({(held.peak, held.growth) for held in of_line}) == 1
        same[line] = of_line[0] if is_same else None
    return same


def _is_cut(launches: Sequence[ProfiledLaunch]) -> bool:
    return any(launch.memory and launch.memory.cut for launch in launches)


def _lines(launch: ProfiledLaunch) -> dict[_Line, _Held]:
    lines: dict[_Line, _Held] = defaultdict(_Held)
    for allocation in launch.memory.allocations if launch.memory else ():
        place = place_of(allocation.caller) if allocation.caller else None
        held = _Held(allocation.peak_bytes, allocation.growth_bytes, allocation)
        lines[place, allocation.in_build, allocation.operator].add(held)
    return lines


def _candidate(
    place: Place | None, function: _Function, *, in_head: bool, in_build: bool, is_gain: bool
) -> PossibleCause:
    grows = function.head.growth > function.base.growth
    before = function.base.growth if grows else function.base.peak
    after = function.head.growth if grows else function.head.peak
    kind: CauseKind = "grows" if grows else "holds_more" if after > before else "holds_less"
    telling = (function.head.largest or function.base.largest) if in_head else function.base.largest
    names = sorted(function.operators, key=lambda name: (-function.operators[name], name))
    cause = Cause(
        kind=kind,
        place=shortened(telling.caller if telling else None),
        in_head=in_head,
        line=telling.line if telling else 0,
        operators=tuple(
            OperatorChange(kind=kind, operator=short(name), calls_base=0.0, calls_head=0.0)
            for name in names[:MOST_CAUSE_OPERATORS]
        ),
        further=max(0, len(names) - MOST_CAUSE_OPERATORS),
        calls_base=0.0,
        calls_head=0.0,
        bytes_base=min(before, LARGEST),
        bytes_head=min(after, LARGEST),
        in_build=in_build,
    )
    return PossibleCause(
        cause=cause,
        place=place,
        is_likely=kind in (SPEEDS if is_gain else SLOWS),
        size=0.0,
        amount=float(function.head.peak - function.base.peak),
    )


def _size(allocation: Allocation) -> int:
    return allocation.peak_bytes + allocation.growth_bytes
