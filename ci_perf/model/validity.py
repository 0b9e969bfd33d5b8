"""Whether the machine can be trusted, and the canaries that say whether it moved."""

from collections.abc import Iterable
from enum import Enum
from typing import Literal

from ci_perf.model.base import Name, NameOrEmpty, PositiveSeconds, Struct, Text


class Status(Enum):
    """How far the machine can be trusted, worst last."""

    VALID = "valid"
    DEGRADED = "degraded"
    INVALID = "invalid"


class Reason(Struct, frozen=True, kw_only=True):
    """Why a run is not simply valid: a code that docs/machine.md explains, and the figures.

    ``workload`` is the one during which it happened; empty when the whole run is meant.
    """

    code: Name
    status: Status
    detail: Text
    workload: NameOrEmpty = ""


class Validity(Struct, frozen=True, kw_only=True):
    """The verdict on the machine, which comes before the verdict on the code.

    ``status`` is that of the worst reason; without reasons it is valid.
    """

    status: Status
    reasons: tuple[Reason, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a verdict without a reason, and a reason without its verdict."""
        worst = worst_of(self.reasons)
        if self.status is not worst:
            raise ValueError(
                f"expected status {worst.value!r}, which follows from the reasons, "
                f"found {self.status.value!r}"
            )

    @property
    def is_run_invalid(self) -> bool:
        """Whether the numbers of the whole run are worth nothing, not only those of a workload."""
        return self.against("") is not None

    def against(self, workload: str) -> Reason | None:
        """Return the first reason that makes the numbers of `workload` worth nothing."""
        for reason in self.reasons:
            if reason.status is Status.INVALID and reason.workload in {"", workload}:
                return reason
        return None


class Canary(Struct, frozen=True, kw_only=True):
    """A fixed program that no pull request can change: when it moved, the machine moved."""

    name: Name
    position: Literal["before", "between", "after"]
    median_s: PositiveSeconds


def worst_of(reasons: tuple[Reason, ...]) -> Status:
    """Let the worst reason decide; without any, all is well."""
    order = list(Status)
    return max((reason.status for reason in reasons), key=order.index, default=Status.VALID)


def distinct(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Keep one reason per workload and code: the worst one, and the first of equal ones."""
    order = list(Status)
    kept: dict[tuple[str, str], Reason] = {}
    for reason in reasons:
        known = kept.setdefault((reason.workload, reason.code), reason)
        if order.index(reason.status) > order.index(known.status):
            kept[reason.workload, reason.code] = reason
    return tuple(kept.values())


def of(reasons: tuple[Reason, ...]) -> Validity:
    """Make the verdict that follows from `reasons`."""
    return Validity(status=worst_of(reasons), reasons=reasons)
