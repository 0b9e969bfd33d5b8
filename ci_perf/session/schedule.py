"""Whose pair is launched next, and what a budget allows. Pure.

Depth first: the suspect that looks worst has as many pairs as the first look for an alarm asks
before the next one has any, so that a small budget answers at least one question.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ci_perf.judging.policy import LOOKS, MOST_PAIRS

# With fewer pairs there is no alarm.
PAIRS_FOR_ALARM = LOOKS[0]


def next_workload(order: Sequence[str], pairs: Mapping[str, int]) -> str:
    """Return the first of `order` (worst first) among those that have passed the fewest looks.

    `pairs` counts the pairs that each has had.
    """
    return min(order, key=lambda workload: bisect_right(LOOKS, pairs[workload]))


def batches(apart: Sequence[bool], most: int) -> Iterator[tuple[int, int]]:
    """Cut launches into those whose processes import at once: (first, end), in their order.

    `most` at once; what is set `apart` is launched by itself.
    """
    first = 0
    for position, is_apart in enumerate(apart):
        if position > first and (is_apart or apart[first] or position - first == most):
            yield first, position
            first = position
    if first < len(apart):
        yield first, len(apart)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a budget allows, by how long launches took: about so many pairs.

    ``answerable`` of ``suspects`` workloads get the pairs that an alarm needs; all of them would
    need ``enough_s`` seconds. ``suspects`` counts workloads.
    """

    pairs: int
    answerable: int
    suspects: int
    enough_s: float


def forecast(launches_s: Mapping[str, float], budget_s: float) -> Forecast:
    """Say what the budget allows if no suspect is decided before its last look.

    `launches_s` is how long one launch of each suspect takes, worst first. A pair takes two, and
    the base's first launch only warms its caches.
    """
    pairs, left_s = dict.fromkeys(launches_s, 0), budget_s
    while waiting := [name for name, count in pairs.items() if count < MOST_PAIRS]:
        name = next_workload(waiting, pairs)
        left_s -= launches_s[name] * (2 if pairs[name] else 3)
        if left_s < 0:
            break
        pairs[name] += 1
    return Forecast(
        pairs=sum(pairs.values()),
        answerable=sum(count >= PAIRS_FOR_ALARM for count in pairs.values()),
        suspects=len(pairs),
        enough_s=(1 + 2 * PAIRS_FOR_ALARM) * math.fsum(launches_s.values()),
    )
