"""Builders of plans that name only what a test is about."""

import msgspec

from ci_perf.model.suite import Limit, Limits, Plan, PlannedWorkload, Protocol, Tiers


def a_planned(workload, *, statistic=None, **more):
    """One workload; with `statistic`, suite.toml sets it."""
    plain = PlannedWorkload(
        id=workload,
        file=f"{workload}.py",
        description="",
        parameters={},
        protocol=Protocol(statistic=statistic or "median"),
        own_statistic=statistic is not None,
    )
    return msgspec.structs.replace(plain, **more)


def a_plan(*workloads, limit=0.02, **more):
    """A suite of these workloads, or of such of these names, with one limit for the step time."""
    plain = Plan(
        suite="smoke",
        root="/repository",
        selection=(),
        tiers=Tiers(),
        limits=Limits(default={"step_time_s": Limit(relative=limit)}),
        device="auto",
        canaries=False,
        workloads=tuple(a_planned(w) if isinstance(w, str) else w for w in workloads),
    )
    return msgspec.structs.replace(plain, **more)
