"""The step that `run` and `check` share: from options to a run on disk."""

import contextlib
import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ci_perf import session, worktree
from ci_perf import suite as suites
from ci_perf.baselines import machine_documents, summaries
from ci_perf.cli import options, output, progress
from ci_perf.errors import ExitCode
from ci_perf.gate import compare, runners
from ci_perf.judge import compare as decide
from ci_perf.judge import summarise
from ci_perf.launch import Launcher
from ci_perf.measure import distrust
from ci_perf.model.base import Scalar
from ci_perf.model.run import Run
from ci_perf.model.suite import Plan
from ci_perf.model.summary import Summary
from ci_perf.model.validity import Reason, Status
from ci_perf.system import files, signals
from ci_perf.system.signals import Interrupts
from ci_perf.worktree import Checkout, setup


def plan(
    folder: Path,
    suite: str,
    names: tuple[str, ...],
    *,
    device: str,
    processes: int | None,
    is_paired: bool = False,
) -> Plan:
    """Make the plan that the options ask for. Raises BadParameter, UsageError, InvalidFileError.

    Where pairs may follow, the head is launched no more often than the screen needs, unless
    `processes` says so.
    """
    options.check_device(device)
    protocol: Mapping[str, Scalar] = {} if processes is None else {"processes": processes}
    found = suites.plan(folder, suite, selection=names, root=options.root(), protocol=protocol)
    return suites.screening(found) if is_paired and processes is None else found


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """The base that is launched beside the head: what --against and --budget say.

    `undecided` is asked after every pair, and `accepted` once, of a run and the root of the base's
    checkout: see `session.Against`.
    """

    ref: str
    budget_s: float
    undecided: session.Undecided
    accepted: Callable[[Run, Path], dict[str, tuple[str, ...]]]


def beside(ref: str | None, budget_s: float, baselines: Path, folder: Path) -> Beside | None:
    """Return the base that is launched where the baselines do not clear the head, if asked for."""
    if ref is None:
        return None
    return Beside(
        ref=ref,
        budget_s=budget_s,
        undecided=_Undecided(baselines, folder),
        accepted=lambda run, base: _accepted(run, baselines, base),
    )


def _accepted(run: Run, root: Path, base: Path) -> dict[str, tuple[str, ...]]:
    """Name what was accepted since the base; nothing where baselines lie outside the repository."""
    here = Path(os.path.realpath(root))
    repository = Path(os.path.realpath(options.root()))
    if not here.is_relative_to(repository):
        return {}
    there = base / here.relative_to(repository)
    return summaries.accepted_since(root, there, run.environment.hard, run.suite)


