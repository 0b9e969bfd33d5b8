"""Builders of plans for several nodes that name only what a test is about."""

from ci_perf.model.run import Source, Tool
from ci_perf.model.shards import WorkPlan, WorkUnit
from tests.runs import HEAD_COMMIT

TOOL = Tool(version="0.1.0")
SOURCE = Source(commit=HEAD_COMMIT, branch="main", dirty=False)


def a_unit(*workloads, id="1-of-1", **more):  # noqa: A002  the field's name
    """Return a unit of these workloads, a minute long unless told."""
    return WorkUnit(
        **{
            "tool": TOOL,
            "suite": "smoke",
            "source": SOURCE,
            "expected_s": 60.0,
            "id": id,
            "workloads": workloads,
            **more,
        }
    )


def a_work_plan(*units, **more):
    """Return a plan of these units; of one with the workload `a` where none is given."""
    units = units or (a_unit("a"),)
    plain = {"tool": TOOL, "suite": "smoke", "source": SOURCE, "shards": len(units)}
    return WorkPlan(**{**plain, "units": units, **more})
