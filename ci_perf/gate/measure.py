"""Measure a suite: from options to a run, and to its file. Gives no verdict."""

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import msgspec

from ci_perf import session
from ci_perf import suite as suites
from ci_perf.api_types import Notify
from ci_perf.baselines import layout
from ci_perf.errors import CannotWriteError, UsageError
from ci_perf.gate import collecting, commit_suite, compare, lab, run_summary, runners
from ci_perf.gate.kernels import drop_sources, prepare_empty, write_kernels
from ci_perf.gate.options import MOST_PROCESSES, MeasureOptions
from ci_perf.gate.traces import describe_traces, list_sides, prepare_folder
from ci_perf.judging.earlier_checks import Before, Offered
from ci_perf.measuring import distrust
from ci_perf.model.container import Named, parse_reference
from ci_perf.model.run import Checks, Run
from ci_perf.model.suite import MOST_THREADS, OWN, Plan
from ci_perf.model.validity import validity_of
from ci_perf.program.tree_sources import FolderTree
from ci_perf.same_program.records import BaseSide, RecordCache, Records
from ci_perf.session import Listener, PairJudge
from ci_perf.system import files
from ci_perf.system.signals import Interrupts
from ci_perf.worktree import Checkout
from ci_perf.worktree.checkout_state import CheckoutState, describe_move, read_state


def measure(options: MeasureOptions, *, notify: Notify, listener: Listener) -> Run:
    """Measure a suite as options say, by the calibration of the machine.

    Raises UsageError, InvalidFileError and other CiPerfErrors before anything is measured, and
    KeyboardInterrupt once an interrupted run is written.
    """
    if options.traces is not None and (options.against is None or options.explain_s == 0):
        raise UsageError("--traces: expected --against REF, and not --explain 0s")
    if options.kernels is not None and options.against is None:
        raise UsageError("--kernels: expected --against REF, whose pairs have both sides")
    if options.fail_fast and options.against is None:
        raise UsageError("--fail-fast: expected --against REF, whose pairs prove a loss")
    if options.add and options.against is None:
        raise UsageError("--add: expected --against REF, whose pairs are added to those of the run")
    for name, environment in (("image", options.base_image), ("python", options.base_python)):
        if environment is not None:
            _check_base_environment(options, f"--base-{name}")
    if options.base_image is not None:
        _check_base_image(options.base_image, options)
    if options.against is not None:
        layout.read_everything(options.baselines, options.suite)
    return measure_plan(
        plan(options, has_tests=True),
        options,
        baselines=options.baselines,
        notify=notify,
        listener=listener,
    )


def plan(options: MeasureOptions, *, has_tests: bool = False) -> Plan:
    """Make the plan that options ask for; it may have tests where the caller collects them.

    Raises UsageError and InvalidFileError.
    """
    check_device(options.device)
    _check_numbers(options)
    runners.check(options.runner)
    made = suites.plan(
        options.workloads,
        options.suite,
        selection=options.select,
        root=options.root,
        protocol=options.protocol,
    )
    if not has_tests:
        collecting.refuse_tests(made)
    if made.tests and options.runner.kind != runners.LOCAL:
        raise UsageError(
            f"suite {made.suite!r}: expected --runner {runners.LOCAL}, found "
            f"{options.runner.kind}: tests are collected on this host, outside of any container"
        )
    return made


def measure_plan(
    plan: Plan,
    options: MeasureOptions,
    *,
    baselines: Path | None,
    notify: Notify,
    listener: Listener,
    interrupts: Interrupts | None = None,
    make_judge: Callable[..., PairJudge] = compare.BaselineJudge,
) -> Run:
    """Measure a plan that options have made, and write the run, interrupted or not.

    A calibration below `baselines` completes the plan. `interrupts` are those of a caller who notes
    signals already. `make_judge` makes what asks for pairs. Raises as `measure` does.
    """
    if options.output is not None:
        files.check_target(options.output)
    kernels = prepare_empty(options.kernels)
    root = Path(plan.root)
    commit = read_state(root, None).commit
    # An interrupt ends the measuring in its own way; one that comes later finds the run written.
    with lab.open(plan, options, notify, listener, interrupts) as here:
        base = here.base
        base_root = base.root if base else None
        state = dataclasses.replace(read_state(root, base_root), commit=commit)
        if plan.tests or (base and base.plan and base.plan.tests):
            come = here.interrupts.have_come
            with here.held():
                at_once = here.checks.at_once() > 1
                plan, base = collecting.collect_sides(
                    plan, base, at_once=at_once, notify=notify, interrupted=come
                )
            here.interrupts.check()
        against = None
        if base:
            against = session.Against(
                checkout=base,
                budget_s=options.budget_s,
                # How often the head is launched before, the history says, unless somebody has.
                routes=options.processes is None,
                judge=make_judge(
                    base.source.commit,
                    options,
                    options.suspects,
                    has_history=base.environment is None,
                ),
                before=_before(options, notify),
                fail_fast=options.fail_fast,
                explain_budget_s=options.explain_budget_s,
                traces=prepare_folder(options.traces),
                keeps_sources=kernels is not None,
            )
        run = session.measure(
            here,
            plan,
            against=against,
            records=find_records(plan, options, base, notify) if baselines else None,
            baselines=baselines and _baselines_of_base(baselines, options, base),
        )
        sources, run = run, drop_sources(run) if kernels else run
        run = _distrust_move(run, state, read_state(root, base_root))
        run = msgspec.structs.replace(run, unit=options.unit)
        if options.output is not None:
            try:
                files.write(options.output, run)
            except CannotWriteError as error:
                raise RunNotWrittenError(str(error), run) from None
    for line in describe_traces(options.traces, list_sides(run.profiled)):
        notify(line)
    for line in write_kernels(kernels, sources) if kernels else []:
        notify(line)
    notify(run_summary.text(run, options.output))
    if run_summary.is_interrupted(run):
        raise KeyboardInterrupt
    return run


