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
from ci_perf.judging.signs import SLOWED, is_by_history_alone
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Comparison, Row, Verdict
from ci_perf.model.environment import GpuMachine
from ci_perf.model.explanation import (
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
)
from ci_perf.model.metrics import Unit
from ci_perf.model.summary import Summary

# The rows that are explained: losses come first.
_EXPLAINED: Final = (Verdict.REGRESSED, Verdict.LIKELY_SLOWER, Verdict.IMPROVED)
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
    what they add, pair by pair; none where they were not timed.
    """

    key: Key
    kind: CauseKind
    base: Sequence[OperatorUse]
    head: Sequence[OperatorUse]
    moved: Mapping[str, float]
    seconds: Sequence[float]

    @property
    def is_library(self) -> bool:
        """Whether it is a call of a library or of a built-in function."""
        return "" in self.moved

    @property
    def calls(self) -> tuple[float, float]:
        """Return how often a step of the base and of the head calls it."""
        return sum_calls(self.base), sum_calls(self.head)

    @property
    def median_s(self) -> float:
        """Return what it adds to a step; 0 where it was not timed."""
        return statistics.median(self.seconds) if self.seconds else 0.0


def explain_comparison(comparison: Comparison, head: Summary) -> Comparison:
    """Return a comparison with causes, by what was profiled in the session of its pairs."""
    on_device = {each.workload for each in head.subjects if isinstance(each.machine, GpuMachine)}
    profiled = head.profiled if head.interleaved else ()
    rows = attach_explanations(comparison.rows, profiled, on_device=on_device)
    return msgspec.structs.replace(comparison, rows=tuple(rows))


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
        is_memory = isinstance(row, Change) and metrics.metric_of(row.metric).unit is Unit.BYTE
        explanation = explain(
            sides[workload],
            is_gain=row.verdict is Verdict.IMPROVED,
            on_device=workload in on_device,
            is_time=not is_memory,
        )
        explained[index] = msgspec.structs.replace(row, explanation=explanation)
    return explained


def explain(
    profiled: ProfiledPairs, *, is_gain: bool, on_device: bool = False, is_time: bool = True
) -> Explanation:
    """Name what the head does differently, the likeliest causes first.

    What differs in one function is one cause. `is_gain` tells in which direction the row has moved:
    what adds most to a step comes first, or what saves most. `on_device` tells whether operators
    run on a GPU. What only times show is left out where not `is_time`.
    """
    pairs, trouble = find_comparable(profiled)
    if trouble:
        return Explanation(trouble=trouble)
    sides, sign = Sides.from_pairs(pairs), -1 if is_gain else 1
    differences: dict[Place | None, list[OperatorDifference]] = defaultdict(list)
    for each in find_differences(sides, on_device=on_device):
        differences[each.key[0]].append(each)
    exact = dict(_find_exact(sides, differences, sign))
    measured: list[Cause] = []
    if is_time and len(pairs) >= FEWEST_PAIRS:
        changed = {each.key for of_place in differences.values() for each in of_place}
        measured += _find_slower(sides, changed, exact.keys(), sign)
    moved = _find_only_moved(differences)
    elsewhere = [cause for place, cause in exact.items() if place in moved]
    rest = [cause for place, cause in exact.items() if place not in moved]
    if not rest and not measured:
        rest, elsewhere = elsewhere, []
    causes, others = _arrange([*rest, *measured], sign)
    others = [*causes[MOST_CAUSES:], *others, *elsewhere]
    return Explanation(
        causes=tuple(causes[:MOST_CAUSES]),
        others=tuple(others[:MOST_OTHERS]),
        further=max(0, len(others) - MOST_OTHERS),
        pairs=len(pairs),
        varying=len(sides.varying),
        limits=limits.find_growth(pairs) if is_time and not is_gain else None,
        traces=tuple(filter(None, (pairs[0].base.trace_file, pairs[0].head.trace_file))),
    )


# --- what differs


def find_differences(sides: Sides, *, on_device: bool) -> Iterator[OperatorDifference]:
    """Compare what both sides count."""
    base, head = sides.base[0], sides.head[0]
    for key in sides.list_keys():
        moved = find_moved(base, head, key)
        if not moved:
            continue
        before, after = base.uses.get(key, []), head.uses.get(key, [])
        added = sum_calls(after) - sum_calls(before)
        kind: CauseKind
        if added > 0 and on_device and key[2] in _SYNCHRONISES:
            kind = "synchronises"
        elif not before or not after:
            kind = "gone" if before else "new"
        elif is_equal(sum_calls(before), sum_calls(after)):
            kind = "other_shape"
        else:
            kind = "more" if added > 0 else "fewer"
        seconds = sides.find_added_s(partial(Launch.operator_s, key=key, signatures=moved.keys()))
        yield OperatorDifference(key, kind, before, after, moved, seconds)


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


# --- causes


def _find_exact(
    sides: Sides, differences: Mapping[Place | None, Sequence[OperatorDifference]], sign: int
) -> Iterator[tuple[Place | None, Cause]]:
    """Yield each function that dispatches or calls something else, or is itself called otherwise.

    One that is called more or less often tells of libraries where their calls do not just follow
    its own.
    """
    base, head = sides.base[0], sides.head[0]
    for place in sorted({*differences, *base.functions, *head.functions}, key=repr):
        before, after = base.calls_of(place), head.calls_of(place)
        is_called_alike = is_equal(before, after) or (place, "") in sides.varying
        of_place = differences.get(place, ())
        operators = [each for each in of_place if not each.is_library]
        libraries = _keep_notable(of_place, sides)
        if before and after and not is_called_alike:
            libraries = [
                each
                for each in libraries
                if not is_equal(each.calls[0] * after, each.calls[1] * before)
            ]
        if not operators and not libraries and is_called_alike:
            continue
        parts = [each.seconds for each in operators]
        own = sides.find_added_s(partial(Launch.own_s, place=place)) if place else []
        if own and (not is_called_alike or _is_notable(own, sides)):
            parts.append(own)
        else:  # they are a part of the function's own time
            parts += [each.seconds for each in libraries]
        is_called = not operators and not is_called_alike
        named = _order([*operators, *libraries], sign)
        calls = (before, after) if is_called else None
        yield place, _make_cause(sides, place, named, _add_pairs(parts), calls=calls)


def _keep_notable(
    differences: Sequence[OperatorDifference], sides: Sides
) -> list[OperatorDifference]:
    """Return the calls of libraries that are worth a name beside others in their function."""
    libraries = [each for each in differences if each.is_library]
    operators = [each for each in differences if not each.is_library]
    largest = max((abs(each.median_s) for each in operators or libraries), default=0.0)
    least = max(_LEAST * sides.step_s, _LEAST_NAMED * largest)
    return [each for each in libraries if not each.seconds or abs(each.median_s) >= least]


def _is_notable(seconds: Sequence[float], sides: Sides) -> bool:
    """Whether all pairs show notable seconds of one sign."""
    least = _NOTABLE * sides.step_s
    return min(seconds) > least or max(seconds) < -least


def _find_slower(
    sides: Sides, changed: Collection[Key], known: Collection[Place | None], sign: int
) -> Iterator[Cause]:
    """Yield functions that take longer, or less, with equal calls: in operators, or themselves."""
    slower: dict[tuple[Place | None, CauseKind], list[OperatorDifference]] = defaultdict(list)
    for key in sides.list_keys():
        read = partial(Launch.operator_s, key=key)
        uses = sides.head[0].uses.get(key, [])
        if key not in changed and all(use.signature for use in uses) and _is_apart(sides, read):
            seconds = sides.find_added_s(read)
            kind: CauseKind = "slower" if seconds[0] > 0 else "faster"
            difference = OperatorDifference(key, kind, uses, uses, {}, seconds)
            slower[key[0], kind].append(difference)
    for (place, kind), operators in slower.items():
        seconds = _add_pairs([each.seconds for each in operators])
        yield _make_cause(sides, place, _order(operators, sign), seconds, measured=kind)
    base, head = sides.base[0].functions, sides.head[0].functions
    for place in sorted(base.keys() & head.keys() - set(known)):
        read = partial(Launch.own_s, place=place)
        if _is_apart(sides, read):
            seconds = sides.find_added_s(read)
            calls = base[place].calls, head[place].calls
            kind = "slower" if seconds[0] > 0 else "faster"
            yield _make_cause(sides, place, (), seconds, calls=calls, measured=kind)


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


def _order(differences: Sequence[OperatorDifference], sign: int) -> list[OperatorDifference]:
    """Put first what adds most time (saves, in a gain), or most calls where one is not timed."""
    is_timed = all(each.seconds for each in differences)

    def weigh(each: OperatorDifference) -> tuple[float, float]:
        before, after = each.calls
        return sign * each.median_s if is_timed else 0.0, sign * (after - before)

    return sorted(differences, key=weigh, reverse=True)


def _make_cause(
    sides: Sides,
    place: Place | None,
    named: Sequence[OperatorDifference],
    seconds: Sequence[float],
    *,
    calls: tuple[float, float] | None = None,
    measured: CauseKind | None = None,
) -> Cause:
    """Make one cause of all that differs in one function, its operators in this order.

    `calls` are those of the function itself, where it is told by them. `measured` is the kind of
    what only times show.
    """
    base, head = sides.base[0].places, sides.head[0].places
    in_head = place is None or place in head
    function = None if place is None else head.get(place) or base[place]
    kind: CauseKind = measured or ("calls" if calls else named[0].kind)
    before, after = calls or tuple(math.fsum(each.calls[at] for each in named) for at in (0, 1))
    telling: list[OperatorUse | None] = [None, None]
    if named and calls is None:
        moved = named[0].moved
        telling = [
            max(uses, key=lambda use: abs(moved.get(use.signature, 0)), default=None)
            for uses in (named[0].base, named[0].head)
        ]
    use = telling[in_head]
    # Each operator has one name for each kind of difference, over both passes.
    together: dict[tuple[CauseKind, str], list[OperatorDifference]] = defaultdict(list)
    for each in named:
        together[each.kind, each.key[2]].append(each)
    operators = [
        OperatorChange(
            kind=kind_of_it,
            operator=operator,
            calls_base=math.fsum(each.calls[0] for each in every),
            calls_head=math.fsum(each.calls[1] for each in every),
        )
        for (kind_of_it, operator), every in together.items()
    ]
    arguments = [each.arguments if each else "" for each in telling]
    is_shape = kind == "other_shape"
    return Cause(
        kind=kind,
        evidence="measured" if measured else "exact",
        place=function,
        in_head=in_head,
        line=use.line if use else function.line if function else 0,
        is_backward=bool(named) and all(each.key[1] for each in named),
        operators=tuple(operators[:MOST_CAUSE_OPERATORS]),
        further=max(0, len(operators) - MOST_CAUSE_OPERATORS),
        calls_base=before,
        calls_head=after,
        arguments_base=arguments[0] if is_shape else "",
        arguments_head=arguments[1] if is_shape else "",
        delta_s=statistics.median(seconds) if seconds else None,
    )


# --- their order


def _arrange(possible: Iterable[Cause], sign: int) -> tuple[list[Cause], list[Cause]]:
    """Return the causes, the likeliest first, and what has changed besides.

    By what they add to the time of a step, or save of it for a gain (`sign` -1). What takes less
    than a tenth of the largest is no cause. What nobody timed counts as a tenth, and what only
    times show as a third.
    """
    every = list(possible)
    least = _LEAST_NAMED * max((sign * (each.delta_s or 0.0) for each in every), default=0.0)

    def weigh(cause: Cause) -> tuple[float, float]:
        added_s = least if cause.delta_s is None else sign * cause.delta_s
        unsure = _UNSURE if cause.evidence == "measured" else 1.0
        return added_s / unsure, sign * (cause.calls_head - cause.calls_base)

    causes = [each for each in every if each.delta_s is None or sign * each.delta_s >= least]
    others = [each for each in every if each not in causes]
    causes.sort(key=weigh, reverse=True)
    others.sort(key=lambda each: -abs(each.delta_s or 0.0))
    return causes, others


def _add_pairs(parts: Sequence[Sequence[float]]) -> list[float]:
    """Add up seconds by pair; nothing where a part was not timed."""
    return [math.fsum(of_pair) for of_pair in zip(*parts, strict=True)] if all(parts) else []


def sum_calls(uses: Iterable[OperatorUse]) -> float:
    """Return how often a step calls something."""
    return math.fsum(use.calls for use in uses)
