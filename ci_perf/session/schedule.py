"""Which workloads the base is launched for, whose pair is next, and what a budget allows.

Where no history says whom to suspect, one case of each family comes before all others.
Worst first, until it is decided: a budget that is too small for all then proves some. Once a loss
is proven, whatever is expected to be decided in the fewest seconds comes next. Suspects that six
pairs leave open wait for the others, from look to look. Those with other kernels come before worse
ones that have the same: that changes the order alone.
"""

import math
from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol

from ci_perf.judging.policy import EARLY_PAIRS, LOOKS, MOST_PAIRS
from ci_perf.model.comparison import Comparison
from ci_perf.model.environment import Machine
from ci_perf.model.run import Run
from ci_perf.model.suite import Plan, PlannedWorkload, find_family

# With fewer pairs there is no alarm.
PAIRS_FOR_ALARM = LOOKS[0]


class PairJudge(Protocol):
    """Says, of a run so far, what another pair of launches may decide."""

    @abstractmethod
    def first_launches(self, plan: Plan, machine: Machine) -> dict[str, int]:
        """Return how many launches of the head each workload starts with."""

    @abstractmethod
    def undecided(self, run: Run) -> tuple[dict[str, float], int]:
        """Return the undecided workloads, worst first, and count all suspects.

        With each workload stands how many pairs more are expected to decide it. The suspects share
        the chance of a false alarm.
        """

    def is_blind(self, plan: Plan, machine: Machine) -> bool:
        """Whether launches of the head alone would say nothing, for want of a history."""
        del plan, machine
        return False

    def is_start_open(self, run: Run, workload: str) -> bool:
        """Whether a pair may decide something of how a process of this workload starts."""
        del run, workload
        return True

    def verdict(self, run: Run) -> Comparison | None:
        """Judge what there is, as the report will; `None` where no report follows."""
        del run
        return None

    def accepted(self, suite: str, machine: Machine) -> dict[str, tuple[str, ...]]:
        """Name the metrics, by workload, of which the head has accepted a change."""
        del suite, machine
        return {}


class Kernels(IntEnum):
    """What is known of the kernels of both sides, in the order in which their pairs come."""

    OTHER = 0
    UNKNOWN = 1  # a launch of the base tells
    SAME = 2  # or nothing will tell


@dataclass(frozen=True, slots=True)
class Waiting:
    """A suspect: its pairs so far, those expected to come, and how long a launch takes.

    Before its first pair `warm_ups` launches fill the caches of the base. ``of_proven`` says that
    a case of its family is proven slower: others tell more. ``kernels`` says no more than where to
    look first.
    """

    pairs: int
    expected: float
    launch_s: float
    warm_ups: int = 0
    of_proven: bool = False
    kernels: Kernels = Kernels.SAME

    @property
    def decision_s(self) -> float:
        """How long it is expected to take."""
        return self.launch_s * (2 * self.expected + (0 if self.pairs else self.warm_ups))

    @property
    def stage(self) -> int:
        """What comes first: what is on its way to a look, then what has none of the later ones."""
        if self.pairs not in {0, EARLY_PAIRS, *LOOKS}:
            return -1
        return bisect_right(LOOKS, self.pairs)


def next_workload(waiting: Mapping[str, Waiting], *, is_proven: bool = False) -> str:
    """Return whose pair is next; among equals, the first of `waiting` (worst first).

    `is_proven` says that a loss is proven: others then need not be the worst to come next.
    """

    def turn(name: str) -> tuple[int, bool, Kernels, float]:
        each = waiting[name]
        cost_s = each.decision_s if is_proven or each.stage > 0 else 0.0
        return each.stage, each.of_proven, each.kernels, cost_s

    return min(waiting, key=turn)


def list_telling_cases(
    workloads: Sequence[PlannedWorkload], likely: Collection[str] = ()
) -> list[str]:
    """Name the last case of each family of several; those that are `likely` to move come first.

    Sizes grow: small ones time overhead, and one that just fits a cache has two times.
    """
    cases: dict[tuple[str, str], list[str]] = {}
    for workload in workloads:
        cases.setdefault(find_family(workload.id, workload.parameters), []).append(workload.id)
    telling = [names[-1] for (family, _), names in cases.items() if family and len(names) > 1]
    return sorted(telling, key=lambda name: name not in likely)


def processes(workload: PlannedWorkload) -> int:
    """Return how many processes of a launch import the workload file: all of its ranks."""
    return workload.world_size if workload.launch == "torchrun" else 1


def batches(workloads: Sequence[PlannedWorkload], most: int) -> Iterator[tuple[int, int]]:
    """Cut launches into those whose processes import at once: (first, end), in their order.

    `most` processes at once; launches of more ranks come by themselves.
    """
    first = held = 0
    for position, workload in enumerate(workloads):
        if position > first and held + processes(workload) > most:
            yield first, position
            first, held = position, 0
        held += processes(workload)
    if workloads:
        yield first, len(workloads)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a budget allows, by how long launches took: about so many pairs.

    ``answerable`` of ``suspects`` workloads get the pairs that an alarm needs; all of them would
    need ``enough_s`` seconds, and all pairs that there can be ``most_s``, within the budget.
    ``suspects`` counts workloads.
    """

    pairs: int
    answerable: int
    suspects: int
    enough_s: float
    most_s: float


def forecast(
    launches_s: Mapping[str, float], budget_s: float, warm_ups: Mapping[str, int]
) -> Forecast:
    """Say what the budget allows if no suspect is decided before its last look.

    `launches_s` is how long one launch of each suspect takes, worst first. A pair takes two, and
    so many `warm_ups` come before the first.
    """
    pairs, left_s = dict.fromkeys(launches_s, 0), budget_s
    while waiting := {
        name: Waiting(
            count,
            next(look for look in LOOKS if look > count) - count,
            launches_s[name],
            warm_ups=warm_ups[name],
        )
        for name, count in pairs.items()
        if count < MOST_PAIRS
    }:
        name = next_workload(waiting)
        left_s -= launches_s[name] * (2 if pairs[name] else 2 + warm_ups[name])
        if left_s < 0:
            break
        pairs[name] += 1
    return Forecast(
        pairs=sum(pairs.values()),
        answerable=sum(count >= PAIRS_FOR_ALARM for count in pairs.values()),
        suspects=len(pairs),
        enough_s=math.fsum(
            (warm_ups[name] + 2 * PAIRS_FOR_ALARM) * launch_s
            for name, launch_s in launches_s.items()
        ),
        most_s=budget_s - max(left_s, 0.0),
    )
