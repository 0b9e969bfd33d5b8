"""`ci_perf.plan` and `ci_perf.merge`: a suite on several nodes."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ci_perf.api_types import Location, Notify, say_nothing

if TYPE_CHECKING:
    from ci_perf.features.fleet.work_plan import WorkPlan
    from ci_perf.model.run import Run
    from ci_perf.session import Listener


def plan(
    select: str | Iterable[str] = (),
    *,
    units: int,
    suite: str = "",
    root: Location | None = None,
    workloads: Location = "workloads",
    baselines: Location = "baselines",
    machine_class: str | Iterable[str] = (),
    against: str | None = None,
) -> "WorkPlan":
    """Divide a suite among several nodes, by how long its launches took: as `ci-perf fleet plan`.

    `measure_unit` measures one of its `units`, `merge` joins what came of them.
    """
    from ci_perf.features.fleet import fleet
    from ci_perf.gate import arguments

    options = fleet.PlanOptions(
        root=arguments.root_of(root),
        suite=suite,
        select=arguments.names_of(select),
        workloads=arguments.below(root, workloads),
        baselines=arguments.below(root, baselines),
        units=units,
        machine_classes=arguments.names_of(machine_class),
        against=against,
    )
    return fleet.plan(options)


def measure_unit(
    plan: "WorkPlan | Location",
    unit: str,
    *,
    root: Location | None = None,
    notify: Notify | None = None,
    listener: "Listener | None" = None,
    **options: Any,  # noqa: ANN401  the keywords of `ci_perf.measure`
) -> "Run":
    """Measure one unit of a plan on this node: as `ci-perf fleet measure`.

    ``options`` are those of `ci_perf.measure`. Raises UsageError: the plan has no such unit, or is
    of another commit, base or version.
    """
    from ci_perf.features.fleet import fleet
    from ci_perf.features.fleet.work_plan import WorkPlan
    from ci_perf.gate import arguments, measure
    from ci_perf.session import Listener
    from ci_perf.system import files

    if not isinstance(plan, WorkPlan):
        plan = files.read(arguments.below(root, plan), WorkPlan)
    whole = arguments.measure_options(root, {**options, "suite": plan.suite})
    return measure.measure(
        fleet.narrow_options(whole, plan, unit),
        notify=notify or say_nothing,
        listener=listener or Listener(),
    )


def merge(
    *runs: "Run | Location",
    plan: "WorkPlan | Location",
    root: Location | None = None,
    workloads: Location = "workloads",
    baselines: Location = "baselines",
    notify: Notify | None = None,
) -> "dict[str | None, Run]":
    """Join what several nodes have measured into a run per class: as `ci-perf fleet merge`.

    `runs` are runs, files of such, or folders in which each run.json is one. `None` is the class of
    a plan that names no class.
    """
    from ci_perf.features.fleet import fleet
    from ci_perf.features.fleet.work_plan import WorkPlan
    from ci_perf.gate import arguments

    options = fleet.MergeOptions(
        runs=tuple(arguments.run_of(root, run) for run in runs),
        plan=plan if isinstance(plan, WorkPlan) else arguments.below(root, plan),
        root=arguments.root_of(root),
        workloads=arguments.below(root, workloads),
        baselines=arguments.below(root, baselines),
    )
    return fleet.merge(options, notify=notify or say_nothing)
