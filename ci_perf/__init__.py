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
from typing import TYPE_CHECKING

from ci_perf.api_types import Location, Notify, say_nothing
from ci_perf.errors import CiPerfError
from ci_perf.version import __version__

if TYPE_CHECKING:
    from typing import Any

    from ci_perf.baselines.accept import Acceptance

    # What features add: see `__getattr__`.
    from ci_perf.features.bisect.bisect import bisect
    from ci_perf.features.explain.explain import explain
    from ci_perf.features.fleet.fleet import measure_unit, merge, plan
    from ci_perf.features.history.backfill import backfill
    from ci_perf.features.history.history import history
    from ci_perf.features.interchange.judge import judge
    from ci_perf.features.interchange.notebook import load
    from ci_perf.gate.check import Checked
    from ci_perf.model.comparison import Comparison
    from ci_perf.model.run import Run
    from ci_perf.model.suite import FailOn
    from ci_perf.session import Listener
    from ci_perf.workload import Context, Workload

__all__ = [
    "CiPerfError",
    "Context",
    "Workload",
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
    "measure_unit",
    "merge",
    "plan",
]


def measure(
    suite: str = "",
    *,
    root: Location | None = None,
    notify: Notify | None = None,
    listener: "Listener | None" = None,
    **options: "Any",  # noqa: ANN401  of the type that each option has
) -> "Run":
    """Measure the workloads of a suite, each process a fresh child; see `ci-perf run`.

    `options` are the fields of `ci_perf.gate.options.MeasureOptions`: `select="mlp"` names
    workloads, `output="run.json"` keeps the run. A workload that fails is in `run.failed` and stops
    no other. With `against` (a branch, tag or commit), its merge base is launched for at most
    `budget_s` where the baselines do not clear the head; the same program is in `run.same`.
    """
    from ci_perf.gate import arguments, measure
    from ci_perf.session import Listener

    measuring = arguments.measure_options(root, options, suite=suite)
    return measure.measure(measuring, notify=notify or say_nothing, listener=listener or Listener())


def check(
    suite: str = "",
    *,
    root: Location | None = None,
    command: Sequence[str] = (),
    metric: str = "",
    skip: int = 0,
    reads: str = "",
    setup: str = "",
    fail_on: "FailOn | None" = None,
    notify: Notify | None = None,
    listener: "Listener | None" = None,
    **options: "Any",  # noqa: ANN401  as `measure`
) -> "Checked":
    """Measure, and compare with the committed baselines; see `ci-perf check`.

    `options` are those of `measure`. Returns `run` and `comparison` with `.verdict` and
    `.exit_code`; a regression is no exception. Without `against` it is likely at most. Pairs of
    earlier runs (`add`, or files) count for the same commits. `checks_before` checks of the pull
    request share the chance of an alarm. A `command` is measured in the place of a suite:
    `command=["python", "train.py"]`, with the step times that it prints by `metric` ("step_ms=iter
    .*time ([0-9.]+)ms") after the first `skip`, or the numbers that it writes in a format by
    `reads` ("vllm"), once `setup` has made each side ready. So are the benchmarks of `pytest`:
    paths of test files or folders.
    """
    from ci_perf.gate import arguments, check, check_fail_on, sources
    from ci_perf.session import Listener

    check_fail_on(fail_on)
    heard, say = listener or Listener(), notify or say_nothing
    top = arguments.root_of(root)
    asked = {"suite": suite, **options}
    with sources.open_source(
        top,
        asked,
        command=command,
        metric=metric,
        skip=skip,
        reads=reads,
        setup=setup,
        notify=say,
    ) as by:
        measuring = arguments.measure_options(root, by)
        return check.check(measuring, fail_on=fail_on, notify=say, listener=heard)


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
        notify=notify or say_nothing,
    )


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
    until: str = "",
    patch: Location | None = None,
    label: str = "",
    notify: Notify | None = None,
) -> "tuple[Acceptance, ...]":
    """Make a run the new baseline: write the files that you then commit; see `ci-perf accept`.

    Returns what became of each workload. `reason` says why a number may get worse, `label` names
    the run in messages; `patch` leaves the baselines alone; `until` is the last day of an accepted
    loss. Raises RefusedError.
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
        until=until,
        patch=None if patch is None else arguments.below(root, patch),
    )
    return accept.accept(accepted, options, label=label or name, notify=notify or say_nothing)


def __getattr__(name: str) -> "Any":  # noqa: ANN401  any function
    """Return what workload files import, or a function that a feature adds: `ci_perf.bisect`."""
    from ci_perf.hooks import find_function, load

    is_own = name in {"Context", "Workload"}
    attribute = load(f"ci_perf.workload:{name}") if is_own else find_function(name)
    # Kept, so that each later use costs a lookup: `record` is called in each step of a loop.
    globals()[name] = attribute
    return attribute
