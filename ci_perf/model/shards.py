"""Who measures what, where a suite is measured by several nodes: units of work, and their plan."""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from ci_perf.model.base import (
    SCHEMA_VERSION,
    Count,
    Name,
    Seconds,
    Struct,
    SuiteName,
    Text,
)
from ci_perf.model.node_check import NodeCheck
from ci_perf.model.run import Source, Tool

# More nodes than this are a slip of the finger; a matrix of GitHub has 256 jobs at most.
MOST_SHARDS = 10_000


class WorkUnit(Struct, tag_field="type", tag="unit", frozen=True, kw_only=True):
    """What one node measures in one session: all launches and pairs of a few workloads.

    ``expected_s`` is how long the launches of the head take, as far as baselines tell.
    ``machine_class`` names the class of machines that it is for; `None` where there is only one.
    ``against`` is the ref that the base is looked up by, empty for none. In the second of two waves
    ``suspected`` names, by workload, the metrics that the first wave has found suspicious: they get
    pairs whatever the node finds. A workload without any is launched for others to compare with.
    ``suspects`` is how many there are on all nodes: they share the chance of a false alarm.
    ``node`` is what a node must be; a plan says nothing of it, the controller of a fleet does.
    """

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    id: Name
    suite: SuiteName
    source: Source
    workloads: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)]
    expected_s: Seconds
    machine_class: Name | None = None
    against: Text = ""
    suspected: dict[Name, tuple[Name, ...]] = {}
    suspects: Count = 0
    node: NodeCheck = NodeCheck()

    def __post_init__(self) -> None:
        """Refuse a workload that would be measured twice, and suspicions that are not its own."""
        if self.suspected and set(self.suspected) != set(self.workloads):
            raise ValueError("suspected: expected each workload of the unit")
        if self.suspected and not self.against:
            raise ValueError("against: expected the base of the suspected workloads, found none")
        if sum(map(len, self.suspected.values())) > self.suspects:
            raise ValueError("suspects: expected at least the suspected metrics of the unit")
        seen: set[str] = set()
        for name in self.workloads:
            if name in seen:
                raise ValueError(f"workload {name!r} appears twice")
            seen.add(name)


class WorkPlan(Struct, tag_field="type", tag="plan", frozen=True, kw_only=True):
    """Who measures what: every planned workload is in exactly one unit of each machine class.

    ``shards`` is into how many units the workloads of a class were to be divided. There are fewer
    units where there are fewer workloads: a shard without any has no unit. ``selection`` is empty
    when the whole suite is meant.
    """

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    suite: SuiteName
    source: Source
    against: Text = ""
    selection: tuple[Text, ...] = ()
    shards: Annotated[int, msgspec.Meta(ge=1, le=MOST_SHARDS)]
    units: Annotated[tuple[WorkUnit, ...], msgspec.Meta(min_length=1)]

    def __post_init__(self) -> None:
        """Refuse units of which nobody could say who measures a workload, or of what code."""
        ids: set[str] = set()
        planned: dict[str | None, set[str]] = {}
        for unit in self.units:
            if unit.id in ids:
                raise ValueError(f"unit {unit.id!r} appears twice")
            ids.add(unit.id)
            _check_agreement(self, unit)
            known = planned.setdefault(unit.machine_class, set())
            for name in unit.workloads:
                if name in known:
                    raise ValueError(f"workload {name!r} is in two units")
                known.add(name)

    def classes(self) -> tuple[str | None, ...]:
        """Return the classes of machines that measure, in the order of the units."""
        return tuple(dict.fromkeys(unit.machine_class for unit in self.units))

    def workloads(self, machine_class: str | None) -> Iterator[str]:
        """Yield every workload that is planned for a class of machines."""
        for unit in self.units:
            if unit.machine_class == machine_class:
                yield from unit.workloads


def _check_agreement(plan: WorkPlan, unit: WorkUnit) -> None:
    """Refuse a unit of another suite, of other code, or with another base."""
    for what in ("tool", "suite", "source", "against"):
        expected, actual = getattr(plan, what), getattr(unit, what)
        if expected != actual:
            raise ValueError(f"unit {unit.id!r}: expected {what} {expected!r}, found {actual!r}")
