"""A performance gate for PyTorch: measure a fixed suite, judge it, report it.

The functions below are what the commands of the same names do: `ci_perf.check(suite="standard",
against="main", notify=print)`. They print nothing and end nothing; docs/python.md is their guide.

A relative path counts from `root`, the repository, which is the current folder unless it is given.
`notify` is called with each line that a person should read; a `ci_perf.session.Listener` follows
the progress of a run. Every failure is a `CiPerfError`, and its message says what to do next. An
interrupt raises KeyboardInterrupt once the processes, containers and folders of the call are gone.
"""

# Each function imports what it needs: `import ci_perf` costs nothing, and needs no torch.
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ci_perf.errors import CiPerfError, UsageError
from ci_perf.machines import Location, Notify, backfill, bisect, merge, plan
from ci_perf.version import __version__

if TYPE_CHECKING:
    from ci_perf.baselines.accept import Acceptance
    from ci_perf.features.explain.answer import ExplainedWorkloads
    from ci_perf.gate.check import Checked
    from ci_perf.gate.measure import ChecksBefore
    from ci_perf.gate.runners import Runner
    from ci_perf.model.comparison import Comparison
    from ci_perf.model.fleet import WorkPlan
    from ci_perf.model.run import Run
    from ci_perf.model.samples import Samples
    from ci_perf.model.suite import FailOn
    from ci_perf.model.task import Tracing
    from ci_perf.notebook import Loadable, Loaded
    from ci_perf.session import Listener

__all__ = [
    "CiPerfError",
    "__version__",
    "accept",
    "backfill",
    "bisect",
    "check",
    "compare",
    "explain",
    "history",
    "judge",
    "load",
    "measure",
    "merge",
    "plan",
]


def measure(
    suite: str = "",
    *,
    select: str | Iterable[str] = (),
    output: Location | None = None,
    root: Location | None = None,
    workloads: Location = "workloads",
    baselines: Location = "baselines",
    device: str = "auto",
    processes: int | None = None,
    wait_s: float | None = None,
    against: str | None = None,
    budget_s: float = 1200.0,
    add: "Iterable[Run | Location]" = (),
    checks_before: "ChecksBefore" = None,
    all_workloads: bool = False,
    explain_s: float = 300.0,
    traces: Location | None = None,
    plan: "WorkPlan | Location | None" = None,
    unit: str = "",
    runner: "Runner | None" = None,
    notify: Notify | None = None,
    listener: "Listener | None" = None,
) -> "Run":
    """Measure the workloads of a suite, each process a fresh child; see `ci-perf run`.

    A workload that fails is in `run.failed` and stops no other. `select` names workloads. With
    `against` (a branch, tag or commit), its merge base is launched for at most `budget_s` where the
    baselines do not clear the head; the same program is in `run.same`. `unit` is one of `plan`.
    """
    from ci_perf.gate import arguments, measure
    from ci_perf.session import Listener

    options = arguments.measure_options(
        suite=suite,
        select=select,
        output=output,
        root=root,
        workloads=workloads,
        baselines=baselines,
        device=device,
        processes=processes,
        wait_s=wait_s,
        against=against,
        budget_s=budget_s,
        add=add,
        checks_before=checks_before,
        all_workloads=all_workloads,
        explain_s=explain_s,
        traces=traces,
        plan=plan,
        unit=unit,
        runner=runner,
    )
    return measure.measure(options, notify=notify or _silent, listener=listener or Listener())


