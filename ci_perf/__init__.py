"""A performance gate for PyTorch: measure a fixed suite, judge it, report it.

The functions below are what the commands of the same names do: `ci_perf.check(suite="standard",
against="main", notify=print)`. They print nothing and end nothing; docs/python.md is their guide.

A relative path counts from `root`, the repository, which is the current folder unless it is given.
`notify` is called with each line that a person should read; a `ci_perf.session.Listener` follows
the progress of a run. Every failure is a `CiPerfError`, and its message says what to do next. An
interrupt raises KeyboardInterrupt once the processes, containers and folders of the call are gone.
"""

# Each function imports what it needs: `import ci_perf` costs nothing, and needs no torch.
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from ci_perf.errors import CiPerfError, UsageError
from ci_perf.version import __version__

if TYPE_CHECKING:
    from ci_perf.baselines.accept import Acceptance
    from ci_perf.gate.check import Checked
    from ci_perf.gate.measure import ChecksBefore, MeasureOptions
    from ci_perf.gate.runners import Runner
    from ci_perf.model.comparison import Comparison
    from ci_perf.model.explained import ExplainedWorkloads
    from ci_perf.model.run import Run
    from ci_perf.model.samples import Samples
    from ci_perf.model.suite import FailOn, Preset
    from ci_perf.model.task import Tracing
    from ci_perf.notebook import LoadedComparison, LoadedRun
    from ci_perf.session import Listener

__all__ = [
    "CiPerfError",
    "__version__",
    "accept",
    "check",
    "compare",
    "explain",
    "judge",
    "load",
    "measure",
]

Location = str | PathLike[str]
Notify = Callable[[str], None]


def measure(
    suite: str = "smoke",
    *,
    select: str | Iterable[str] = (),
    run_output: Location | None = None,
    root: Location | None = None,
    workloads: Location = "workloads",
    baselines: Location = "baselines",
    device: str = "auto",
    processes: int | None = None,
    lock_timeout_s: float = 1800.0,
    wait_s: float | None = None,
    against: str | None = None,
    budget_s: float = 1200.0,
    add: "Iterable[Run | Location]" = (),
    checks_before: "ChecksBefore" = None,
    all_workloads: bool = False,
    record: bool = True,
    explain: bool = True,
    explain_budget_s: float = 300.0,
    traces: Location | None = None,
    runner: "Runner | None" = None,
    notify: Notify | None = None,
    listener: "Listener | None" = None,
) -> "Run":
    """Measure the workloads of a suite, each process a fresh child; see `ci-perf run`.

    A workload that fails is in `run.failed` and stops no other. `select` names workloads (ids, or
    the part before the first dot), `run_output` is the file for the run. With `against` (a branch,
    tag or commit), its merge base is launched, too, for at most `budget_s`, where the baselines do
    not clear the head; what runs the same program on both sides is in `run.same`, not launched
    unless `all_workloads`. `record` records what each takes from the repository, `explain` profiles
    what pairs prove to move (traces go to the folder `traces`). `wait_s` is for a quiet machine.
    """
    from ci_perf.gate import measure
    from ci_perf.session import Listener

    options = _options(
        suite=suite,
        select=select,
        run_output=run_output,
        root=root,
        workloads=workloads,
        baselines=baselines,
        device=device,
        processes=processes,
        lock_timeout_s=lock_timeout_s,
        wait_s=wait_s,
        against=against,
        budget_s=budget_s,
        add=add,
        checks_before=checks_before,
        all_workloads=all_workloads,
        record=record,
        explain=explain,
        explain_budget_s=explain_budget_s,
        traces=traces,
        runner=runner,
    )
    return measure.measure(options, notify=notify or _silent, listener=listener or Listener())


