"""Why a row moved: what the head does differently in a step, counted or measured, by function.

Counts are exact evidence of a difference, and times say how much of the change it takes. No verdict
depends on any of it.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from ci_perf.judging import idle
from ci_perf.judging.causes import exact, measured, memory, order, sizes
from ci_perf.judging.causes.exact import Differences
from ci_perf.judging.causes.launches import Place, Sides, comparable
from ci_perf.judging.causes.possible import PossibleCause
from ci_perf.judging.causes.seconds import Clock
from ci_perf.judging.signs import SLOWED, is_by_history_alone
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Row, Verdict
from ci_perf.model.explanation import MOST_CAUSES, MOST_OTHERS, Cause, Explanation
from ci_perf.model.step_profile import ProfiledPair, ProfiledPairs

# The rows that are explained: losses come first.
_EXPLAINED = (Verdict.REGRESSED, Verdict.LIKELY_SLOWER, Verdict.IMPROVED)
_CONTRADICTION = "the profiled runs do not show this change"


def attach(
    rows: Sequence[Row], profiled: Iterable[ProfiledPairs], *, on_device: Collection[str] = ()
) -> list[Row]:
    """Explain one row of time and one of memory of each workload that was profiled.

    Of each it is the worst one that moved: losses before gains, gates before the rest, times of a
    step before other metrics. No verdict changes. `rows` are worst first; `on_device` names the
    workloads that ran on a GPU.
    """
    sides: dict[str, ProfiledPairs] = {}
    for of_workload in profiled:
        sides.setdefault(of_workload.workload, of_workload)
    breaks, compiled = _graph_breaks(rows), _compiled(rows)
    explained = list(rows)
    for index, row in _chosen(rows, sides):
        explanation = explain(
            sides[row.workload],
            is_gain=row.verdict is Verdict.IMPROVED,
            row=row,
            on_device=row.workload in on_device,
            breaks=breaks.get(row.workload),
            is_compiled=row.workload in compiled,
        )
        explained[index] = msgspec.structs.replace(row, explanation=explanation)
    return explained


def _chosen(
    rows: Sequence[Row], workloads: Mapping[str, ProfiledPairs]
) -> Iterator[tuple[int, Change]]:
    """Choose the places of the rows to explain."""

    def place(at: tuple[int, Change]) -> tuple[int, bool, bool]:
        _, row = at
        return _EXPLAINED.index(row.verdict), not row.gate, row.metric not in SLOWED

    moved: dict[tuple[str, bool], list[tuple[int, Change]]] = defaultdict(list)
    for index, row in enumerate(rows):
        is_explained = row.verdict in _EXPLAINED and not is_by_history_alone(row)
        if isinstance(row, Change) and is_explained and row.workload in workloads:
            moved[row.workload, order.is_memory(row)].append((index, row))
    for places in moved.values():
        yield min(places, key=place)


def _compiled(rows: Iterable[Row]) -> frozenset[str]:
    """Return the workloads of which a side compiles graphs."""
    return frozenset(
        row.workload
        for row in rows
        if isinstance(row, Change)
        and row.metric == metrics.GRAPHS.name
        and max(row.head, row.base) > 0
    )


def _graph_breaks(rows: Iterable[Row]) -> dict[str, Change]:
    """Return the rows of workloads whose graphs break more often."""
    return {
        row.workload: row
        for row in rows
        if isinstance(row, Change)
        and row.metric == metrics.GRAPH_BREAKS.name
        and row.head > row.base
    }


def explain(
    profiled: ProfiledPairs,
    *,
    is_gain: bool,
    row: Change | None = None,
    on_device: bool = False,
    breaks: Change | None = None,
    is_compiled: bool = False,
) -> Explanation:
    """Name what the head does differently, the likeliest causes first.

    What differs in one function is one cause. Of a `row` the causes know how much of it they take;
    without one, in which direction a row would have moved (`is_gain`). The kind of a cause is that
    of its first operator: kinds that move a row to this side come first, then those with the most
    calls. `breaks` is the workload's row of graph breaks, where there are more of them. Causes of a
    compiled step have no shares: what is profiled runs as Python.
    """
    pairs, trouble = comparable(profiled)
    if trouble:
        return Explanation(trouble=trouble)
    sides = Sides.of(pairs)
    differences = Differences.of(sides, on_device=on_device)
    clock = Clock.of(sides, differences.keys(), differences.recomputed())
    only_moved = differences.only_moved()
    differences = sizes.notable(differences, sides, clock)
    of_time = [
        *_breaks(breaks, is_gain=is_gain),
        *_exact(sides, differences, clock, is_gain=is_gain),
        *measured.of_operators(sides, differences, clock, is_gain=is_gain),
        *measured.of_functions(sides, differences, clock, is_gain=is_gain),
    ]
    change = order.moved(row, is_compiled=is_compiled) if row else None
    if change and order.contradicts(_step_ratios(pairs), of_time, change):
        return Explanation(trouble=_CONTRADICTION, pairs=len(pairs))
    of_time, elsewhere = _apart(of_time, only_moved)
    of_memory = list(memory.candidates(sides, is_gain=is_gain))
    if row is None:
        of_memory = memory.large(of_memory, sides)
    causes, others = _arranged(of_time, of_memory, row, change, is_gain=is_gain)
    others = [*causes[MOST_CAUSES:], *others, *(each.cause for each in elsewhere)]
    return Explanation(
        causes=tuple(causes[:MOST_CAUSES]),
        others=tuple(others[:MOST_OTHERS]),
        further=max(0, len(others) - MOST_OTHERS),
        pairs=len(pairs),
        varying=sides.varying,
        common_factor=clock.common_factor,
        limits=None if is_gain or (row and order.is_memory(row)) else idle.growth(pairs),
        traces=tuple(filter(None, (pairs[0].base.trace_file, pairs[0].head.trace_file))),
        ranks=pairs[0].head.ranks,
    )


def _exact(
    sides: Sides, differences: Differences, clock: Clock, *, is_gain: bool
) -> Iterator[PossibleCause]:
    different = [
        *exact.of_operators(
            sides, differences, lambda each: sizes.median_s(each, clock), is_gain=is_gain
        ),
        *exact.of_functions(sides, differences, is_gain=is_gain),
    ]
    return sizes.timed(different, differences, sides, clock)


def _apart(
    candidates: list[PossibleCause], only_moved: Collection[Place | None]
) -> tuple[list[PossibleCause], list[PossibleCause]]:
    """Part what changes the row from code that only stands elsewhere, if there is anything else."""
    elsewhere = [each for each in candidates if each.is_exact and each.place in only_moved]
    left = [each for each in candidates if each not in elsewhere]
    return (left, elsewhere) if left else (candidates, [])


def _arranged(
    of_time: Sequence[PossibleCause],
    of_memory: Sequence[PossibleCause],
    row: Change | None,
    change: order.Moved | None,
    *,
    is_gain: bool,
) -> tuple[list[Cause], list[Cause]]:
    """Order the causes of what the row is about; the rest has only changed as well.

    Without a row nobody knows what it would be about: causes of time come before those of memory.
    """
    if row is None:
        time, more = order.arranged(of_time, None, is_gain=is_gain)
        held, small = order.arranged(of_memory, None, is_gain=is_gain)
        return [*time, *held], [*more, *small]
    # Elsewhere than in its row, a peak at another moment changes what many functions hold.
    leaks = [candidate for candidate in of_memory if candidate.cause.kind == "grows"]
    is_memory = order.is_memory(row) and bool(of_memory)
    first, rest = (of_memory, of_time) if is_memory else (of_time, leaks)
    causes, others = order.arranged(first, change, is_gain=is_gain)
    named = {candidate.place for candidate in first}
    besides = [candidate for candidate in rest if candidate.place not in named]
    left, small = order.arranged(besides, None, is_gain=is_gain)
    return causes, [*others, *left, *small]


def _step_ratios(pairs: Iterable[ProfiledPair]) -> list[float]:
    """Return profiled steps, head over base; of the pairs whose launches timed both."""
    steps = ((pair.base.step_s, pair.head.step_s) for pair in pairs)
    return [head / base for base, head in steps if base and head and 0 < head / base < math.inf]


def _breaks(row: Change | None, *, is_gain: bool) -> Iterator[PossibleCause]:
    if row is not None:
        cause = Cause(kind="breaks_graph", place=None, calls_base=row.base, calls_head=row.head)
        yield PossibleCause(cause=cause, is_likely=not is_gain, size=math.inf)
