"""Profile workloads now, and say what differs between both sides, or what limits a step."""

import statistics
from collections.abc import Iterable, Iterator
from typing import Any

from ci_perf.api_types import Location, Notify, say_nothing
from ci_perf.errors import CiPerfError
from ci_perf.features.explain import causes, limits
from ci_perf.features.explain.answer import ExplainedWorkload, ExplainedWorkloads
from ci_perf.features.explain.session import Explaining
from ci_perf.gate import arguments, lab, measure
from ci_perf.gate.options import MeasureOptions
from ci_perf.gate.traces import (
    describe_traces,
    list_sides,
    prepare_folder,
)
from ci_perf.model.explanation import ProfiledPairs, StepProfile
from ci_perf.model.task import Task
from ci_perf.session import Listener


def explain(
    select: str | Iterable[str] = (),
    *,
    root: Location | None = None,
    notify: Notify | None = None,
    listener: Listener | None = None,
    **options: Any,  # noqa: ANN401  as `measure`
) -> ExplainedWorkloads:
    """Profile workloads now, and say how they differ or what limits them; see `ci-perf explain`.

    With `against` (a branch, tag or commit), profiles its merge base, too. All of it takes
    `budget_s` at most; the folder `traces` gets the traces. The other
    `options` are those of `measure`.
    """
    measuring = arguments.measure_options(root, {"budget_s": 300.0, **options}, select=select)
    return explain_now(measuring, notify=notify or say_nothing, listener=listener or Listener())


def explain_now(
    options: MeasureOptions, *, notify: Notify, listener: Listener
) -> ExplainedWorkloads:
    """Profile workloads, with `options.against` on both sides; nothing is timed or judged.

    All launches together take about `options.budget_s` at most. Raises UsageError,
    InvalidFileError and other CiPerfErrors, and KeyboardInterrupt.
    """
    plan = measure.plan(options)
    traces = prepare_folder(options.traces)
    profiles: dict[str, StepProfile | str] = {}
    with lab.open(plan, options, notify, listener) as here:
        base = here.base
        if base and base.trouble:
            raise CiPerfError(base.trouble)
        with here.held():
            tasks = {each.id: here.task(each, 0) for each in plan.workloads}
            explaining = Explaining(here, traces=traces)
            if base is not None:
                of_both: dict[str, tuple[Task, Task] | None] = {}
                for name, task in tasks.items():
                    other = base.find_task(task)
                    of_both[name] = None if other is None else (other, task)
                explaining.profile_pairs(of_both, options.budget_s)
            else:
                end = here.clock() + options.budget_s
                for name, task in tasks.items():
                    left_s = end - here.clock()
                    profiles[name] = explaining.profile_alone(task, left_s)
    pairs = tuple(explaining.pairs.values())
    alone = [(name, each) for name, each in profiles.items() if isinstance(each, StepProfile)]
    sides = [*list_sides(pairs), *alone]
    for line in describe_traces(options.traces, sides):
        notify(line)
    commit = "" if base is None else base.source.commit or ""
    workloads = (*map(explain_pairs, pairs), *_explain_alone(profiles))
    return ExplainedWorkloads(suite=plan.suite, base=commit, workloads=workloads)


def _explain_alone(profiles: dict[str, StepProfile | str]) -> Iterator[ExplainedWorkload]:
    """Yield what limits the steps of workloads that were profiled without a base."""
    for name, profile in profiles.items():
        if isinstance(profile, str):
            yield ExplainedWorkload(workload=name, trouble=profile)
        else:
            yield ExplainedWorkload(
                workload=name,
                profile=profile,
                limits=None if profile.absent else limits.find_limits(profile),
                trouble=profile.absent,
            )


def explain_pairs(sides: ProfiledPairs) -> ExplainedWorkload:
    """Explain the pairs of a workload that nobody has judged: as a gain if their steps are shorter.

    Each launch that profiles times some steps that nothing watches.
    """
    steps = [(pair.base.step_s, pair.head.step_s) for pair in sides.pairs]
    ratios = [head / base for base, head in steps if base and head]
    is_gain = bool(ratios) and statistics.median(ratios) < 1
    return ExplainedWorkload(
        workload=sides.workload,
        explanation=causes.explain(sides, is_gain=is_gain),
        profile=sides.pairs[0].head if sides.pairs else None,
        trouble=sides.trouble,
    )
