"""What a rehearsal has shown: whether the gate of a machine finds what is planted."""

from collections.abc import Container
from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import SCHEMA_VERSION, Amount, Count, Name, Seconds, Struct, SuiteName, Text
from ci_perf.model.baseline import Provenance
from ci_perf.model.environment import Machine
from ci_perf.model.plant import Plant

# More than a person would plant, or a suite has.
_MOST_PLANTS, _MOST_WORKLOADS = 20, 10_000


class PlantAnswer(StrEnum):
    """What the gate says of a plant: the value is the word of the report."""

    FOUND = "found"
    PASSED = "seen, and passes"
    UNCHANGED = "not seen"
    OPEN = "no answer"


class Attempt(Struct, frozen=True, kw_only=True):
    """One plant, and what the gate said of it.

    ``ratio`` is head over base of the metric that the plant should move, ``None`` where nothing is
    known. ``why`` says why it was not found.
    """

    plant: Plant
    answer: PlantAnswer
    ratio: Amount | None
    pairs: Count
    duration_s: Seconds
    why: Text = ""


class RehearsedWorkload(Struct, frozen=True, kw_only=True):
    """What a workload has shown.

    ``alike`` is the answer without a plant, ``why`` the reason if that is not "clear". ``limit`` is
    that of the step time, a share. ``broken`` says why the gate of this workload cannot fail.
    """

    alike: Literal["clear", "red", "open"]
    why: Text = ""
    limit: Annotated[float, msgspec.Meta(ge=0, le=1e6)]
    attempts: Annotated[tuple[Attempt, ...], msgspec.Meta(max_length=_MOST_PLANTS)] = ()
    broken: Annotated[tuple[Text, ...], msgspec.Meta(max_length=_MOST_PLANTS)] = ()

    @property
    def smallest_work(self) -> Attempt | None:
        """Return what was planted by the smallest work: what the gate is known to find."""
        of_work = [each for each in self.attempts if each.plant.kind == "work"]
        return min(of_work, key=lambda each: each.plant.share, default=None)


class RehearsalNote(Struct, frozen=True, kw_only=True):
    """What a report says of a rehearsal: its day, and the smallest work of each workload.

    ``proven`` ``of`` these were found, of at most this ``share`` of a step, in ``longest_s``, by
    a gate that is clear without a plant.
    """

    day: Text
    share: Amount
    proven: Count
    of: Count
    longest_s: Seconds


class RehearsedSuite(Struct, frozen=True, kw_only=True):
    """A rehearsal of one suite, or as much of it as there was time for."""

    provenance: Provenance
    workloads: Annotated[
        dict[Name, RehearsedWorkload], msgspec.Meta(min_length=1, max_length=_MOST_WORKLOADS)
    ]

    def note(self, workloads: Container[str]) -> RehearsalNote | None:
        """Return what is said of these workloads; `None` where no work was planted into any."""
        known = [each for name, each in self.workloads.items() if name in workloads]
        tried = [work for each in known if (work := each.smallest_work)]
        clear = [work for each in known if each.alike == "clear" and (work := each.smallest_work)]
        proven = [each for each in clear if each.answer is PlantAnswer.FOUND]
        if not tried:
            return None
        return RehearsalNote(
            day=self.provenance.recorded_at[:10],
            share=max(each.plant.share for each in proven or tried),
            proven=len(proven),
            of=len(tried),
            longest_s=max((each.duration_s for each in proven), default=0.0),
        )


class Rehearsed(Struct, tag_field="type", tag="rehearsed", frozen=True, kw_only=True):
    """The whole of baselines/MACHINE/rehearsed.json: the last rehearsal of each suite."""

    schema_version: int = SCHEMA_VERSION
    machine: Machine
    suites: Annotated[dict[SuiteName, RehearsedSuite], msgspec.Meta(min_length=1, max_length=1000)]
