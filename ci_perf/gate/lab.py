"""Open a session: who hears of signals, the base, what launches, what is set up, the machine."""

import contextlib
import dataclasses
import os
import shlex
import sys
from collections.abc import Callable, Container, Iterator
from pathlib import Path

import msgspec

from ci_perf import hooks, session, worktree
from ci_perf import suite as suites
from ci_perf.api_types import Notify
from ci_perf.errors import OF_MACHINE, CiPerfError, UsageError
from ci_perf.gate import commit_suite, runners
from ci_perf.gate.options import MeasureOptions
from ci_perf.launch import child_environment, local, side_paths, side_python
from ci_perf.launch.run_task import Launcher
from ci_perf.launch.side_python import SidePython
from ci_perf.model.base import MAX_ERROR_CHARS, Side
from ci_perf.model.run import OtherEnvironment
from ci_perf.model.suite import Plan
from ci_perf.model.task import MachineDescription
from ci_perf.program.tree_sources import FolderTree
from ci_perf.session import Lab, Listener
from ci_perf.system import scratch, signals
from ci_perf.system.signals import Interrupts
from ci_perf.worktree import Checkout, run_setup


@contextlib.contextmanager
def open(  # noqa: A001  read as `lab.open`
    plan: Plan,
    options: MeasureOptions,
    notify: Notify,
    listener: Listener,
    interrupts: Interrupts | None = None,
) -> Iterator[Lab]:
    """Provide an open session, beside the base that options ask for.

    Raises CiPerfError of the head or the machine, and KeyboardInterrupt. Within, signals are noted,
    as `interrupts` of a caller who notes them already: the caller asks for them.
    """
    with contextlib.ExitStack() as stack:
        interrupts, base = interrupts or stack.enter_context(signals.note_signals()), None
        if options.against is not None:
            python, *notes = _open_python(plan, options, stack)
            checkout = worktree.base_of(
                Path(plan.root),
                options.against,
                has_setup=bool(plan.setup.command),
                may_be_head=python is not None,
            )
            base = with_plan(stack.enter_context(checkout), plan, options)
            base = dataclasses.replace(base, python=python, notes=(*notes, *base.notes))
        opened = open_with_base(base, plan, options, interrupts, notify, listener)
        yield stack.enter_context(opened)


@contextlib.contextmanager
def open_with_base(
    base: Checkout | None,
    plan: Plan,
    options: MeasureOptions,
    interrupts: Interrupts,
    notify: Notify,
    listener: Listener,
    *,
    ready: Container[Path] = (),
) -> Iterator[Lab]:
    """Provide an open session beside a base that is checked out; `ready` are roots without setup.

    Raises as `open` does.
    """
    identity = session.new_identity()
    with _launcher(base, plan, options, identity, interrupts, notify) as launcher:
        base = _set_up(plan, base, launcher, interrupts, notify, ready)
        listener.began()
        try:
            machine = _describe(plan, launcher, options, interrupts)
            base = _note_machine(base, machine, notify)
            if base and base.python:
                base = _with_environment(base, plan, machine, launcher, interrupts)
            yield Lab(
                root=plan.root,
                python_path=plan.python_path,
                launcher=launcher,
                listener=listener,
                interrupts=interrupts,
                machine=machine,
                lock_timeout_s=options.lock_timeout_s,
                base=base,
                wait_s=options.wait_s if options.awaits_quiet else 0.0,
                identity=identity,
            )
        finally:
            listener.ended()


def describe_machine(
    plan: Plan, options: MeasureOptions, interrupts: Interrupts, notify: Notify
) -> MachineDescription:
    """Describe the machine for those who launch nothing on it. Raises as `open` does."""
    identity = session.new_identity()
    with _launcher(None, plan, options, identity, interrupts, notify) as launcher:
        return _describe(plan, launcher, options, interrupts)


def _launcher(
    base: Checkout | None,
    plan: Plan,
    options: MeasureOptions,
    identity: str,
    ending: Interrupts,
    notify: Notify,
) -> contextlib.AbstractContextManager[Launcher]:
    """Return what launches processes, once it is entered. Raises CiPerfError, KeyboardInterrupt."""
    where, files = options.runner, options.workloads
    if where.kind == runners.LOCAL:
        home = options.home or (base.head_top if base else None)
        return local.launcher(Path(plan.root), home, _find_pythons(base, plan, options))
    opened: Callable[..., contextlib.AbstractContextManager[Launcher]]
    opened = hooks.load(hooks.find_launchers()[where.kind].open)
    return opened(where, plan, files, base, run=identity, ending=ending, notify=notify)


