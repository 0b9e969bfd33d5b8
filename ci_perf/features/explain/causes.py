"""Why a row moved: what the head does differently in a step, counted or measured, by function.

Counts are exact evidence of a difference, and times say how much of the change it takes. No verdict
depends on any of it. Calls of libraries and of built-in functions are told like operators. Measured
causes need three pairs that agree: the same work takes longer, or a function waits longer.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from ci_perf.features.explain import limits, memory, order
from ci_perf.features.explain.launches import (
    FEWEST_PAIRS,
    Clock,
    Key,
    Launch,
    Place,
    Sides,
    add_pairs,
    find_comparable,
    find_moved,
    have_one_sign,
    is_equal,
    mean_of_pairs,
)
from ci_perf.features.explain.model import (
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
from ci_perf.features.explain.order import PossibleCause, shorten, shorten_name
from ci_perf.judging.signs import SLOWED, is_by_history_alone
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Row, Verdict

# The rows that are explained: losses come first.
_EXPLAINED: Final = (Verdict.REGRESSED, Verdict.LIKELY_SLOWER, Verdict.IMPROVED)
_CONTRADICTION: Final = "the profiled runs do not show this change"
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
# Of a step: what a function that is called as often must take more of its own to be believed.
_NOTABLE: Final = 0.02
# Of a step: a call of a library that takes less moves no row.
_LEAST: Final = 0.001
# Of what differs most in its function: a call of a library that takes less is not named beside it.
_LEAST_NAMED: Final = 0.1


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
    is_library: bool
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


def attach_explanations(
    rows: Sequence[Row], profiled: Iterable[ProfiledPairs], *, on_device: Collection[str] = ()
) -> list[Row]:
    """Explain one row of time and one of memory of each workload that was profiled.

    Of each it is the worst one that moved: losses before gains, gates before the rest, times of a
    step before other metrics. No verdict changes. `rows` are worst first; `on_device` names the
    workloads that ran on a GPU.
    """
    sides = {each.workload: each for each in profiled}
    breaks: dict[str, Change] = {}
    compiled: set[str] = set()
    moved: dict[tuple[str, bool], list[tuple[tuple[int, bool, bool, int], Change]]]
    moved = defaultdict(list)
    for index, row in enumerate(rows):
        if not isinstance(row, Change) or row.workload not in sides:
            continue
        if row.metric == metrics.GRAPH_BREAKS.name and row.head > row.base:
            breaks[row.workload] = row
        if row.metric == metrics.GRAPHS.name and max(row.head, row.base) > 0:
            compiled.add(row.workload)
        if row.verdict in _EXPLAINED and not is_by_history_alone(row):
            rank = _EXPLAINED.index(row.verdict), not row.gate, row.metric not in SLOWED, index
            moved[row.workload, order.is_memory(row)].append((rank, row))
    explained = list(rows)
    for (workload, _), ranked in moved.items():
        (*_, index), row = min(ranked, key=lambda each: each[0])
        explanation = explain(
            sides[workload],
            is_gain=row.verdict is Verdict.IMPROVED,
            row=row,
            move=order.read_move(row, is_compiled=workload in compiled),
            on_device=workload in on_device,
            breaks=breaks.get(workload),
        )
        explained[index] = msgspec.structs.replace(row, explanation=explanation)
    return explained


def explain(
    profiled: ProfiledPairs,
    *,
    is_gain: bool,
    row: Change | None = None,
    move: order.RowMove | None = None,
    on_device: bool = False,
    breaks: Change | None = None,
) -> Explanation:
    """Name what the head does differently, the likeliest causes first.

    What differs in one function is one cause. Of a `move` the causes know how much of it they take:
    that of a `row`, or of steps that nobody judges; without one, only in which direction it would
    be (`is_gain`). The kind of a cause is that of its first operator: kinds that move a row to this
    side come first, then those with the most calls. `breaks` is the workload's row of graph breaks,
    where there are more of them.
    """
    pairs, trouble = find_comparable(profiled)
    if trouble:
        return Explanation(trouble=trouble)
    sides = Sides.from_pairs(pairs)
    differing = find_differences(sides, on_device=on_device)
    clock = Clock.from_sides(sides, {each.key for each in differing})
    differences: dict[Place | None, list[OperatorDifference]] = defaultdict(list)
    for each in differing:
        if each.is_library:
            seconds = clock.time_callee(each.key).deltas
        else:
            seconds = clock.time_operator(each.key, each.moved.keys()).deltas
        differences[each.key[0]].append(replace(each, seconds=seconds))
    of_time = list(_find_exact(sides, differences, clock, is_gain=is_gain))
    of_time += _find_slower_operators(
        sides, {each.key for each in differing}, clock, is_gain=is_gain
    )
    known = {each.place for each in of_time if each.cause.evidence == "exact"}
    of_time += _find_slower_functions(sides, known, clock, is_gain=is_gain)
    if breaks is not None:
        cause = Cause(
            kind="breaks_graph", place=None, calls_base=breaks.base, calls_head=breaks.head
        )
        of_time.append(PossibleCause(cause=cause, is_likely=not is_gain, size=math.inf))
    if row and move and order.contradicts(pairs, of_time, move):
        return Explanation(trouble=_CONTRADICTION, pairs=len(pairs))
    of_memory = list(memory.find_causes(sides, is_gain=is_gain, only_large=row is None))
    causes, others = _arrange(of_time, of_memory, row, move, differences, is_gain=is_gain)
    others = [*causes[MOST_CAUSES:], *others]
    return Explanation(
        causes=tuple(causes[:MOST_CAUSES]),
        others=tuple(others[:MOST_OTHERS]),
        further=max(0, len(others) - MOST_OTHERS),
        pairs=len(pairs),
        varying=len(sides.varying),
        common_factor=_common_factor(clock),
        limits=None if is_gain or (row and order.is_memory(row)) else limits.find_growth(pairs),
        traces=tuple(filter(None, (pairs[0].base.trace_file, pairs[0].head.trace_file))),
        ranks=pairs[0].head.ranks,
    )


def _arrange(
    of_time: Sequence[PossibleCause],
    of_memory: Sequence[PossibleCause],
    row: Change | None,
    move: order.RowMove | None,
    differences: Mapping[Place | None, Sequence[OperatorDifference]],
    *,
    is_gain: bool,
) -> tuple[list[Cause], list[Cause]]:
    """Order the causes of what the row is about; the rest has only changed as well.

    Code that only stands elsewhere has, too, beside anything else. Without a row nobody knows what
    it would be about: causes of time come before those of memory.
    """
    moved = _find_only_moved(differences)
    elsewhere = [each for each in of_time if each.cause.evidence == "exact" and each.place in moved]
    if len(elsewhere) < len(of_time):
        of_time = [each for each in of_time if each not in elsewhere]
    else:
        elsewhere = []
    if row is None:
        time, more = order.arrange(of_time, move, is_gain=is_gain)
        if not time:  # who asks what differs wants to see it all the same
            time, more = order.arrange(of_time, None, is_gain=is_gain)
        held, small = order.arrange(of_memory, None, is_gain=is_gain)
        return [*time, *held], [*more, *small, *(each.cause for each in elsewhere)]
    # Elsewhere than in its row, a peak at another moment changes what many functions hold.
    leaks = [each for each in of_memory if each.cause.kind == "grows"]
    is_memory = order.is_memory(row) and bool(of_memory)
    first, rest = (of_memory, of_time) if is_memory else (of_time, leaks)
    causes, others = order.arrange(first, move, is_gain=is_gain)
    named = {candidate.place for candidate in first}
    besides = [candidate for candidate in rest if candidate.place not in named]
    left, small = order.arrange(besides, None, is_gain=is_gain)
    return causes, [*others, *left, *small, *(each.cause for each in elsewhere)]


def _common_factor(clock: Clock) -> float | None:
    """Return how much longer everything takes; `None` where pairs agree on no notable factor."""
    logs = [math.log(factor) for factor in clock.factors]
    mean = mean_of_pairs(logs)
    if mean is None or not (mean.is_resolved and have_one_sign(logs)):
        return None
    # Smaller ones come and go with the hour.
    return math.exp(mean.value) if abs(mean.value) >= math.log1p(0.03) else None


# --- what differs


def find_differences(sides: Sides, *, on_device: bool) -> list[OperatorDifference]:
    """Compare what both sides count; `on_device` tells whether operators run on a GPU."""
    base, head = sides.base[0], sides.head[0]
    repeated: dict[Place | None, frozenset[Key]] = {}
    differences: list[OperatorDifference] = []
    for is_library in (False, True):
        if is_library and not sides.has_functions:
            break
        for key in sides.list_keys(of_libraries=is_library):
            moved = find_moved(base, head, key)
            if not moved:
                continue
            if key[2] and key[0] not in repeated:
                repeated[key[0]] = _find_repeated(key[0], base, head)
            before, after = base.find_uses(key), head.find_uses(key)
            added = sum_calls(after) - sum_calls(before)
            kind: CauseKind
            if added > 0 and key in repeated.get(key[0], ()):
                kind = "recomputed"
            elif added > 0 and on_device and key[3] in _SYNCHRONISES:
                kind = "synchronises"
            elif not before or not after:
                kind = "gone" if before else "new"
            elif is_equal(sum_calls(before), sum_calls(after)):
                kind = "other_shape"
            else:
                kind = "more" if added > 0 else "fewer"
            differences.append(OperatorDifference(key, kind, before, after, moved, is_library))
    return differences


def _find_repeated(place: Place | None, base: Launch, head: Launch) -> frozenset[Key]:
    """Return the operators that the head's backward pass runs again, as forward.

    A backward pass shares some operators with the forward one ("aten::mul"), in which both change
    together. A checkpoint repeats most of what its function does forward, which is as it was.
    """
    forward: list[dict[tuple[str, str], float]] = []
    for launch in (base, head):
        calls: dict[tuple[str, str], float] = defaultdict(float)
        for key, uses in launch.uses.items():
            if key[0] == place and not key[2]:
                for use in uses:
                    calls[key[3], use.signature] += use.calls
        forward.append(calls)
    before, after = forward
    again: dict[tuple[str, str], Key] = {}
    for key in head.uses:
        if key[0] == place and key[2]:
            for signature, added in find_moved(base, head, key).items():
                form = key[3], signature
                if added > 0 and form in after and is_equal(after[form], before.get(form, 0.0)):
                    again[form] = key
    is_most = math.fsum(after[form] for form in again) >= _RECOMPUTED * math.fsum(after.values())
    return frozenset(again.values()) if again and is_most else frozenset()


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


# --- exact causes


def _find_exact(
    sides: Sides,
    differences: Mapping[Place | None, Sequence[OperatorDifference]],
    clock: Clock,
    *,
    is_gain: bool,
) -> Iterator[PossibleCause]:
    """Yield each function that dispatches or calls something else, or is itself called otherwise.

    One that is called more or less often tells of libraries where their calls do not just follow
    its own.
    """
    base, head = sides.base[0], sides.head[0]
    called = base.functions.keys() | head.functions.keys() if sides.has_functions else set()
    for place in sorted({*differences, *called}, key=repr):
        before, after = (launch.calls_of(place) if place else 0.0 for launch in (base, head))
        is_called_alike = is_equal(before, after) or (place, "") in sides.varying
        of_place = differences.get(place, ())
        operators = [each for each in of_place if not each.is_library]
        libraries = [each for each in of_place if each.is_library]
        own = clock.own_deltas(place) if place else []
        waiting = clock.time_waiting(place).deltas if place else []
        is_own_seen = is_seen(own, clock)
        if operators or is_called_alike:
            libraries = _keep_notable(operators, libraries, own if is_own_seen else [], clock)
        else:
            libraries = [
                each
                for each in libraries
                if not (before and after)
                or not is_equal(each.calls[0] * after, each.calls[1] * before)
            ]
        if not operators and not libraries and is_called_alike:
            continue
        named = _order([*operators, *libraries], is_gain=is_gain)
        parts = [each.seconds for each in operators]
        if own and (is_own_seen or not is_called_alike):
            parts.append(own)
        elif libraries:
            parts.append(add_pairs(each.seconds for each in libraries))
        is_called = not operators and not is_called_alike
        yield _make_cause(
            place,
            sides,
            named,
            is_gain=is_gain,
            seconds=add_pairs(parts),
            kind="calls" if is_called else None,
            calls=(before, after) if is_called else None,
            waits_in=clock.find_wait(place) if place and is_seen(waiting, clock) else "",
        )


def is_seen(seconds: Sequence[float], clock: Clock) -> bool:
    """Whether pairs show notable seconds: each of them with one sign, or three in the mean."""
    least = _NOTABLE * clock.step_s
    if seconds and min(map(abs, seconds)) > least and have_one_sign(seconds):
        return True
    mean = mean_of_pairs(seconds)
    return bool(mean and mean.is_resolved and abs(mean.value) > least)


def _keep_notable(
    operators: Sequence[OperatorDifference],
    libraries: Sequence[OperatorDifference],
    own: Sequence[float],
    clock: Clock,
) -> list[OperatorDifference]:
    """Return the calls of libraries that are worth a name beside others in their function.

    Alone, they must explain what the function itself takes more.
    """
    times = [abs(each.median_s) for each in operators or libraries if each.seconds]
    least = max(_LEAST * clock.step_s, _LEAST_NAMED * max(times, default=0.0))
    if not operators and own:
        least = max(least, _LEAST_NAMED * abs(statistics.median(own)))
    return [each for each in libraries if abs(each.median_s) >= least]


def _order(differences: Sequence[OperatorDifference], *, is_gain: bool) -> list[OperatorDifference]:
    """Put kinds that move a row to this side first, then what takes most time, or most calls."""
    likely = order.SPEEDS if is_gain else order.SLOWS
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
    kind: CauseKind | None = None,
    calls: tuple[float, float] | None = None,
    is_measured: bool = False,
    waits_in: str = "",
) -> PossibleCause:
    """Make one cause of all that differs in one function, its operators in this order.

    `calls` are those of the function itself, where it is told by them; `kind` is then its own.
    """
    base, head = sides.base[0].places, sides.head[0].places
    in_head = place is None or place in head
    function = None if place is None else head.get(place) or base[place]
    kind = kind or named[0].kind
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
        evidence="measured" if is_measured else "exact",
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
        waits_in=shorten(waits_in),
    )
    is_likely = kind in (order.SPEEDS if is_gain else order.SLOWS)
    if kind == "calls":
        is_likely = (after < before) is is_gain
    size = abs(after - before) if calls else math.fsum(each.size for each in named)
    return PossibleCause(cause=cause, place=place, is_likely=is_likely, size=size, seconds=seconds)


# --- measured causes


def _find_slower_operators(
    sides: Sides, changed: Collection[Key], clock: Clock, *, is_gain: bool
) -> Iterator[PossibleCause]:
    """Yield functions of which operators with equal calls and arguments take longer, or less."""
    slower: dict[tuple[Place | None, CauseKind], list[OperatorDifference]] = defaultdict(list)
    for key in sides.list_keys() if len(sides.base) >= FEWEST_PAIRS else ():
        times = clock.time_operator(key)
        seconds = [] if key in changed else times.deltas
        if _is_large(seconds, clock) and times.is_far(clock.spread):
            kind: CauseKind = "slower" if seconds[0] > 0 else "faster"
            uses = sides.head[0].uses[key]
            slower[key[0], kind].append(
                OperatorDifference(key, kind, uses, uses, {}, is_library=False, seconds=seconds)
            )
    for (place, _), operators in slower.items():
        operators.sort(key=lambda each: -abs(each.median_s))
        seconds = add_pairs(each.seconds for each in operators)
        yield _make_cause(
            place, sides, operators, is_gain=is_gain, seconds=seconds, is_measured=True
        )


def _find_slower_functions(
    sides: Sides, known: Collection[Place | None], clock: Clock, *, is_gain: bool
) -> Iterator[PossibleCause]:
    """Yield functions that themselves take longer or less, or wait longer."""
    for place in sides.list_called_alike() if len(sides.base) >= FEWEST_PAIRS else ():
        own, waiting = clock.own_deltas(place), clock.time_waiting(place).deltas
        if place in known or not _is_large(own, clock):
            continue
        is_waiting = bool(waiting) and 2 * statistics.median(waiting) / statistics.median(own) > 1
        times = clock.time_waiting(place) if is_waiting else clock.time_working(place)
        if times.is_far(clock.function_spread):
            kind: CauseKind = "faster" if own[0] < 0 else "waits" if is_waiting else "slower"
            calls = sides.head[0].calls_of(place)
            yield _make_cause(
                place,
                sides,
                (),
                is_gain=is_gain,
                seconds=own,
                kind=kind,
                calls=(calls, calls),
                is_measured=True,
                waits_in=clock.find_wait(place) if kind == "waits" else "",
            )


def _is_large(seconds: Sequence[float], clock: Clock) -> bool:
    """Whether the median of pairs with one sign is notable."""
    if not seconds or not have_one_sign(seconds):
        return False
    return abs(statistics.median(seconds)) >= _NOTABLE * clock.step_s


def sum_calls(uses: Iterable[OperatorUse]) -> float:
    """Return how often a step calls something."""
    return math.fsum(use.calls for use in uses)
