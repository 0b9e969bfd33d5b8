"""Divide the workloads of a suite among nodes: the longest first, each to the least loaded shard.

That is Graham's rule of the longest processing time: no division ends in less than 3/4 of its time
("Bounds on multiprocessing timing anomalies", SIAM J. Appl. Math. 1969).
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ci_perf.judging.launch_numbers import WORLD_SIZE
from ci_perf.model.suite import PlannedWorkload

# A launch of which nothing is known where nothing is known of any other one either: importing torch
# takes 2 to 10 s, and a protocol times for 20 s at most. With equal lengths only the number counts.
UNKNOWN_LAUNCH_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """The workloads of one node, in the order of the suite, and how long the head takes."""

    workloads: tuple[str, ...]
    expected_s: float


def divide(
    workloads: Sequence[PlannedWorkload],
    launches_s: Mapping[str, float],
    shards: int,
) -> list[Shard]:
    """Divide workloads among so many shards; `launches_s` says how long one launch takes, if known.

    Workloads that are compared within a session stay together. There may be fewer of such groups
    than shards: none is empty.
    """
    expected_s = _estimate_seconds(workloads, launches_s)
    groups = sorted(together(workloads), key=lambda names: -_sum(names, expected_s))
    chosen: list[list[str]] = [[] for _ in range(shards)]
    loads = [0.0] * shards
    for names in groups:
        least = loads.index(min(loads))
        chosen[least] += names
        loads[least] += _sum(names, expected_s)
    position = {workload.id: i for i, workload in enumerate(workloads)}
    return [
        Shard(workloads=tuple(sorted(names, key=position.__getitem__)), expected_s=load)
        for names, load in zip(chosen, loads, strict=True)
        if names
    ]


def _estimate_seconds(
    workloads: Iterable[PlannedWorkload], launches_s: Mapping[str, float]
) -> dict[str, float]:
    """Return how long the launches of each workload take: where unknown, as long as most others."""
    usual_s = statistics.median(launches_s.values()) if launches_s else UNKNOWN_LAUNCH_S
    return {
        workload.id: launches_s.get(workload.id, usual_s) * workload.protocol.processes
        for workload in workloads
    }


def together(workloads: Iterable[PlannedWorkload]) -> list[list[str]]:
    """Return ids that stay together: scaling efficiency, and the break-even of a compiled workload.

    Both compare a workload with itself at another world size, or with a switch turned off, in the
    same session.
    """
    groups: dict[tuple[object, ...], list[str]] = {}
    for workload in workloads:
        switches = {name for name, value in workload.parameters.items() if _is_switch(name, value)}
        parts = [part for part in workload.id.split(".") if part.partition("=")[0] not in switches]
        others = tuple(
            sorted(
                (name, str(v)) for name, v in workload.parameters.items() if name not in switches
            )
        )
        groups.setdefault((".".join(parts), others), []).append(workload.id)
    return list(groups.values())


def _is_switch(name: str, value: object) -> bool:
    return name == WORLD_SIZE or isinstance(value, bool)


def _sum(names: Iterable[str], expected_s: Mapping[str, float]) -> float:
    return math.fsum(expected_s[name] for name in names)
