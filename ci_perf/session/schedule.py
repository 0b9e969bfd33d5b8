"""Whose pair is launched next, and what a budget allows. Pure.

Depth first: two pairs of one suspect before any of the next one, or six of one that is expected to
need them, and whatever is expected to be decided in the fewest seconds first, so that a small
budget answers as many questions as it can.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ci_perf.judging.policy import LOOKS, MOST_PAIRS
from ci_perf.model.suite import PlannedWorkload

# With fewer pairs there is no alarm.
PAIRS_FOR_ALARM = LOOKS[0]


# A single pair of everybody would spend a budget and answer little.
_AT_ONCE = 2


def at_once(expected: float) -> int:
    """Return how many pairs a suspect has, once it is its turn; `expected` are those it needs."""
    return PAIRS_FOR_ALARM if expected >= PAIRS_FOR_ALARM else _AT_ONCE


@dataclass(frozen=True, slots=True)
class Waiting:
    """A suspect: its pairs so far, those expected to come, a launch's time, and its first turn."""

    pairs: int
    expected: float
    launch_s: float
    at_once: int = _AT_ONCE

    @property
    def decision_s(self) -> float:
        """How long it is expected to take; before the first pair the base's caches are warmed."""
        return self.launch_s * (2 * self.expected + (0 if self.pairs else 1))

    @property
    def stage(self) -> int:
        """What comes first: a first turn that has begun, then new ones, then look after look."""
        if 0 < self.pairs < self.at_once:
            return -1
        return 0 if not self.pairs else 1 + bisect_right(LOOKS, self.pairs)


def next_workload(waiting: Mapping[str, Waiting]) -> str:
    """Return whose pair is next; among equals, the first of `waiting` (worst first)."""
    return min(waiting, key=lambda name: (waiting[name].stage, waiting[name].decision_s))


def batches(workloads: Sequence[PlannedWorkload], most: int) -> Iterator[tuple[int, int]]:
    """Cut launches into those whose processes import at once: (first, end), in their order.

    `most` at once, and only of one file: what the file of another workload does while it is
    imported must not reach this one. Ranks are launched by themselves.
    """
    first = 0
    for position, workload in enumerate(workloads):
        launches = {workload.launch, workloads[first].launch}
        is_alike = workload.file == workloads[first].file and launches == {"process"}
        if position > first and (not is_alike or position - first == most):
            yield first, position
            first = position
    if workloads:
        yield first, len(workloads)


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
    while waiting := {
        name: Waiting(count, next(look for look in LOOKS if look > count) - count, launches_s[name])
        for name, count in pairs.items()
        if count < MOST_PAIRS
    }:
        name = next_workload(waiting)
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
