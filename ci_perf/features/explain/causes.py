"""Why a row moved: what the head does differently in a step, by function of the repository.

Counts are exact evidence of a difference, and times put the differences in order. No verdict
depends on any of it. Calls of libraries and of built-in functions are told like operators. What
only times show needs three pairs: the same work takes longer.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import msgspec

from ci_perf.features.explain import limits
from ci_perf.features.explain.launches import (
    Key,
    Launch,
    Place,
    Sides,
    find_comparable,
    find_moved,
    is_equal,
)
from ci_perf.features.explain.model import (
    FEWEST_PAIRS,
    MOST_CAUSE_OPERATORS,
    MOST_CAUSES,
    MOST_OTHERS,
    Cause,
    CauseKind,
    Explanation,
    OperatorChange,
    OperatorUse,
    ProfiledPairs,
    shorten,
    shorten_name,
)
from ci_perf.judging.signs import SLOWED, is_by_history_alone
from ci_perf.model.comparison import Change, Row, Verdict

# The rows that are explained: losses come first.
_EXPLAINED: Final = (Verdict.REGRESSED, Verdict.LIKELY_SLOWER, Verdict.IMPROVED)
# What costs time, and what saves it: work that is added, or done on other shapes.
_SLOWS: Final = frozenset({"new", "more", "other_shape", "synchronises", "slower"})
_SPEEDS: Final = frozenset({"gone", "fewer", "other_shape", "faster"})
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
# Of a step: what a function that is called as often must take more of its own to be believed.
_NOTABLE: Final = 0.02
# Of a step: a call of a library that takes less moves no row.
_LEAST: Final = 0.001
# Of the largest difference: what takes less is not named beside it.
_LEAST_NAMED: Final = 0.1
# Of its time: by what equal work must take longer to be called slower.
_LEAST_LONGER: Final = 0.1
# By this factor what only times show may be wrong.
_UNSURE: Final = 3.0


@dataclass(frozen=True, slots=True)
class OperatorDifference:
    """One operator in one function that differs, with its uses on both sides.

    ``moved`` is how many more calls the head makes, by the form of their arguments, ``seconds``
    what they add, pair by pair; none where they were not timed. ``is_library``: it is a call of a
    library or of a built-in function.
    """

    key: Key
    kind: CauseKind
    base: Sequence[OperatorUse]
    head: Sequence[OperatorUse]
    moved: Mapping[str, float]
    is_library: bool = False
    seconds: Sequence[float] = ()

    @property
    def calls(self) -> tuple[float, float]:
        """Return how often a step of the base and of the head calls it."""
        return sum_calls(self.base), sum_calls(self.head)

    @property
    def size(self) -> float:
        """Return how many calls were added or taken away, or have other arguments."""
        if self.kind == "other_shape":
            return math.fsum(map(abs, self.moved.values())) / 2
        return abs(self.calls[1] - self.calls[0])

    @property
    def median_s(self) -> float:
        """Return what it adds to a step; infinite where it was not timed."""
        return statistics.median(self.seconds) if self.seconds else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class PossibleCause:
    """A cause before it has its place among the others.

    ``place`` is its function, whose name is not cut. ``is_likely``: its kind moves a row to the
    side to which this one has moved. ``size`` is how many calls it concerns.
    """

    cause: Cause
    place: Place | None
    is_likely: bool
    size: float


def attach_explanations(
    rows: Sequence[Row], profiled: Iterable[ProfiledPairs], *, on_device: Collection[str] = ()
) -> list[Row]:
    """Explain one row of each workload that was profiled.

    It is the worst one that moved: losses before gains, gates before the rest, times of a step
    before other metrics. No verdict changes. `rows` are worst first; `on_device` names the
    workloads that ran on a GPU.
    """
    sides = {each.workload: each for each in profiled}
    moved: dict[str, list[tuple[int, bool, bool, int]]] = defaultdict(list)
    for index, row in enumerate(rows):
        if not isinstance(row, Change) or row.workload not in sides:
            continue
        if row.verdict in _EXPLAINED and not is_by_history_alone(row):
            rank = _EXPLAINED.index(row.verdict), not row.gate, row.metric not in SLOWED, index
            moved[row.workload].append(rank)
    explained = list(rows)
    for workload, ranks in moved.items():
        *_, index = min(ranks)
        row = rows[index]
        explanation = explain(
            sides[workload],
            is_gain=row.verdict is Verdict.IMPROVED,
            on_device=workload in on_device,
        )
        explained[index] = msgspec.structs.replace(row, explanation=explanation)
    return explained


def explain(profiled: ProfiledPairs, *, is_gain: bool, on_device: bool = False) -> Explanation:
    """Name what the head does differently, the likeliest causes first.

    What differs in one function is one cause. `is_gain` tells in which direction the row has moved.
    The kind of a cause is that of its first operator: kinds that move a row to this side come
    first, then what takes most time.
    """
    pairs, trouble = find_comparable(profiled)
    if trouble:
        return Explanation(trouble=trouble)
    sides = Sides.from_pairs(pairs)
    differences: dict[Place | None, list[OperatorDifference]] = defaultdict(list)
    for each in find_differences(sides, on_device=on_device):
        differences[each.key[0]].append(each)
    possible = [*_find_exact(sides, differences, is_gain=is_gain)]
    if len(pairs) >= FEWEST_PAIRS:
        changed = {each.key for of_place in differences.values() for each in of_place}
        known = {each.place for each in possible}
        possible += _find_slower(sides, changed, known, is_gain=is_gain)
    causes, others = _arrange(possible, _find_only_moved(differences), is_gain=is_gain)
    others = [*causes[MOST_CAUSES:], *others]
    return Explanation(
        causes=tuple(causes[:MOST_CAUSES]),
        others=tuple(others[:MOST_OTHERS]),
        further=max(0, len(others) - MOST_OTHERS),
        pairs=len(pairs),
        varying=len(sides.varying),
        limits=None if is_gain else limits.find_growth(pairs),
        traces=tuple(filter(None, (pairs[0].base.trace_file, pairs[0].head.trace_file))),
    )


# --- what differs


def find_differences(sides: Sides, *, on_device: bool) -> Iterator[OperatorDifference]:
    """Compare what both sides count; `on_device` tells whether operators run on a GPU."""
    base, head = sides.base[0], sides.head[0]
    for is_library in (False, True) if sides.has_functions else (False,):
        for key in sides.list_keys(of_libraries=is_library):
            moved = find_moved(base, head, key)
            if not moved:
                continue
            before, after = base.find_uses(key), head.find_uses(key)
            added = sum_calls(after) - sum_calls(before)
            kind: CauseKind
            if added > 0 and on_device and key[3] in _SYNCHRONISES:
                kind = "synchronises"
            elif not before or not after:
                kind = "gone" if before else "new"
            elif is_equal(sum_calls(before), sum_calls(after)):
                kind = "other_shape"
            else:
                kind = "more" if added > 0 else "fewer"
            seconds = _time(sides, key, moved)
            yield OperatorDifference(key, kind, before, after, moved, is_library, seconds)


def _time(sides: Sides, key: Key, signatures: Collection[str] | None = None) -> list[float]:
    """Return what calls of an operator add: with these arguments, or with all."""
    return sides.find_added_s(partial(Launch.operator_s, key=key, signatures=signatures))


def _find_only_moved(
    differences: Mapping[Place | None, Sequence[OperatorDifference]],
) -> frozenset[Place | None]:
    """Return functions whose operators others dispatch that much less, or more, in turn.

    All functions together do what they did: the code stands elsewhere, or has another name.
    """
    net: dict[tuple[object, ...], float] = defaultdict(float)
    forms: dict[Place | None, list[tuple[object, ...]]] = defaultdict(list)
    for place, of_place in differences.items():
        for each in of_place:
            for signature, calls in each.moved.items():
                form = (*each.key[1:], signature)
                net[form] += calls
                forms[place].append(form)
    return frozenset(
        place
        for place, of_place in forms.items()
        if all(is_equal(net[form], 0.0) for form in of_place)
    )


# --- possible causes


def _find_exact(
    sides: Sides, differences: Mapping[Place | None, Sequence[OperatorDifference]], *, is_gain: bool
) -> Iterator[PossibleCause]:
    """Yield each function that dispatches or calls something else, or is itself called otherwise.

    One that is called more or less often tells of libraries where their calls do not just follow
    its own.
    """
    base, head = sides.base[0], sides.head[0]
    called = base.functions.keys() | head.functions.keys() if sides.has_functions else set()
    for place in sorted({*differences, *called}, key=repr):
        before, after = base.calls_of(place), head.calls_of(place)
        is_called_alike = is_equal(before, after) or (place, "") in sides.varying
        of_place = differences.get(place, ())
        operators = [each for each in of_place if not each.is_library]
        libraries = [each for each in of_place if each.is_library]
        own = sides.find_added_s(partial(Launch.own_s, place=place)) if place else []
        libraries = _keep_notable(operators, libraries, sides)
        if before and after and not is_called_alike:
            libraries = [
                each
                for each in libraries
                if not is_equal(each.calls[0] * after, each.calls[1] * before)
            ]
        if not operators and not libraries and is_called_alike:
            continue
        parts = [each.seconds for each in operators]
        if own and (not is_called_alike or _is_seen(own, sides)):
            parts.append(own)
        elif libraries:
            parts.append(_add_pairs([each.seconds for each in libraries]))
        is_called = not operators and not is_called_alike
        yield _make_cause(
            place,
            sides,
            _order([*operators, *libraries], is_gain=is_gain),
            is_gain=is_gain,
            seconds=_add_pairs(parts),
            calls=(before, after) if is_called else None,
        )


def _keep_notable(
    operators: Sequence[OperatorDifference], libraries: Sequence[OperatorDifference], sides: Sides
) -> list[OperatorDifference]:
    """Return the calls of libraries that are worth a name beside others in their function."""
    times = [abs(each.median_s) for each in operators or libraries if each.seconds]
    least = max(_LEAST * sides.step_s, _LEAST_NAMED * max(times, default=0.0))
    return [each for each in libraries if abs(each.median_s) >= least]


def _find_slower(
    sides: Sides, changed: Collection[Key], known: Collection[Place | None], *, is_gain: bool
) -> Iterator[PossibleCause]:
    """Yield functions that take longer, or less, with equal calls: in operators, or themselves."""
    slower: dict[tuple[Place | None, CauseKind], list[OperatorDifference]] = defaultdict(list)
    for key in sides.list_keys():
        if key not in changed and _is_apart(sides, partial(Launch.operator_s, key=key)):
            seconds = _time(sides, key)
            kind: CauseKind = "slower" if seconds[0] > 0 else "faster"
            uses = sides.head[0].uses[key]
            slower[key[0], kind].append(
                OperatorDifference(key, kind, uses, uses, {}, seconds=seconds)
            )
    for (place, kind), operators in slower.items():
        named = _order(operators, is_gain=is_gain)
        seconds = _add_pairs([each.seconds for each in named])
        yield _make_cause(place, sides, named, is_gain=is_gain, seconds=seconds, slower=kind)
    base, head = sides.base[0].functions, sides.head[0].functions
    for place in sorted(base.keys() & head.keys() - set(known)):
        if _is_apart(sides, partial(Launch.own_s, place=place)):
            seconds = sides.find_added_s(partial(Launch.own_s, place=place))
            yield _make_cause(
                place,
                sides,
                (),
                is_gain=is_gain,
                seconds=seconds,
                calls=(base[place].calls, head[place].calls),
                slower="slower" if seconds[0] > 0 else "faster",
            )


def _is_apart(sides: Sides, read: Callable[[Launch], float | None]) -> bool:
    """Whether all launches of one side take notably longer than all of the other one.

    What wanders by itself is now and then longer in three launches than in three others: the sides
    must lie further apart than the launches of either.
    """
    times = sides.read_times(read)
    if times is None:
        return False
    shorter, longer = sorted(times, key=statistics.fmean)
    within = max(max(side) - min(side) for side in times)
    least = max(within, _NOTABLE * sides.step_s, _LEAST_LONGER * max(shorter))
    return min(longer) - max(shorter) > least


def _is_seen(seconds: Sequence[float], sides: Sides) -> bool:
    """Whether all pairs show notable seconds of one sign."""
    least = _NOTABLE * sides.step_s
    return bool(seconds) and (min(seconds) > least or max(seconds) < -least)


def _order(differences: Sequence[OperatorDifference], *, is_gain: bool) -> list[OperatorDifference]:
    """Put kinds that move a row to this side first, then what takes most time, or most calls."""
    likely = _SPEEDS if is_gain else _SLOWS
    is_timed = all(each.seconds for each in differences)
    return sorted(
        differences,
        key=lambda each: (
            each.kind not in likely,
            -abs(each.median_s) if is_timed else 0.0,
            -each.size,
        ),
    )


def _make_cause(
    place: Place | None,
    sides: Sides,
    named: Sequence[OperatorDifference],
    *,
    is_gain: bool,
    seconds: Sequence[float],
    calls: tuple[float, float] | None = None,
    slower: CauseKind | None = None,
) -> PossibleCause:
    """Make one cause of all that differs in one function, its operators in this order.

    `calls` are those of the function itself, where it is told by them. `slower` is the kind of what
    only times show.
    """
    base, head = sides.base[0].places, sides.head[0].places
    in_head = place is None or place in head
    function = None if place is None else head.get(place) or base[place]
    kind: CauseKind = slower or ("calls" if calls else named[0].kind)
    before, after = calls or tuple(math.fsum(each.calls[at] for each in named) for at in (0, 1))
    telling: list[OperatorUse | None] = [None, None]
    if named and calls is None:
        moved = named[0].moved
        telling = [
            max(uses, key=lambda use: abs(moved.get(use.signature, 0)), default=None)
            for uses in (named[0].base, named[0].head)
        ]
    use = telling[in_head]
    # Each operator has one name for each kind of difference, over all phases and both passes.
    together: dict[tuple[CauseKind, str], list[OperatorDifference]] = defaultdict(list)
    for each in named:
        together[each.kind, each.key[3]].append(each)
    operators = [
        OperatorChange(
            kind=kind_of_it,
            operator=shorten(operator),
            calls_base=math.fsum(each.calls[0] for each in every),
            calls_head=math.fsum(each.calls[1] for each in every),
        )
        for (kind_of_it, operator), every in together.items()
    ]
    arguments = [shorten(each.arguments) if each else "" for each in telling]
    is_shape = kind == "other_shape"
    phases = {each.key[1] for each in named}
    cause = Cause(
        kind=kind,
        evidence="measured" if slower else "exact",
        place=shorten_name(function),
        in_head=in_head,
        line=use.line if use else function.line if function else 0,
        phase=shorten(phases.pop()) if len(phases) == 1 else "",
        is_backward=bool(named) and all(each.key[2] for each in named),
        operators=tuple(operators[:MOST_CAUSE_OPERATORS]),
        further=max(0, len(operators) - MOST_CAUSE_OPERATORS),
        calls_base=before,
        calls_head=after,
        arguments_base=arguments[0] if is_shape else "",
        arguments_head=arguments[1] if is_shape else "",
        delta_s=statistics.median(seconds) if seconds else None,
    )
    is_likely = kind in (_SPEEDS if is_gain else _SLOWS)
    if kind == "calls":
        is_likely = (after < before) is is_gain
    size = abs(after - before) if calls else math.fsum(each.size for each in named)
    return PossibleCause(cause=cause, place=place, is_likely=is_likely, size=size)


# --- their order


def _arrange(
    possible: Iterable[PossibleCause], moved: Collection[Place | None], *, is_gain: bool
) -> tuple[list[Cause], list[Cause]]:
    """Return the causes, the likeliest first, and what has changed besides.

    By what they add to the time of a step, or save of it for a gain. What takes less than a tenth
    of the largest is no cause, nor is code that only stands elsewhere, beside anything else. What
    nobody timed counts as a tenth, and what only times show as a third.
    """
    ordered = sorted(
        possible,
        key=lambda each: (
            not each.is_likely,
            each.cause.evidence == "measured",
            -each.size,
            each.cause.kind == "calls",
            each.place or ("", ""),
        ),
    )
    elsewhere = [each for each in ordered if each.cause.evidence == "exact" and each.place in moved]
    if len(elsewhere) == len(ordered):
        elsewhere = []
    rest = [each for each in ordered if each not in elsewhere]
    sign = -1 if is_gain else 1
    least = _LEAST_NAMED * max((sign * (each.cause.delta_s or 0.0) for each in rest), default=0.0)

    def weigh(each: PossibleCause) -> float:
        if each.cause.delta_s is None:
            return least
        return sign * each.cause.delta_s / (_UNSURE if each.cause.evidence == "measured" else 1.0)

    named = [
        each for each in rest if each.cause.delta_s is None or sign * each.cause.delta_s >= least
    ]
    others = [each for each in rest if each not in named]
    named.sort(key=weigh, reverse=True)
    others.sort(key=lambda each: -abs(each.cause.delta_s or 0.0))
    return [each.cause for each in named], [each.cause for each in (*others, *elsewhere)]


def _add_pairs(parts: Sequence[Sequence[float]]) -> list[float]:
    """Add up seconds by pair; nothing where a part was not timed."""
    return [math.fsum(of_pair) for of_pair in zip(*parts, strict=True)] if all(parts) else []


def sum_calls(uses: Iterable[OperatorUse]) -> float:
    """Return how often a step calls something."""
    return math.fsum(use.calls for use in uses)
