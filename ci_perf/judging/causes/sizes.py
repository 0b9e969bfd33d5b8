"""How many seconds of a step each exact cause adds: its operators, and its function's own Python.

Nothing is counted twice: an operator's time belongs to the function that dispatches it, one of the
backward pass to the function of its forward operator; a function's own Python is what is left, of
which calls of libraries are a part.
"""

import dataclasses
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from ci_perf.judging.causes.exact import Differences, OperatorDifference
from ci_perf.judging.causes.launches import Place, Sides, is_equal
from ci_perf.judging.causes.possible import (
    PossibleCause,
    have_one_sign,
    mean_of,
)
from ci_perf.judging.causes.seconds import Clock, added

# Of a step: what a function that is called as often must take more of its own to be believed.
NOTABLE: Final = 0.02
# Of a step: a call of a library that takes less moves no row.
_LEAST: Final = 0.001
# Of what differs most in its function: a call of a library that takes less is not named beside it.
_LEAST_NAMED: Final = 0.1


def notable(differences: Differences, sides: Sides, clock: Clock) -> Differences:
    """Leave out calls of libraries that do not explain what their functions take more.

    A function that is called more or less often tells of them (`of_called`) where they do not just
    follow its own calls.
    """
    of_place: dict[Place | None, Sequence[OperatorDifference]] = {}
    of_called: dict[Place | None, Sequence[OperatorDifference]] = {}
    for place, every in differences.of_place.items():
        calls = [each for each in every if each.is_library]
        operators = [each for each in every if not each.is_library]
        if operators or place is None:
            of_place[place] = [*operators, *_named_with(operators, calls, clock)]
            continue
        before, after = sides.base[0].calls_of(place), sides.head[0].calls_of(place)
        if not is_equal(before, after):
            further = [each for each in calls if not _follows(each, before, after)]
            of_called[place] = _largest(further, clock)
        elif _explain(calls, place, clock):
            of_place[place] = _largest(calls, clock)
    return Differences(of_place, of_called)


def _follows(call: OperatorDifference, before: float, after: float) -> bool:
    """Whether a function makes this call as often each time it is called itself."""
    return is_equal(call.calls_base * after, call.calls_head * before) and min(before, after) > 0


def _named_with(
    operators: Sequence[OperatorDifference], calls: Sequence[OperatorDifference], clock: Clock
) -> list[OperatorDifference]:
    """Return the calls that take a notable part of what the operators take."""
    times = [abs(median_s(each, clock) or 0.0) for each in operators]
    least = max(_LEAST * clock.step_s, _LEAST_NAMED * max(times, default=0.0))
    timed = ((each, median_s(each, clock)) for each in calls)
    return [each for each, time in timed if time is None or abs(time) >= least]


def _largest(calls: Sequence[OperatorDifference], clock: Clock) -> list[OperatorDifference]:
    times = [median_s(each, clock) for each in calls]
    if None in times:
        return list(calls)
    least = _LEAST_NAMED * max((abs(time or 0.0) for time in times), default=0.0)
    return [each for each, time in zip(calls, times, strict=True) if abs(time or 0.0) >= least]


def _explain(calls: Sequence[OperatorDifference], place: Place, clock: Clock) -> bool:
    """Whether the calls take more than nothing of a step, and of what their function takes more."""
    seconds = added(_of_operator(each, clock) for each in calls)
    if not seconds:
        return True
    time = abs(statistics.median(seconds))
    own = _added_to_own(place, clock)
    is_other = is_seen(own, clock) and time < _LEAST_NAMED * abs(statistics.median(own))
    return time >= _LEAST * clock.step_s and not is_other


def timed(
    candidates: Iterable[PossibleCause], differences: Differences, sides: Sides, clock: Clock
) -> Iterator[PossibleCause]:
    """Yield the candidates with their seconds, as far as these are known."""
    for candidate in candidates:
        of_place = differences.of_place.get(candidate.place, ())
        operators = [_of_operator(each, clock) for each in of_place]
        calls = [_of_operator(each, clock) for each in of_place if each.is_library]
        own, waiting = _own(candidate.place, calls, sides, clock) if candidate.place else ([], [])
        if candidate.place and not own and 0 < len(calls) < len(operators):
            own = _counted_twice(candidate.place, calls, clock)
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
    """Whether every pair shows notable seconds of one sign; one pair is enough.

    That is enough to say where most of the time goes of a function that does something else.
    """
    is_large = min(map(abs, seconds), default=0.0) > NOTABLE * clock.step_s
    return is_large and have_one_sign(seconds)


def _added_to_own(place: Place, clock: Clock) -> list[float]:
    """Return how much longer a function works by itself or waits, pair by pair."""
    parts = clock.own_deltas(place), clock.waiting_deltas(place)
    return added([part for part in parts if part])


def _own(
    place: Place, calls: Sequence[Sequence[float]], sides: Sides, clock: Clock
) -> tuple[list[float], list[float]]:
    """Return what a function itself takes more, and how much longer it waits.

    Without the `calls` of libraries that differ in it, which may work or wait: then both are one.
    Where it is called as often, pairs must show it: the time of a large function wanders by more
    than a small operator takes.
    """
    own, waiting = clock.own_deltas(place), clock.waiting_deltas(place)
    if calls and all(calls) and own:
        less = [[-seconds for seconds in of_call] for of_call in calls]
        own, waiting = added([_added_to_own(place, clock), *less]), []
    before, after = sides.base[0].calls_of(place), sides.head[0].calls_of(place)
    if is_equal(before, after):
        own, waiting = (
            part if is_seen(part, clock) or _is_large_in_each_pair(part, clock) else []
            for part in (own, waiting)
        )
    elif (
        own
        and not calls  # they are counted already
        and min(before, after) > 0
        and any(part * (after - before) <= 0 for part in own)
    ):
        own = _by_call(place, before, after, clock)
    return own, waiting


def _counted_twice(place: Place, calls: Sequence[Sequence[float]], clock: Clock) -> list[float]:
    """Return what `calls` of libraries take less, pair by pair, than was watched.

    Operators that a library dispatches are its caller's, too. So beside operators, calls take no
    more than what their function takes longer without these.
    """
    watched, longer = added(calls), _added_to_own(place, clock)
    if not watched or not longer:
        return []
    return [
        min(max(seconds, min(most, 0.0)), max(most, 0.0)) - most
        for seconds, most in zip(longer, watched, strict=True)
    ]


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
