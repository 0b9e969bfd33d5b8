"""The part of the Python API that is for many machines or many commits; `ci_perf` has it, too."""

# Each function imports what it needs: `import ci_perf` costs nothing, and needs no torch.
from collections.abc import Callable, Iterable
from os import PathLike
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ci_perf.gate.runners import Runner
    from ci_perf.model.backfill import Backfill
    from ci_perf.model.bisection import Bisection
    from ci_perf.model.fleet import WorkPlan
    from ci_perf.model.run import Run
    from ci_perf.session import Listener

Location = str | PathLike[str]
Notify = Callable[[str], None]


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

    `measure(plan=..., unit=...)` measures one of its `units`, `merge` joins what came of them.
    """
    from ci_perf.gate import arguments, fleet

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
    from ci_perf.gate import arguments, fleet
    from ci_perf.model.fleet import WorkPlan

    options = fleet.MergeOptions(
        runs=tuple(arguments.run_of(root, run) for run in runs),
        plan=plan if isinstance(plan, WorkPlan) else arguments.below(root, plan),
        root=arguments.root_of(root),
        workloads=arguments.below(root, workloads),
        baselines=arguments.below(root, baselines),
    )
    return fleet.merge(options, notify=notify or _silent)


def bisect(
    good: str,
    bad: str,
    workload: str,
    *,
    suite: str = "",
    metric: str = "",
    at_once: int = 7,
    root: Location | None = None,
    workloads: Location = "workloads",
    baselines: Location = "baselines",
    device: str = "auto",
    wait_s: float | None = None,
    budget_s: float = 7200.0,
    explain_s: float = 0.0,
    runner: "Runner | None" = None,
    notify: Notify | None = None,
    listener: "Callable[[], Listener] | None" = None,
) -> "Bisection":
    """Find the commit after `good`, up to `bad`, that made a workload worse; see `ci-perf bisect`.

    The result's `outcome` is "found", and the commit `commits[high]`, or it says what is left. Each
    session has a `listener` of its own.
    """
    from ci_perf.gate import arguments, bisect
    from ci_perf.session import Listener

    options = bisect.BisectOptions(
        measuring=arguments.measure_options(
            root=root,
            select=workload,
            suite=suite,
            workloads=workloads,
            baselines=baselines,
            device=device,
            wait_s=wait_s,
            budget_s=budget_s,
            explain_s=explain_s,
            runner=runner,
        ),
        good=good,
        bad=bad,
        at_once=at_once,
        metric=metric,
    )
    return bisect.bisect(options, notify=notify or _silent, listener=listener or Listener)


def backfill(
    commits: str,
    select: str | Iterable[str] = (),
    *,
    suite: str = "",
    every: int = 1,
    force: bool = False,
    root: Location | None = None,
    workloads: Location = "workloads",
    baselines: Location = "baselines",
    device: str = "auto",
    processes: int | None = None,
    wait_s: float | None = None,
    runner: "Runner | None" = None,
    notify: Notify | None = None,
    listener: "Callable[[], Listener] | None" = None,
) -> "Backfill":
    """Measure the `commits` ("FROM..TO") that have no session in the baselines, oldest first.

    Writes the files, which you then commit; see `ci-perf history --measure`. Each session has a
    `listener` of its own.
    """
    from ci_perf.gate import arguments, backfill
    from ci_perf.session import Listener

    options = backfill.BackfillOptions(
        measuring=arguments.measure_options(
            root=root,
            select=select,
            suite=suite,
            workloads=workloads,
            baselines=baselines,
            device=device,
            processes=processes,
            wait_s=wait_s,
            runner=runner,
        ),
        commits=commits,
        every=every,
        force=force,
    )
    return backfill.backfill(options, notify=notify or _silent, listener=listener or Listener)


def _silent(_text: str) -> None:
    """Tell nobody."""
