"""Measure a suite: from options to a run, and to its file. Gives no verdict."""

import contextlib
import dataclasses
import math
import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ci_perf import session, worktree
from ci_perf import suite as suites
from ci_perf.api_types import Notify
from ci_perf.baselines import layout
from ci_perf.errors import CannotWriteError, CiPerfError, UsageError
from ci_perf.gate import collecting, commit_suite, compare, run_summary, runners
from ci_perf.gate.options import MOST_PROCESSES, MeasureOptions
from ci_perf.gate.traces import describe_traces, list_sides, prepare_folder
from ci_perf.judging.earlier_checks import Before, Offered
from ci_perf.launch import side_paths
from ci_perf.launch.run_task import Launcher
from ci_perf.measuring import distrust
from ci_perf.model.base import MAX_ERROR_CHARS, Side
from ci_perf.model.run import Checks, Run
from ci_perf.model.suite import MOST_THREADS, OWN, Plan
from ci_perf.model.validity import validity_of
from ci_perf.program.tree_sources import FolderTree
from ci_perf.same_program.records import BaseSide, RecordCache, Records
from ci_perf.session import Listener
from ci_perf.system import files, signals
from ci_perf.system.signals import Interrupts
from ci_perf.worktree import Checkout, run_setup
from ci_perf.worktree.checkout_state import CheckoutState, describe_move, read_state


def measure(options: MeasureOptions, *, notify: Notify, listener: Listener) -> Run:
    """Measure a suite as options say, by the calibration of the machine.

    Raises UsageError, InvalidFileError and other CiPerfErrors before anything is measured, and
    KeyboardInterrupt once an interrupted run is written.
    """
    if options.traces is not None and (options.against is None or not options.explain_s):
        raise UsageError("--traces: expected --against REF, and not --explain 0s")
    if options.add and options.against is None:
        raise UsageError("--add: expected --against REF, whose pairs are added to those of the run")
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
) -> Run:
    """Measure a plan that options have made, and write the run, interrupted or not.

    A calibration below `baselines` completes the plan. Raises as `measure` does.
    """
    if options.output is not None:
        files.check_target(options.output)
    identity = session.new_identity()
    device = plan.device if options.device == "auto" else options.device
    root = Path(plan.root)
    commit = read_state(root, None).commit
    # An interrupt ends the measuring in its own way; one that comes later finds the run written.
    with open_launcher(plan, options, identity, notify) as (ending, checkout, launcher):
        base = set_up(plan, checkout, launcher, ending, notify)
        base_root = base.root if base else None
        state = dataclasses.replace(read_state(root, base_root), commit=commit)
        with tell_listener(listener):
            ending.check()  # what came until here, nobody else has heard
            if plan.tests:
                machine = session.describe(plan, launcher, device, ending)
                timeout_s = options.lock_timeout_s
                with session.held(machine, plan, identity, listener, ending, timeout_s=timeout_s):
                    come = ending.have_come
                    plan = collecting.collect_plan(
                        plan, root, runs=True, notify=notify, interrupted=come
                    )
                    base = base and collecting.collect_base(base, plan, notify, come)
                ending.check()
            against = None
            if base:
                against = session.Against(
                    checkout=base,
                    budget_s=options.budget_s,
                    # How often the head is launched before, the history says, unless somebody has.
                    routes=options.processes is None,
                    judge=compare.BaselineJudge(base.source.commit, options, options.suspects),
                    before=_before(options, notify),
                    explain_budget_s=options.explain_s or None,
                    traces=prepare_folder(options.traces),
                )
            run = session.measure(
                plan,
                launcher,
                listener,
                device=device,
                lock_timeout_s=options.lock_timeout_s,
                against=against,
                records=find_records(plan, options, base, notify) if baselines else None,
                baselines=baselines and _baselines_of_base(baselines, options, base),
                identity=identity,
                wait_s=options.wait_s if options.awaits_quiet else 0.0,
            )
            run = _distrust_move(run, state, read_state(root, base_root))
            run = msgspec.structs.replace(run, unit=options.unit)
        if options.output is not None:
            try:
                files.write(options.output, run)
            except CannotWriteError as error:
                raise RunNotWrittenError(str(error), run) from None
    for line in describe_traces(options.traces, list_sides(run.profiled)):
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
        "--explain": options.explain_s,
    }
    for name, value in seconds.items():
        if not (isinstance(value, int | float) and 0 <= value < math.inf):
            raise UsageError(f"{name}: expected seconds, 0 or more, found {value!r}")
    before = options.checks_before
    if isinstance(before, int) and before < 0:
        raise UsageError(f"--checks-before: expected a number from 0 on, found {before}")


@contextlib.contextmanager
def tell_listener(listener: Listener) -> Iterator[None]:
    """Tell a listener when a session begins and ends."""
    listener.began()
    try:
        yield
    finally:
        listener.ended()


