"""What a node must be before it measures a unit of work, and what it answers if it is not."""

from collections.abc import Mapping

import msgspec

from ci_perf.model.base import (
    SCHEMA_VERSION,
    AtLeastOne,
    Name,
    PositiveSeconds,
    Struct,
    Text,
)
from ci_perf.model.environment import Machine, is_same
from ci_perf.model.fleet import Expectation
from ci_perf.model.run import Tool


class CanaryBound(Struct, frozen=True, kw_only=True):
    """How long a canary takes on nodes of a class, and how long it may take: seconds.

    ``sessions`` is how many sessions say so.
    """

    usual_s: PositiveSeconds
    most_s: PositiveSeconds
    sessions: AtLeastOne


class MachineBounds(Struct, frozen=True, kw_only=True):
    """The canaries of one kind of machine, by name."""

    machine: Machine
    canaries: dict[Name, CanaryBound]


class NodeCheck(Struct, frozen=True, kw_only=True):
    """What a node must be: its hard facts, and how slow its canaries may be.

    ``bounds`` hold for nodes whose hard facts are the same; of another machine nothing is known.
    """

    expect: Expectation = Expectation()
    bounds: tuple[MachineBounds, ...] = ()

    def has_bounds(self, machine: Machine) -> bool:
        """Whether anything is known of the canaries of this kind of machine."""
        return bool(self._of(machine))

    def too_slow(self, machine: Machine, canaries: Mapping[str, float]) -> str:
        """Say which canaries, in seconds by name, took longer than they may; empty for none."""
        return "; ".join(
            f"{name}: expected at most {1e3 * bound.most_s:.4g} ms, as {bound.sessions} sessions "
            f"of this kind of machine took {1e3 * bound.usual_s:.4g} ms, found {1e3 * found_s:.4g} "
            "ms"
            for name, bound in self._of(machine).items()
            if (found_s := canaries.get(name, 0.0)) > bound.most_s
        )

    def _of(self, machine: Machine) -> Mapping[str, CanaryBound]:
        return next((b.canaries for b in self.bounds if is_same(b.machine, machine)), {})


class NodeRefusal(Struct, tag_field="type", tag="node_refusal", frozen=True, kw_only=True):
    """What `ci-perf run --unit` writes in the place of a run: the node is not of the unit's class.

    No workload was launched.
    """

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    unit: Name
    reason: Text


class DocumentType(msgspec.Struct, frozen=True):
    """The first look at a document that may be of several types."""

    type: str = ""
