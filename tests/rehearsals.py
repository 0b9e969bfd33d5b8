"""Builders of rehearsals: a workload whose plant of 7.5 % was found in 6 pairs, unless told."""

import msgspec

from ci_perf.model.baseline import Provenance
from ci_perf.model.rehearsed import (
    Attempt,
    PlantAnswer,
    Rehearsed,
    RehearsedSuite,
    RehearsedWorkload,
)
from tests.comparisons import a_plant
from tests.runs import CPU, SOFT, a_run


def an_attempt(answer=PlantAnswer.FOUND, share=0.075, **more):
    """One plant of work."""
    plain = Attempt(
        plant=a_plant("w", share=share), answer=answer, ratio=1 + share, pairs=6, duration_s=41.0
    )
    return msgspec.structs.replace(plain, **more)


def a_rehearsed(*attempts, **more):
    """One workload."""
    plain = RehearsedWorkload(alike="clear", limit=0.05, attempts=attempts or (an_attempt(),))
    return msgspec.structs.replace(plain, **more)


def a_rehearsal(*, suite="standard", **workloads):
    """A rehearsal of these workloads, on the first of December."""
    run = a_run()
    provenance = Provenance(
        recorded_at="2026-12-01T10:00:00Z",
        source=run.source,
        run=run.id,
        tool_version="0.1.0",
        suite=suite,
        selection=(),
        soft=SOFT,
    )
    return RehearsedSuite(
        provenance=provenance, workloads=workloads or {"train_step": a_rehearsed()}
    )


def a_document(suite=None, *, hard=CPU):
    """The file of a machine."""
    return Rehearsed(machine=hard, suites={"standard": suite or a_rehearsal()})