def _distrust_move(run: Run, before: CheckoutState, after: CheckoutState) -> Run:
    """Return a run that is invalid if the checkout has changed meanwhile."""
    paired = {each.workload for each in run.paired if each.pairs}
    has_pairs = all(each.workload in paired for each in run.measured)
    how = describe_move(before, after, has_pairs=has_pairs)
    if not how:
        return run
    reasons = (*run.validity.reasons, distrust.distrust_moved(how))
    return msgspec.structs.replace(run, validity=validity_of(reasons))


class RunNotWrittenError(CannotWriteError):
    """A run was measured, and its file could not be written: here it is."""

    def __init__(self, message: str, run: Run) -> None:
        super().__init__(message)
        self.run = run


def _check_base_environment(options: MeasureOptions, name: str) -> None:
    """Refuse what another environment for the base does not fit. Raises UsageError."""
    if options.against is None:
        raise UsageError(f"{name}: expected --against REF, such as --against HEAD")
    if options.base_python is not None and options.base_image is not None:
        raise UsageError("--base-image: expected no --base-python: an image has its own Python")
    if options.base_python is not None and options.runner.kind != runners.LOCAL:
        raise UsageError(
            f"--base-python: expected --runner {runners.LOCAL}, found {options.runner.kind}: its "
            "image has the Python; next: --base-image NAME@sha256:DIGEST"
        )
    if options.add:
        raise UsageError(f"{name}: expected no --add, whose pairs had the same packages")


def _check_base_image(image: str, options: MeasureOptions) -> None:
    """Refuse what is no image for the base, or has none for the head beside it."""
    if options.runner.kind == runners.LOCAL:
        raise UsageError(
            f"--base-image: expected --runner {' or '.join(runners.find_kinds()[1:])}, found "
            f"{runners.LOCAL}: add it, and the image of the head ([container] in suite.toml, or "
            "--container image=NAME@sha256:DIGEST)"
        )
    try:
        asked = parse_reference(image)
    except ValueError as error:
        raise UsageError(f"--base-image: {error}") from None
    if isinstance(asked, Named) and not asked.digest:
        raise UsageError(
            f"--base-image: expected one that is pinned (NAME@sha256:DIGEST), found {image}, which "
            f"can change; next: `{options.runner.kind} image inspect {image}` shows its RepoDigests"
        )


def check_device(device: str) -> None:
    """Refuse what can be no device. Raises UsageError."""
    kind, _, index = device.partition(":")
    if device in {"auto", "cpu", "cuda"} or (kind == "cuda" and index.isdecimal()):
        return
    raise UsageError(f"--device: expected auto, cpu, cuda or cuda:N, found {device!r}")


def _check_numbers(options: MeasureOptions) -> None:
    """Refuse what is no number within its bounds. Raises UsageError."""
    if options.processes not in [None, *range(1, MOST_PROCESSES + 1)]:
        raise UsageError(
            f"--processes: expected a number from 1 to {MOST_PROCESSES}, found "
            f"{options.processes!r}"
        )
    if options.threads not in [None, OWN, *range(1, MOST_THREADS + 1)]:
        raise UsageError(
            f"--threads: expected a number from 1 to {MOST_THREADS}, or {OWN}, found "
            f"{options.threads!r}"
        )
    seconds: dict[str, object] = {
        "--wait": options.wait_s or 0.0,
        "--budget": options.budget_s,
        "--explain": options.explain_s or 0.0,
    }
    for name, value in seconds.items():
        if not (isinstance(value, int | float) and 0 <= value < math.inf):
            raise UsageError(f"{name}: expected seconds, 0 or more, found {value!r}")
    before = options.checks_before
    if isinstance(before, int) and before < 0:
        raise UsageError(f"--checks-before: expected a number from 0 on, found {before}")


def _baselines_of_base(baselines: Path, options: MeasureOptions, checkout: Checkout | None) -> Path:
    """Return the folder of baselines that the head cannot have changed."""
    folder = commit_suite.path_below(options.root, baselines)
    return baselines if checkout is None or folder is None else checkout.root / folder


def _before(options: MeasureOptions, notify: Notify) -> Before:
    """Read earlier runs, and judge each as it was judged then. Raises InvalidFileError."""
    offered = []
    for source in options.add:
        run, label = compare.read_run(source)
        run.refuse_experiment(f"--add: {label}")
        comparison = compare.with_baselines(run, options, label=label, fail_on=None, notify=notify)
        offered.append(Offered(run=run, comparison=comparison, label=label))
    said = options.checks_before
    checks = None if said is None else Checks(before=None if said == "unknown" else said)
    return Before(checks=checks, offered=offered)


def find_records(
    plan: Plan,
    options: MeasureOptions,
    checkout: Checkout | None,
    notify: Notify,
    *,
    believes_cache: bool = False,
) -> Records:
    """Return what tells which workloads need no launch; it keeps what launches record.

    What lets a change pass believes no cache.
    """
    base = None
    is_other = options.all_workloads or (checkout is not None and checkout.python is not None)
    if checkout and checkout.plan and not (checkout.trouble or is_other):
        base = BaseSide(
            tree=FolderTree(checkout.root), plan=checkout.plan, dependencies=checkout.dependencies
        )
    return Records(
        plan=plan,
        head=FolderTree(Path(plan.root)),
        baselines=_baselines_of_base(options.baselines, options, checkout),
        cache=RecordCache(plan.suite, notify),
        base=base,
        believes_cache=believes_cache,
    )