def _describe(
    plan: Plan, launcher: Launcher, options: MeasureOptions, interrupts: Interrupts
) -> MachineDescription:
    interrupts.check()  # what came until here, nobody else has heard
    device = plan.device if options.device == "auto" else options.device
    machine = session.describe(plan, launcher, device, interrupts)
    interrupts.check()
    return machine


def _open_python(
    plan: Plan, options: MeasureOptions, stack: contextlib.ExitStack
) -> tuple[SidePython | None, *tuple[str, ...]]:
    """Return the Python of the base where options name one, and what to note. Raises UsageError."""
    if options.base_image is not None:
        return (SidePython(python="python3", image=options.base_image),)
    if options.base_python is None:
        return (None,)
    ours = Path(sys.prefix, "bin", "python")
    folder = stack.enter_context(scratch.folder()).path
    python, note = side_python.open_base(options.base_python, folder, _list_files(plan))
    for workload in plan.workloads:
        command = str(workload.parameters.get("command", ""))
        if str(ours) in command or sys.executable in command:
            raise UsageError(
                f"{workload.id}: expected a command that finds Python by PATH (`python train.py`), "
                f"found one that names {ours}: base and head would run the same Python"
            )
        for whose, side in (("base", python), ("head", SidePython())):
            if command and (other := side_python.find_other_program(side, command)):
                raise UsageError(
                    f"{workload.id}: expected programs of {side.python}, found that the {whose} "
                    f"would run {other} by PATH; next: a virtual environment, where `python` is "
                    "its own; activate that of the head"
                )
    return python, note


def _list_files(plan: Plan) -> list[Path]:
    return [Path(each.file) for each in (*plan.workloads, *plan.tests)]


def _find_pythons(
    base: Checkout | None, plan: Plan, options: MeasureOptions
) -> dict[Path, SidePython]:
    pythons = {Path(plan.root): SidePython(packages=options.packages)}
    return {**pythons, base.root: base.python} if base and base.python else pythons


def _with_environment(
    base: Checkout,
    plan: Plan,
    machine: MachineDescription,
    launcher: Launcher,
    interrupts: Interrupts,
) -> Checkout:
    """Return the base with what differs in its environment. Raises CiPerfError: it lacks a device.

    Each Python is asked itself.
    """
    assert base.python is not None
    of_base = launcher.for_side(base.root)
    try:
        other = session.describe(plan, of_base, machine.device, interrupts)
        installed = of_base.list_installed()
    except CiPerfError as error:
        text = f"the environment of the base, {base.python.image or base.python.python}: {error}"
        raise CiPerfError(text, output=error.output) from None
    before, after = other.environment.soft, machine.environment.soft
    names = ("python", "cuda", "cudnn")
    differences = side_python.list_differences(
        installed,
        launcher.list_installed(),
        {name: (getattr(before, name), getattr(after, name)) for name in names},
        _list_files(plan),
    )
    environment = OtherEnvironment(
        python=base.python.python, image=base.python.image, differences=differences
    )
    return dataclasses.replace(base, environment=environment)


def _note_machine(
    base: Checkout | None, machine: MachineDescription, notify: Notify
) -> Checkout | None:
    """Say what there is to know of a machine; return the base with it, for the report."""
    if not machine.note:
        return base
    notify(f"note: {machine.note}")
    return base and dataclasses.replace(base, notes=(*base.notes, machine.note))


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


def _set_up(
    plan: Plan,
    checkout: Checkout | None,
    launcher: Launcher,
    ending: Interrupts,
    notify: Notify,
    ready: Container[Path],
) -> Checkout | None:
    """Have each side's own command make it ready; a base that cannot be has its trouble.

    Raises CiPerfError of the head or the machine, KeyboardInterrupt.
    """
    _set_up_side(plan, launcher, Path(plan.root), "head", ending, notify)
    if checkout is None:
        return None
    for note in (*checkout.notes, *filter(None, [checkout.trouble])):
        notify(f"note: {note}")
    trouble = checkout.trouble
    try:
        if checkout.plan and checkout.root not in ready:
            _set_up_side(checkout.plan, launcher, checkout.root, "base", ending, notify)
    except OF_MACHINE:
        raise
    except CiPerfError as error:
        notify(f"note: {error}\n{error.output}".rstrip())
        trouble = str(error)[:MAX_ERROR_CHARS]
    notes = launcher.notes(checkout.root)
    for note in notes:
        notify(f"note: {note}")
    return dataclasses.replace(checkout, notes=(*checkout.notes, *notes), trouble=trouble)


def _set_up_side(
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
    shown = child_environment.hide_credentials(plan.setup.command, os.environ)
    notify(f"setup of the {side}: {shown}")
    run_setup(
        plan.setup.command,
        launcher,
        root=root,
        side=side,
        timeout_s=plan.setup.timeout_s,
        interrupted=ending.have_come,
    )
