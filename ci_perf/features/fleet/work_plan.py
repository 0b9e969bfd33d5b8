"""Who measures what, where several nodes measure a suite: units of work, and their plan."""

from collections.abc import Iterator
from typing import Annotated

import msgspec

from ci_perf.model.base import SCHEMA_VERSION, Count, Name, Seconds, Struct, SuiteName, Text
from ci_perf.model.run import Source, Tool

# More nodes than this are a slip of the finger.
MOST_UNITS = 10_000
# A sentence about a node stays one, whatever a hostile run says.
DETAIL_CHARS = 1_000


class WorkUnit(Struct, frozen=True, kw_only=True):
    """What one node measures in one session: all launches and pairs of a few workloads.

    ``expected_s`` is how long the launches of the head take, as far as baselines tell.
    ``machine_class`` names the class of machines that it is for; `None` where there is only one.
    """

    id: Name
    workloads: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)]
    expected_s: Seconds
    machine_class: Name | None = None


class WorkPlan(Struct, tag_field="type", tag="plan", frozen=True, kw_only=True):
    """Who measures what: every planned workload is in exactly one unit of each machine class.

    ``against`` is the ref that the base is looked up by, empty for none. ``suspects`` is how many
    metrics of a class may need pairs: so many share the chance of a false alarm, whichever of them
    a unit finds suspicious. ``selection`` is empty when the whole suite is meant.
    """

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    suite: SuiteName
    source: Source
    against: Text = ""
    suspects: Count = 0
    selection: tuple[Text, ...] = ()
    units: Annotated[tuple[WorkUnit, ...], msgspec.Meta(min_length=1)]

    def __post_init__(self) -> None:
        """Refuse units of which nobody could say who measures a workload."""
        ids: set[str] = set()
        planned: set[tuple[str | None, str]] = set()
        for unit in self.units:
            if unit.id in ids:
                raise ValueError(f"unit {unit.id!r} appears twice")
            ids.add(unit.id)
            for name in unit.workloads:
                if (unit.machine_class, name) in planned:
                    raise ValueError(f"workload {name!r} is planned twice")
                planned.add((unit.machine_class, name))

    def find_difference(self, *, commit: str, version: str, suite: str) -> str:
        """Say what of a node is not as it was planned; empty where all is."""
        facts = {
            "commit": (self.source.commit, commit),
            "suite": (self.suite, suite),
            "version of ci-perf": (self.tool.version, version),
        }
        for what, (expected, actual) in facts.items():
            if expected != actual:
                known, other = expected[:DETAIL_CHARS], actual[:DETAIL_CHARS]
                return f"expected {what} {known!r}, as it was planned, found {other!r}"
        return ""

    def classes(self) -> tuple[str | None, ...]:
        """Return the classes of machines that measure, in the order of the units."""
        return tuple(dict.fromkeys(unit.machine_class for unit in self.units))

    def workloads(self, machine_class: str | None) -> Iterator[str]:
        """Yield every workload that is planned for a class of machines."""
        for unit in self.units:
            if unit.machine_class == machine_class:
                yield from unit.workloads