def check(
    suite: str = "",
    *,
    select: str | Iterable[str] = (),
    output: Location | None = None,
    root: Location | None = None,
    workloads: Location = "workloads",
    baselines: Location = "baselines",
    device: str = "auto",
    processes: int | None = None,
    wait_s: float | None = None,
    against: str | None = None,
    budget_s: float = 1200.0,
    add: "Iterable[Run | Location]" = (),
    checks_before: "ChecksBefore" = None,
    all_workloads: bool = False,
    explain_s: float = 300.0,
    traces: Location | None = None,
    runner: "Runner | None" = None,
    fail_on: "FailOn | None" = None,
    notify: Notify | None = None,
    listener: "Listener | None" = None,
) -> "Checked":
    """Measure, and compare with the committed baselines; see `ci-perf check`.

    Returns `run` and `comparison` with `.verdict` and `.exit_code`; a regression is no exception.
    Without `against` it is likely at most. Pairs of earlier runs (`add`, or files) count for
    the same commits. `checks_before` checks of the pull request share the chance of an alarm.
    """
    from ci_perf.gate import arguments, check, check_fail_on
    from ci_perf.session import Listener

    check_fail_on(fail_on)
    options = arguments.measure_options(
        suite=suite,
        select=select,
        output=output,
        root=root,
        workloads=workloads,
        baselines=baselines,
        device=device,
        processes=processes,
        wait_s=wait_s,
        against=against,
        budget_s=budget_s,
        add=add,
        checks_before=checks_before,
        all_workloads=all_workloads,
        explain_s=explain_s,
        traces=traces,
        runner=runner,
    )
    heard = listener or Listener()
    return check.check(options, fail_on=fail_on, notify=notify or _silent, listener=heard)


def compare(
    head: "Run | Location",
    *,
    base: "Run | Location | None" = None,
    root: Location | None = None,
    workloads: Location = "workloads",
    baselines: Location = "baselines",
    fail_on: "FailOn | None" = None,
    notify: Notify | None = None,
) -> "Comparison":
    """Judge a run against another one, or against the committed baselines; see `ci-perf compare`.

    `head` and `base` are runs, or files that hold one. The limits are those of suite.toml in
    `workloads`, without one the defaults.
    """
    from ci_perf.gate import arguments, check_fail_on, compare

    check_fail_on(fail_on)
    return compare.compare(
        arguments.run_of(root, head),
        None if base is None else arguments.run_of(root, base),
        arguments.folders_of(root, workloads, baselines),
        fail_on=fail_on,
        notify=notify or _silent,
    )


def explain(
    select: str | Iterable[str] = (),
    *,
    run: "Run | Location | None" = None,
    against: str | None = None,
    suite: str = "",
    root: Location | None = None,
    workloads: Location = "workloads",
    baselines: Location = "baselines",
    device: str = "auto",
    wait_s: float | None = None,
    budget_s: float = 300.0,
    traces: Location | None = None,
    tracing: "Tracing | None" = None,
    runner: "Runner | None" = None,
    notify: Notify | None = None,
    listener: "Listener | None" = None,
) -> "ExplainedWorkloads":
    """Say why workloads moved, or what limits them; see `ci-perf explain`.

    With `run`, explains what that run has measured, and launches nothing. Else profiles workloads
    now, with `against` (a branch, tag or commit) its merge base, too, for `budget_s`; the
    folder `traces` gets their traces, taken as `tracing` says.
    """
    from ci_perf.features.explain import command
    from ci_perf.gate import arguments
    from ci_perf.model.task import Tracing
    from ci_perf.session import Listener

    if run is not None and against is not None:
        raise UsageError("against: expected none with a run, which has its own base")
    if run is not None and (traces or tracing not in {None, Tracing()}):
        said = "--traces, --steps, --stacks, --activities"
        raise UsageError(f"{said}: expected none with a run, which launches nothing")
    if run is not None:
        return command.explain_run(
            arguments.run_of(root, run),
            arguments.names_of(select),
            arguments.folders_of(root, workloads, baselines),
            notify=notify or _silent,
        )
    options = arguments.measure_options(
        suite=suite,
        select=select,
        root=root,
        workloads=workloads,
        baselines=baselines,
        device=device,
        against=against,
        wait_s=wait_s,
        budget_s=budget_s,
        traces=traces,
        tracing=tracing or Tracing(),
        runner=runner,
    )
    return command.explain_now(options, notify=notify or _silent, listener=listener or Listener())


