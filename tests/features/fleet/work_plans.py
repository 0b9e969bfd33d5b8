"""Builders of plans for several nodes that name only what a test is about."""

import msgspec

from ci_perf.features.fleet.merging import ShardRun
from ci_perf.features.fleet.work_plan import WorkPlan, WorkUnit
from ci_perf.model.run import Source, Tool
from tests.runs import HEAD_COMMIT

TOOL = Tool(version="0.1.0")
SOURCE = Source(commit=HEAD_COMMIT, branch="main", dirty=False)


def a_unit(*workloads, id="1-of-1", machine_class=None):  # noqa: A002  the field's name
    """Return a unit of these workloads, a minute long."""
    return WorkUnit(id=id, workloads=workloads, expected_s=60.0, machine_class=machine_class)


def a_work_plan(*units, **more):
    """Return a plan of these units; of one with the workload `a` where none is given."""
    plain = {"tool": TOOL, "suite": "smoke", "source": SOURCE}
    return WorkPlan(**{**plain, "units": units or (a_unit("a"),), **more})


def a_shard(run, planned, *, node="0" * 12, **more):
    """Return what the node of a unit would have written of a whole run."""
    names = set(planned.workloads)
    noted = msgspec.structs.replace(run.environment.noted, host_hash=node)
    parts = {
        part: tuple(each for each in getattr(run, part) if each.workload in names)
        for part in ("measured", "failed", "paired", "same")
    }
    plain = {
        "id": f"run-{planned.id}",
        "unit": planned.id,
        "selection": planned.workloads,
        "environment": msgspec.structs.replace(run.environment, noted=noted),
        **parts,
    }
    return ShardRun(
        label=more.pop("label", f"{planned.id}/run.json"),
        run=msgspec.structs.replace(run, **{**plain, **more}),
    )
