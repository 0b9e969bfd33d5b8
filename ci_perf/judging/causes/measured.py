"""Causes that only times show: the same work takes longer, or a function waits longer.

Three pairs or more must agree in sign; the difference must be a notable part of the step, and far
beyond how much what did not change lies apart in the same pairs.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from ci_perf.judging.causes.exact import Differences
from ci_perf.judging.causes.launches import Key, Place, Sides
from ci_perf.judging.causes.possible import (
    FEWEST_PAIRS,
    PossibleCause,
    have_one_sign,
    short,
    shortened,
)
from ci_perf.judging.causes.seconds import Clock, LaunchTimes, Seconds, added
from ci_perf.judging.causes.sizes import NOTABLE, is_seen
from ci_perf.model.explanation import (
    MOST_CAUSE_OPERATORS,
    Cause,
    CauseKind,
    OperatorChange,
)

# Standard deviations of what did not change.
_FAR: Final = 4.0
# Of a function's time: what rounding makes of own time that is near 0.
_IMPOSSIBLE: Final = 0.02


def of_operators(
    sides: Sides, differences: Differences, clock: Clock, *, is_gain: bool
) -> Iterator[PossibleCause]:
    """Yield functions of which operators with equal calls and arguments take longer, or less."""
    if len(sides.base) < FEWEST_PAIRS:
        return
    changed = differences.keys()
    by_function: dict[tuple[Place | None, bool], list[tuple[Key, list[float]]]] = defaultdict(list)
    for key in sides.operators():
        seconds = [] if key in changed else _moved(partial(LaunchTimes.operator_s, key=key), clock)
        if seconds:
            by_function[key[0], seconds[0] > 0].append((key, seconds))
    for (place, is_slower), operators in by_function.items():
        operators.sort(key=lambda each: -abs(statistics.median(each[1])))
        yield _of_operators(place, operators, sides, is_slower=is_slower, is_gain=is_gain)


def of_functions(
    sides: Sides, differences: Differences, clock: Clock, *, is_gain: bool
) -> Iterator[PossibleCause]:
    """Yield functions whose own Python takes longer or less, or that wait longer."""
    if len(sides.base) < FEWEST_PAIRS:
        return
    known = differences.of_place.keys()
    spread = clock.functions_spread(sides, differences.keys())
    for place in (each for each in sides.functions_called_alike() if each not in known):
        waiting = _waiting(place, clock)
        own = _own(place, clock, spread)
        if waiting:
            kind: CauseKind = "waits" if waiting[0] > 0 else "faster"
            is_likely = (waiting[0] < 0) is is_gain
            seconds = added([part for part in (waiting, own) if part])
            yield _of_function(place, kind, seconds, sides, clock, is_likely=is_likely)
        elif own:
            is_likely = (own[0] < 0) is is_gain
            kind = "slower" if own[0] > 0 else "faster"
            yield _of_function(place, kind, own, sides, clock, is_likely=is_likely)


# --- what is believed


def _moved(seconds: Seconds, clock: Clock) -> list[float]:
    """Return what the head adds, pair by pair; nothing where it may be noise."""
    deltas = clock.deltas(seconds)
    is_far = _is_far(clock.log_ratios(seconds), clock.spread)
    is_far = is_far and clock.are_apart(seconds)
    return deltas if is_far and _is_notable(deltas, clock) else []


def _is_far(logs: Sequence[float], spread: float) -> bool:
    """Whether a ratio is far beyond a spread, and in no pair within half of that."""
    if not logs:
        return False
    least = min(map(abs, logs))
    return abs(statistics.median(logs)) > _FAR * spread and least > _FAR / 2 * spread


def _own(place: Place, clock: Clock, spread: float) -> list[float]:
    """Return what a function's own Python takes more, beside its operators.

    Less than nothing beside them shows that watching the function cost more than it takes.
    """
    launches = (*clock.base, *clock.head)
    least = [(timed.own_s(place) or 0.0, timed.working_s(place) or 0.0) for timed in launches]
    if any(own < -_IMPOSSIBLE * working for own, working in least):
        return []
    own = clock.own_deltas(place)
    is_far = _is_far(clock.function_log_ratios(place), spread) and clock.function_is_apart(place)
    return own if is_far and _is_notable(own, clock) else []


def _waiting(place: Place, clock: Clock) -> list[float]:
    """Return how much longer a function waits: by far in each pair, or for a reason with a name."""
    waiting = clock.waiting_deltas(place)
    is_known = bool(clock.waits_in(place)) or is_seen(waiting, clock)
    is_far = is_known and _is_far_apart(place, clock) and clock.waiting_is_apart(place)
    return waiting if is_far and _is_notable(waiting, clock) else []


def _is_far_apart(place: Place, clock: Clock) -> bool:
    """Whether the side that waits longer does so by more than a fourth in all of its launches."""
    sides = [
        [timed.waiting_s(place) or 0.0 for timed in launches]
        for launches in (clock.base, clock.head)
    ]
    shorter, longer = sorted(sides, key=statistics.fmean)
    return min(longer) >= 1.25 * max(shorter)


def _is_notable(deltas: Sequence[float], clock: Clock) -> bool:
    is_large = abs(statistics.median(deltas)) >= NOTABLE * clock.step_s if deltas else False
    return is_large and have_one_sign(deltas)


# --- their causes


def _of_operators(
    place: Place | None,
    operators: Sequence[tuple[Key, list[float]]],
    sides: Sides,
    *,
    is_slower: bool,
    is_gain: bool,
) -> PossibleCause:
    head = sides.head[0]
    uses = [use for key, _ in operators for use in head.uses[key]]
    kind: CauseKind = "slower" if is_slower else "faster"
    calls: dict[str, float] = defaultdict(float)
    for use in uses:
        calls[use.operator] += use.calls
    phases = {key[1] for key, _ in operators}
    named = tuple(
        OperatorChange(kind=kind, operator=short(name), calls_base=count, calls_head=count)
        for name, count in calls.items()
    )
    total = math.fsum(calls.values())
    cause = Cause(
        kind=kind,
        evidence="measured",
        place=shortened(uses[0].caller),
        line=uses[0].line,
        phase=short(operators[0][0][1]) if len(phases) == 1 else "",
        is_backward=all(key[2] for key, _ in operators),
        operators=named[:MOST_CAUSE_OPERATORS],
        further=max(0, len(named) - MOST_CAUSE_OPERATORS),
        calls_base=total,
        calls_head=total,
    )
    return PossibleCause(
        cause=cause,
        place=place,
        is_likely=is_slower is not is_gain,
        size=total,
        seconds=added(seconds for _, seconds in operators),
    )


def _of_function(
    place: Place,
    kind: CauseKind,
    seconds: Sequence[float],
    sides: Sides,
    clock: Clock,
    *,
    is_likely: bool,
) -> PossibleCause:
    function = sides.head[0].functions[place][0].function
    calls = sides.head[0].calls_of(place)
    cause = Cause(
        kind=kind,
        evidence="measured",
        place=shortened(function),
        line=function.line,
        calls_base=calls,
        calls_head=calls,
        waits_in=short(clock.waits_in(place)) if kind == "waits" else "",
    )
    return PossibleCause(cause=cause, place=place, is_likely=is_likely, size=calls, seconds=seconds)