def check(
    suite: str = "smoke",
    *,
    select: str | Iterable[str] = (),
    run_output: Location | None = None,
    root: Location | None = None,
    workloads: Location = "workloads",
    baselines: Location = "baselines",
    device: str = "auto",
    processes: int | None = None,
    lock_timeout_s: float = 1800.0,
    wait_s: float | None = None,
    against: str | None = None,
    budget_s: float = 1200.0,
    add: "Iterable[Run | Location]" = (),
    checks_before: "ChecksBefore" = None,
    all_workloads: bool = False,
    record: bool = True,
    explain: bool = True,
    explain_budget_s: float = 300.0,
    traces: Location | None = None,
    runner: "Runner | None" = None,
    fail_on: "FailOn | None" = None,
    notify: Notify | None = None,
    listener: "Listener | None" = None,
) -> "Checked":
    """Measure, and compare with the committed baselines; see `ci-perf check`.

    Returns `run` and `comparison` with `.verdict` and `.exit_code`; a regression is no exception.
    Without `against` it is at most unconfirmed. Pairs of earlier runs (`add`, or files) count for
    the same commits. `checks_before` checks of the pull request share the chance of an alarm.
    """
    from ci_perf.gate import check, check_fail_on
    from ci_perf.session import Listener

    check_fail_on(fail_on)
    options = _options(
        suite=suite,
        select=select,
        run_output=run_output,
        root=root,
        workloads=workloads,
        baselines=baselines,
        device=device,
        processes=processes,
        lock_timeout_s=lock_timeout_s,
        wait_s=wait_s,
        against=against,
        budget_s=budget_s,
        add=add,
        checks_before=checks_before,
        all_workloads=all_workloads,
        record=record,
        explain=explain,
        explain_budget_s=explain_budget_s,
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
    from ci_perf.gate import check_fail_on, compare

    check_fail_on(fail_on)
    return compare.compare(
        _run(root, head),
        None if base is None else _run(root, base),
        baselines=_below(root, baselines),
        workloads=_below(root, workloads),
        fail_on=fail_on,
        notify=notify or _silent,
    )


def explain(
    select: str | Iterable[str] = (),
    *,
    run: "Run | Location | None" = None,
    against: str | None = None,
    suite: str = "smoke",
    root: Location | None = None,
    workloads: Location = "workloads",
    baselines: Location = "baselines",
    device: str = "auto",
    lock_timeout_s: float = 1800.0,
    explain_budget_s: float = 300.0,
    traces: Location | None = None,
    tracing: "Tracing | None" = None,
    snapshot: Location | None = None,
    runner: "Runner | None" = None,
    notify: Notify | None = None,
    listener: "Listener | None" = None,
) -> "ExplainedWorkloads":
    """Say why workloads moved, or what limits them; see `ci-perf explain`.

    With `run`, explains what that run has measured, and launches nothing. Else profiles workloads
    now, with `against` (a branch, tag or commit) its merge base, too, for `explain_budget_s`; the
    folder `traces` gets their traces, taken as `tracing` says, `snapshot` what CUDA's memory holds.
    """
    from ci_perf.gate import explain
    from ci_perf.model.task import Tracing
    from ci_perf.session import Listener

    if run is not None and against is not None:
        raise UsageError("against: expected none with a run, which has its own base")
    if run is not None and (traces or snapshot or tracing not in {None, Tracing()}):
        said = "--traces, --snapshot, --steps, --stacks, --activities"
        raise UsageError(f"{said}: expected none with a run, which launches nothing")
    if run is not None:
        return explain.of_run(
            _run(root, run),
            _names(select),
            baselines=_below(root, baselines),
            workloads=_below(root, workloads),
            notify=notify or _silent,
        )
    options = _options(
        suite=suite,
        select=select,
        root=root,
        workloads=workloads,
        baselines=baselines,
        device=device,
        lock_timeout_s=lock_timeout_s,
        against=against,
        explain_budget_s=explain_budget_s,
        traces=traces,
        tracing=tracing or Tracing(),
        snapshot=_below(root, snapshot) if snapshot else None,
        runner=runner,
    )
    return explain.now(options, notify=notify or _silent, listener=listener or Listener())


def judge(
    *samples: "Samples | Location",
    tool: str | None = None,
    base: Location | Sequence[Location] = (),
    head: Location | Sequence[Location] = (),
    pairs: Sequence[tuple[Location, Location]] = (),
    preset: "Preset" = "default",
    fail_on: "FailOn" = "regressed",
    notify: Notify | None = None,
) -> "Comparison":
    """Judge samples that any harness has recorded; see `ci-perf judge`.

    `samples` are documents of our own format, or files of them. With `tool` (such as "pyperf"),
    `base`, `head` and `pairs` are files that this harness wrote instead. Give all files of a change
    in one call: the chance of a false alarm, 5 %, is shared within a call.
    """
    from ci_perf.gate import check_fail_on, check_word, compare
    from ci_perf.model.samples import Samples
    from ci_perf.model.suite import Preset

    check_fail_on(fail_on)
    check_word("preset", preset, get_args(Preset))
    sources = [source if isinstance(source, Samples) else Path(source) for source in samples]
    harness = compare.HarnessFiles(
        tool=tool,
        base=_paths(base),
        head=_paths(head),
        pairs=tuple((Path(old), Path(new)) for old, new in pairs),
    )
    return compare.judge(sources, harness, preset=preset, fail_on=fail_on, notify=notify or _silent)


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
    into: Location | None = None,
    label: str = "",
    notify: Notify | None = None,
) -> "tuple[Acceptance, ...]":
    """Make a run the new baseline: write the files that you then commit; see `ci-perf accept`.

    Returns what became of each workload. `reason` says why a number may get worse, `label` names
    the run in messages; `patch` or `into` leave the baselines alone. Raises RefusedError.
    """
    from ci_perf.gate import accept, compare

    accepted, name = compare.read_run(_run(root, run))
    options = accept.AcceptOptions(
        root=_root(root),
        workloads=_below(root, workloads),
        baselines=_below(root, baselines),
        select=_names(select),
        reason=reason,
        append=append,
        replace=replace,
        force=force,
        patch=None if patch is None else _below(root, patch),
        into=None if into is None else _below(root, into),
    )
    return accept.accept(accepted, options, label=label or name, notify=notify or _silent)