def judge(
    *samples: "Samples | Location",
    tool: str | None = None,
    base: Location | Sequence[Location] = (),
    head: Location | Sequence[Location] = (),
    pairs: Sequence[tuple[Location, Location]] = (),
    limit: float | None = None,
    fail_on: "FailOn" = "proven",
    notify: Notify | None = None,
) -> "Comparison":
    """Judge samples that any harness has recorded; see `ci-perf judge`.

    `samples` are documents of our own format, or files of them. With `tool` (such as "pyperf"),
    `base`, `head` and `pairs` are files that this harness wrote instead. Give all files of a change
    in one call: the chance of a false alarm, 5 %, is shared within a call. `limit` is the loss of a
    time that must not pass unseen, as a share.
    """
    from ci_perf.errors import UsageError
    from ci_perf.gate import arguments, check_fail_on, compare
    from ci_perf.model.samples import Samples

    check_fail_on(fail_on)
    if limit is not None and not 0 < limit <= 1:
        raise UsageError(f"limit: expected a share above 0 and at most 1, found {limit!r}")
    sources = [source if isinstance(source, Samples) else Path(source) for source in samples]
    harness = compare.HarnessFiles(
        tool=tool,
        base=arguments.paths_of(base),
        head=arguments.paths_of(head),
        pairs=tuple((Path(old), Path(new)) for old, new in pairs),
    )
    return compare.judge(sources, harness, limit=limit, fail_on=fail_on, notify=notify or _silent)


def accept(
    run: "Run | Location",
    *,
    root: Location | None = None,
    workloads: Location = "workloads",
    baselines: Location = "baselines",
    select: str | Iterable[str] = (),
    reason: str = "",
    append: bool = False,
    replace: bool = False,
    force: bool = False,
    patch: Location | None = None,
    label: str = "",
    notify: Notify | None = None,
) -> "tuple[Acceptance, ...]":
    """Make a run the new baseline: write the files that you then commit; see `ci-perf accept`.

    Returns what became of each workload. `reason` says why a number may get worse, `label` names
    the run in messages; `patch` leaves the baselines alone. Raises RefusedError.
    """
    from ci_perf.gate import accept, arguments, compare

    accepted, name = compare.read_run(arguments.run_of(root, run))
    options = accept.AcceptOptions(
        root=arguments.root_of(root),
        workloads=arguments.below(root, workloads),
        baselines=arguments.below(root, baselines),
        select=arguments.names_of(select),
        reason=reason,
        append=append,
        replace=replace,
        force=force,
        patch=None if patch is None else arguments.below(root, patch),
    )
    return accept.accept(accepted, options, label=label or name, notify=notify or _silent)


def history(
    *select: str,
    ref: str = "HEAD",
    root: Location | None = None,
    baselines: Location = "baselines",
    workloads: Location = "workloads",
    machines: str | Iterable[str] = (),
    repository_url: str = "",
    notify: Notify | None = None,
) -> "Loaded":
    """Read every session that a branch has committed, from git alone; see `ci-perf history`.

    The result has `.document`, the history, and `.to_frame()`, a row per session and metric.
    `select` names workloads, `machines` folders of `baselines`.
    """
    from ci_perf import notebook
    from ci_perf.gate import arguments, history

    options = history.HistoryOptions(
        root=arguments.root_of(root),
        baselines=arguments.below(root, baselines),
        workloads=arguments.below(root, workloads),
        names=select,
        machines=arguments.names_of(machines),
        ref=ref,
        repository_url=repository_url,
    )
    return notebook.Loaded(history.read(options, notify=notify or _silent))


def load(source: "Loadable | Location") -> "Loaded":
    """Open a run, a comparison or a history, or the file of one, in a notebook.

    The result has `.document`, `.to_frame()`, `.to_openmetrics()`, and shows itself as a table.
    """
    from ci_perf import notebook

    return notebook.load(source)


def _silent(_text: str) -> None:
    """Tell nobody."""
