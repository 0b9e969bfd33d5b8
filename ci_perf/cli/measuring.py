"""The step that `run` and `check` share: from options to a run on disk."""

from collections.abc import Mapping
from pathlib import Path

from ci_perf import files, session
from ci_perf import suite as suites
from ci_perf.cli import options, output, progress
from ci_perf.errors import ExitCode
from ci_perf.launch import interrupts, local
from ci_perf.measure.validity import preflight
from ci_perf.model.base import Scalar
from ci_perf.model.run import Run
from ci_perf.model.suite import Plan
from ci_perf.model.validity import Reason, Status


def plan(
    folder: Path, suite: str, names: tuple[str, ...], *, device: str, processes: int | None
) -> Plan:
    """Make the plan that the options ask for. Raises BadParameter, UsageError, InvalidFileError."""
    options.check_device(device)
    protocol: Mapping[str, Scalar] = {} if processes is None else {"processes": processes}
    return suites.plan(folder, suite, selection=names, root=options.root(), protocol=protocol)


def measure(plan: Plan, *, device: str, lock_timeout_s: float, run_file: Path) -> Run:
    """Measure `plan` and write the run, interrupted or not."""
    files.check_target(run_file)
    # An interrupt ends the measuring in its own way; one that comes later finds the run written.
    with (
        interrupts.noted(),
        local.launcher(options.root()) as launcher,
        progress.listener() as listener,
    ):
        run = session.measure(
            plan,
            launcher,
            listener,
            device=plan.device if device == "auto" else device,
            lock_timeout_s=lock_timeout_s,
        )
        files.write(run_file, run)
    output.say(_told(run, run_file))
    return run


def exit_code(run: Run) -> ExitCode:
    """Say how measuring went, before anything is judged."""
    if is_interrupted(run):
        return ExitCode.INTERRUPTED
    return ExitCode.NO_ANSWER if run.failed else ExitCode.OK


def is_interrupted(run: Run) -> bool:
    """Whether a person or a CI ended this run early."""
    return preflight.INTERRUPTED in run.validity.reasons


def _told(run: Run, run_file: Path) -> str:
    done, total = len(run.measured), len(run.measured) + len(run.failed)
    lines = [f"{done} of {total} workloads measured in {run.duration_s:.0f} s"]
    lines += _against(run.validity.reasons)
    if run.failed and not is_interrupted(run):
        lines.append("next: see the reasons above; `ci-perf doctor` says what a machine lacks")
    lines.append(f"run: {run_file}")
    return "\n".join(lines)


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
