"""Which functions hold more or less memory at the peak, and which leave some behind in every step.

Bytes are exact: what differs between the launches of one side is no evidence.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from ci_perf.features.explain import order
from ci_perf.features.explain.launches import Launch, Place, Sides, place_of
from ci_perf.features.explain.model import (
    MOST_CAUSE_OPERATORS,
    Allocation,
    Cause,
    CauseKind,
    OperatorChange,
)
from ci_perf.features.explain.order import PossibleCause, shorten, shorten_name
from ci_perf.model.base import LARGEST

# Of the base's peak: less is a peak at another moment.
_LARGE: Final = 0.05

_Line = tuple[Place | None, bool, str]
"""The function that made tensors, whether `build` did, and the operator."""
_Held = tuple[int, int]
"""Bytes at the peak, and those that each step leaves behind."""


def find_causes(sides: Sides, *, is_gain: bool, only_large: bool) -> Iterator[PossibleCause]:
    """Yield each function that holds other bytes, or leaves more behind.

    With `only_large`, of what is held only what moves the base's peak by a twentieth: a peak at
    another moment changes what many functions hold.
    """
    peaks = [launch.profile.memory.peak_bytes for launch in sides.base if launch.profile.memory]
    memories = [launch.profile.memory for launch in sides.launches]
    if None in memories:
        return
    base, head = _read_same(sides.base), _read_same(sides.head)
    lines = base.keys() | head.keys()
    if any(memory and memory.cut for memory in memories):  # a line that is not listed is not known
        lines = base.keys() & head.keys()
    differing: dict[tuple[Place | None, bool], list[_Line]] = defaultdict(list)
    for line in sorted(lines, key=repr):
        before, after = base.get(line, (0, 0)), head.get(line, (0, 0))
        if before is not None and after is not None and before != after:
            differing[line[:2]].append(line)
    for (place, _), of_function in differing.items():
        candidate = _of_function(place, of_function, sides, base, head, is_gain=is_gain)
        is_large = abs(candidate.amount or 0.0) > _LARGE * max(peaks)
        if is_large or candidate.cause.kind == "grows" or not only_large:
            yield candidate


def _read_same(launches: Sequence[Launch]) -> dict[_Line, _Held | None]:
    """Return the bytes of each line; `None` where launches differ."""
    known: list[dict[_Line, _Held]] = []
    for launch in launches:
        held: dict[_Line, _Held] = {}
        for each in _allocations(launch):
            peak, growth = held.get(_line(each), (0, 0))
            held[_line(each)] = peak + each.peak_bytes, growth + each.growth_bytes
        known.append(held)
    lines = {line for held in known for line in held}
    return {
        line: known[0].get(line, (0, 0))
        if len({held.get(line, (0, 0)) for held in known}) == 1
        else None
        for line in lines
    }


def _allocations(launch: Launch) -> Sequence[Allocation]:
    return launch.profile.memory.allocations if launch.profile.memory else ()


def _line(allocation: Allocation) -> _Line:
    place = place_of(allocation.caller) if allocation.caller else None
    return place, allocation.in_build, allocation.operator


def _of_function(
    place: Place | None,
    lines: Sequence[_Line],
    sides: Sides,
    base: dict[_Line, _Held | None],
    head: dict[_Line, _Held | None],
    *,
    is_gain: bool,
) -> PossibleCause:
    """Make one cause of the lines that differ in one function."""
    sums: list[_Held] = []
    for side in (base, head):
        held = [side.get(line) or (0, 0) for line in lines]
        sums.append((sum(each[0] for each in held), sum(each[1] for each in held)))
    (peak_base, growth_base), (peak_head, growth_head) = sums
    grows = growth_head > growth_base
    before, after = (growth_base, growth_head) if grows else (peak_base, peak_head)
    kind: CauseKind = "grows" if grows else "holds_more" if after > before else "holds_less"
    made = [
        [each for each in _allocations(side[0]) if _line(each) in lines]
        for side in (sides.head, sides.base)
    ]
    in_head = bool(made[0]) or place is None or place in sides.head[0].places
    telling = max(made[0] or made[1], key=lambda each: each.peak_bytes + each.growth_bytes)

    def moved(line: _Line) -> int:
        now, then = head.get(line) or (0, 0), base.get(line) or (0, 0)
        return abs(now[0] - then[0]) + abs(now[1] - then[1])

    names = [line[2] for line in sorted(lines, key=lambda line: (-moved(line), line[2]))]
    cause = Cause(
        kind=kind,
        place=shorten_name(telling.caller),
        in_head=in_head,
        line=telling.line,
        operators=tuple(
            OperatorChange(kind=kind, operator=shorten(name), calls_base=0.0, calls_head=0.0)
            for name in names[:MOST_CAUSE_OPERATORS]
        ),
        further=max(0, len(names) - MOST_CAUSE_OPERATORS),
        calls_base=0.0,
        calls_head=0.0,
        bytes_base=min(before, LARGEST),
        bytes_head=min(after, LARGEST),
        in_build=lines[0][1],
    )
    return PossibleCause(
        cause=cause,
        place=place,
        is_likely=kind in (order.SPEEDS if is_gain else order.SLOWS),
        size=0.0,
        amount=float(peak_head - peak_base),
    )