class _Undecided:
    """Names what another pair may decide, by what was committed when it was first asked."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self._folder = folder
        self._known: tuple[Summary, compare.Rules] | None = None

    def __call__(self, run: Run) -> tuple[tuple[str, ...], int]:
        """See `session.Against`."""
        if self._known is None:
            machine = run.environment.hard
            found = compare.rules(self._folder, run.suite, self._root, machine, notify=output.say)
            self._known = compare.committed(run, self._root), found
        base, found = self._known
        head = summarise.run(run, label="")
        return decide.undecided(base, head, limits=found.limits, tiers=found.tiers)


def measure(
    plan: Plan,
    *,
    device: str,
    lock_timeout_s: float,
    run_file: Path,
    runner: runners.Choice,
    workloads: Path,
    baselines: Path | None = None,
    beside: Beside | None = None,
    wait_s: float | None = 0.0,
) -> Run:
    """Measure `plan` and write the run, interrupted or not.

    A calibration below `baselines` completes the plan. See `session.measure`; what `worktree`, the
    suite's own setup and the engine of containers raise is raised before anything is measured.
    """
    files.check_target(run_file)
    settle = machine_documents.settled(baselines) if baselines else session.as_planned
    identity = session.new_identity()
    # An interrupt ends the measuring in its own way; one that comes later finds the run written.
    with (
        signals.noted() as ending,
        _checked_out(plan, beside) as checkout,
        runners.launcher(
            runner, plan, workloads, checkout, run=identity, ending=ending
        ) as launcher,
    ):
        against = _against_base(plan, beside, checkout, launcher, ending)
        with progress.listener() as listener:
            ending.check()  # what came until here, nobody else has heard
            run = session.measure(
                plan,
                launcher,
                listener,
                device=plan.device if device == "auto" else device,
                lock_timeout_s=lock_timeout_s,
                against=against,
                settle=settle,
                identity=identity,
                wait_s=wait_s,
            )
        files.write(run_file, run)
    output.say(_told(run, run_file))
    return run


@contextlib.contextmanager
def _checked_out(plan: Plan, beside: Beside | None) -> Iterator[Checkout | None]:
    """Provide the base in a worktree of its own."""
    if beside is None:
        yield None
        return
    has_setup = bool(plan.setup.command)
    with worktree.base_of(Path(plan.root), beside.ref, has_setup=has_setup) as checkout:
        yield checkout


def _against_base(
    plan: Plan,
    beside: Beside | None,
    checkout: Checkout | None,
    launcher: Launcher,
    ending: Interrupts,
) -> session.Against | None:
    """Set the sides up as the suite says. Raises CiPerfError, KeyboardInterrupt."""
    _set_up(plan, launcher, Path(plan.root), "head", ending)
    if beside is None or checkout is None:
        return None
    notes = (*checkout.notes, *runners.notes(launcher))
    for note in notes:
        output.say(f"note: {note}")
    _set_up(plan, launcher, checkout.root, "base", ending)
    return session.Against(
        checkout=dataclasses.replace(checkout, notes=notes),
        budget_s=beside.budget_s,
        undecided=beside.undecided,
        accepted=lambda run: beside.accepted(run, checkout.root),
    )


def _set_up(
    plan: Plan, launcher: Launcher, root: Path, side: setup.Side, ending: Interrupts
) -> None:
    """Have the suite's own command make one side ready. Raises CiPerfError, KeyboardInterrupt."""
    if not plan.setup.command:
        return
    output.say(f"setup of the {side}: {plan.setup.command}")
    setup.run(
        plan.setup.command,
        launcher,
        root=root,
        side=side,
        timeout_s=plan.setup.timeout_s,
        interrupted=ending.have_come,
    )


def exit_code(run: Run) -> ExitCode:
    """Say how measuring went, before anything is judged."""
    if is_interrupted(run):
        return ExitCode.INTERRUPTED
    return ExitCode.NO_ANSWER if run.failed else ExitCode.OK


def is_interrupted(run: Run) -> bool:
    """Whether a person or a CI ended this run early."""
    return distrust.INTERRUPTED in run.validity.reasons


def _told(run: Run, run_file: Path) -> str:
    done, total = len(run.measured), len(run.measured) + len(run.failed)
    lines = [f"{done} of {total} workloads measured in {run.duration_s:.0f} s"]
    lines += _against(run.validity.reasons)
    if run.failed and not is_interrupted(run):
        lines.append(f"next: see the reasons above; {_where_to_look(run)}")
    lines.append(f"run: {run_file}")
    return "\n".join(lines)


def _where_to_look(run: Run) -> str:
    image = run.environment.image
    if image is None:
        return "`ci-perf doctor` says what a machine lacks"
    return (
        f"`ci-perf doctor --runner {image.engine}` says what a machine lacks; a container lacks "
        "network, variables of the host, and the right to write but in /tmp, /cache, /checkpoints"
    )


def _against(reasons: tuple[Reason, ...]) -> list[str]:
    """Say what speaks against the machine, in one line per code: a bad one is bad all the time."""
    by_code: dict[tuple[Status, str], list[Reason]] = {}
    for reason in reasons:
        by_code.setdefault((reason.status, reason.code), []).append(reason)
    return [
        f"{status.value}: {code}: {_where(found[0])}{found[0].detail}{_and_others(found[1:])}"
        for (status, code), found in by_code.items()
    ]


def _where(reason: Reason) -> str:
    return f"{reason.workload}: " if reason.workload else ""


def _and_others(reasons: list[Reason]) -> str:
    names = [reason.workload for reason in reasons]
    return f"; likewise {', '.join(names)}" if names else ""