def load(source: "Run | Comparison | Location") -> "LoadedRun | LoadedComparison":
    """Open a run or a comparison, or the file of one, in a notebook.

    The result has `.to_frame()`, and shows itself as a table.
    """
    from ci_perf import notebook

    return notebook.load(source)


def _options(
    *,
    root: Location | None,
    select: str | Iterable[str],
    workloads: Location,
    baselines: Location,
    runner: "Runner | None",
    run_output: Location | None = None,
    traces: Location | None = None,
    add: "Iterable[Run | Location]" = (),
    **others: Any,  # noqa: ANN401  the fields that are what the caller has given
) -> "MeasureOptions":
    """Return the options of a measurement, with every path below the root."""
    from ci_perf.gate.measure import MeasureOptions
    from ci_perf.gate.runners import Runner

    return MeasureOptions(
        root=_root(root),
        select=_names(select),
        workloads=_below(root, workloads),
        baselines=_below(root, baselines),
        add=tuple(_run(root, run) for run in add),
        runner=runner or Runner(),
        run_output=None if run_output is None else _below(root, run_output),
        traces=None if traces is None else _below(root, traces),
        **others,
    )


def _root(root: Location | None) -> Path:
    from ci_perf.system import files

    return files.current_folder() if root is None else files.current_folder() / root


def _below(root: Location | None, path: Location) -> Path:
    """Return a path as it was given, or below a root that was given, too."""
    return Path(path) if root is None else Path(root, path).absolute()


def _run(root: Location | None, source: "Run | Location") -> "Run | Path":
    """Return a run, or the path of its file."""
    from ci_perf.model.run import Run

    return source if isinstance(source, Run) else _below(root, source)


def _names(select: str | Iterable[str]) -> tuple[str, ...]:
    return (select,) if isinstance(select, str) else tuple(select)


def _paths(files: Location | Sequence[Location]) -> tuple[Path, ...]:
    return (Path(files),) if isinstance(files, str | PathLike) else tuple(map(Path, files))


def _silent(_text: str) -> None:
    """Tell nobody."""