@contextlib.contextmanager
def open_launcher(
    plan: Plan, options: MeasureOptions, identity: str, notify: Notify
) -> Iterator[tuple[Interrupts, Checkout | None, Launcher]]:
    """Provide what hears of an interrupt, the base that is asked for, and what launches processes.

    Raises CiPerfError, KeyboardInterrupt.
    """
    with contextlib.ExitStack() as stack:
        ending = stack.enter_context(signals.note_signals())
        checkout = None
        if options.against is not None:
            has_setup = bool(plan.setup.command)
            base = worktree.base_of(Path(plan.root), options.against, has_setup=has_setup)
            checkout = with_plan(stack.enter_context(base), plan, options)
        launcher = runners.launcher(
            options.runner,
            plan,
            options.workloads,
            checkout,
            run=identity,
            ending=ending,
            notify=notify,
        )
        yield ending, checkout, stack.enter_context(launcher)


def with_plan(checkout: Checkout, plan: Plan, options: MeasureOptions) -> Checkout:
    """Return the base with what its own suite.toml says, or why that cannot be read."""
    root, home = Path(plan.root), checkout.head_top
    if path := _find_path_inside(plan, root, home):
        raise UsageError(
            f"command, setup: expected paths below the root, found {path!r}: base and head would "
            "both run the head's files"
        )
    try:
        before = _find_base_plan(plan, options, checkout)
        if path := _find_path_inside(before, checkout.root, home):
            raise UsageError(f"command, setup: {path!r} leads into the head's checkout")
    except CiPerfError as error:
        said = str(error).replace(f"{checkout.root}/", "the base: ")
        return dataclasses.replace(checkout, trouble=said[:MAX_ERROR_CHARS])
    known = {workload.id for workload in before.workloads}
    new = [workload.id for workload in plan.workloads if workload.id not in known]
    note = f"not in the suite of the base, launched there as the head says: {', '.join(new)}"
    return dataclasses.replace(checkout, plan=before, notes=(*checkout.notes, *[note] * bool(new)))


def _find_path_inside(plan: Plan, root: Path, home: Path) -> str:
    """Return the first path in a command or setup that leads from any side into `home`, or ""."""
    texts = [plan.setup.command]
    for workload in plan.workloads:
        if "command" in workload.parameters:
            texts += [value for value in workload.parameters.values() if isinstance(value, str)]
    words: list[str] = []
    for text in texts:
        words.append(text)
        with contextlib.suppress(ValueError):  # the launch says what is wrong with it
            words += shlex.split(text)
    inside = (side_paths.find_path_inside(word, root, home) for word in words)
    return next(filter(None, inside), "")


def _find_base_plan(plan: Plan, options: MeasureOptions, checkout: Checkout) -> Plan:
    """Return the suite as the base has it; without workloads where it has none.

    Raises CiPerfError.
    """
    folder = commit_suite.folder_below(Path(plan.root), plan.suite, options.workloads)
    if folder is None:
        return plan
    if commit_suite.has_suite(FolderTree(checkout.root), folder):
        with contextlib.suppress(UsageError):  # the head has added the suite to the file
            return suites.plan(
                checkout.root / folder,
                plan.suite,
                root=checkout.root,
                protocol=options.protocol,
            )
    return msgspec.structs.replace(plan, workloads=())


def _baselines_of_base(baselines: Path, options: MeasureOptions, checkout: Checkout | None) -> Path:
    """Return the folder of baselines that the head cannot have changed."""
    folder = commit_suite.path_below(options.root, baselines)
    return baselines if checkout is None or folder is None else checkout.root / folder


def set_up(
    plan: Plan, checkout: Checkout | None, launcher: Launcher, ending: Interrupts, notify: Notify
) -> Checkout | None:
    """Have each side's own command make it ready; a base that cannot be has its trouble.

    Raises CiPerfError of the head, KeyboardInterrupt.
    """
    set_up_side(plan, launcher, Path(plan.root), "head", ending, notify)
    if checkout is None:
        return None
    for note in (*checkout.notes, *filter(None, [checkout.trouble])):
        notify(f"note: {note}")
    trouble = checkout.trouble
    try:
        if checkout.plan:
            set_up_side(checkout.plan, launcher, checkout.root, "base", ending, notify)
    except CiPerfError as error:
        notify(f"note: {error}\n{error.output}".rstrip())
        trouble = str(error)[:MAX_ERROR_CHARS]
    notes = launcher.notes(checkout.root)
    for note in notes:
        notify(f"note: {note}")
    return dataclasses.replace(checkout, notes=(*checkout.notes, *notes), trouble=trouble)


def _before(options: MeasureOptions, notify: Notify) -> Before:
    """Read earlier runs, and judge each as it was judged then. Raises InvalidFileError."""
    offered = []
    for source in options.add:
        run, label = compare.read_run(source)
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
    if checkout and checkout.plan and not (checkout.trouble or options.all_workloads):
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


def set_up_side(
    plan: Plan,
    launcher: Launcher,
    root: Path,
    side: Side,
    ending: Interrupts,
    notify: Notify,
) -> None:
    """Have the suite's own command make one side ready. Raises CiPerfError, KeyboardInterrupt."""
    if not plan.setup.command:
        return
    notify(f"setup of the {side}: {plan.setup.command}")
    run_setup(
        plan.setup.command,
        launcher,
        root=root,
        side=side,
        timeout_s=plan.setup.timeout_s,
        interrupted=ending.have_come,
    )
