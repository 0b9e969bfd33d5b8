"""How many seconds of a step each exact cause adds: its operators, and its function's own Python.

Nothing is counted twice: an operator's time belongs to the function that dispatches it, one of the
backward pass to the function of its forward operator; a function's own Python is what is left.
"""

import dataclasses
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from ci_perf.judging.causes.exact import Differences, OperatorDifference
from ci_perf.judging.causes.launches import Place, Sides, is_equal
from ci_perf.judging.causes.possible import (
    FEWEST_PAIRS,
    PossibleCause,
    have_one_sign,
    mean_of,
)
from ci_perf.judging.causes.seconds import Clock, added

# Of a step: what a function that is called as often must take more of its own to be believed.
NOTABLE: Final = 0.02


def timed(
    candidates: Iterable[PossibleCause], differences: Differences, sides: Sides, clock: Clock
) -> Iterator[PossibleCause]:
    """Yield the candidates with their seconds, as far as these are known."""
    for candidate in candidates:
        of_place = differences.of_place.get(candidate.place, ())
        operators = [_of_operator(each, clock) for each in of_place]
        own, waiting = _own(candidate.place, sides, clock) if candidate.place else ([], [])
        waits_in = clock.waits_in(candidate.place) if candidate.place and waiting else ""
        yield dataclasses.replace(
            candidate,
            cause=msgspec.structs.replace(candidate.cause, waits_in=waits_in),
            seconds=added([*operators, *(part for part in (own, waiting) if part)]),
        )


def median_s(difference: OperatorDifference, clock: Clock) -> float | None:
    """Return what a difference adds to a step; `None` where it was not timed."""
    seconds = _of_operator(difference, clock)
    return statistics.median(seconds) if seconds else None


def _of_operator(difference: OperatorDifference, clock: Clock) -> list[float]:
    moved = difference.moved.keys()
    return clock.deltas(lambda timed: timed.operator_s(difference.key, moved))


def is_seen(seconds: Sequence[float], clock: Clock) -> bool:
    """Whether three or more pairs show notable seconds, beyond how far they lie apart."""
    mean = mean_of(seconds)
    return bool(mean and mean.is_resolved and abs(mean.value) > NOTABLE * clock.step_s)


def _is_large_in_each_pair(seconds: Sequence[float], clock: Clock) -> bool:
    """Whether three or more pairs show notable seconds, however far these lie apart.

    That is enough to say where most of the time goes of a function that does something else.
    """
    is_large = min(map(abs, seconds), default=0.0) > NOTABLE * clock.step_s
    return len(seconds) >= FEWEST_PAIRS and is_large and have_one_sign(seconds)


def _own(place: Place, sides: Sides, clock: Clock) -> tuple[list[float], list[float]]:
    """Return what a function itself takes more, and how much longer it waits.

    Where it is called as often, pairs must show it: the time of a large function wanders by more
    than a small operator takes.
    """
    own, waiting = clock.own_deltas(place), clock.waiting_deltas(place)
    before, after = sides.base[0].calls_of(place), sides.head[0].calls_of(place)
    if is_equal(before, after):
        own, waiting = (
            part if is_seen(part, clock) or _is_large_in_each_pair(part, clock) else []
            for part in (own, waiting)
        )
    elif own and min(before, after) > 0 and any(part * (after - before) <= 0 for part in own):
        own = _by_call(place, before, after, clock)
    return own, waiting


def _by_call(place: Place, before: float, after: float, clock: Clock) -> list[float]:
    """Return what more calls take by what a call takes on both sides.

    The own time of a small function lies within what watching it takes; its calls are exact.
    """
    mean_calls = (before + after) / 2
    each = [
        ((base.own_s(place) or 0.0) + (head.own_s(place) or 0.0)) / 2 / mean_calls
        for base, head in zip(clock.base, clock.head, strict=True)
    ]
    return [max(seconds, 0.0) * (after - before) for seconds in each]
