"""Make a run the new baseline: judge it by the old one, and write the files that change."""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from ci_perf.baselines import accept as baselines_accept
from ci_perf.baselines import patches
from ci_perf.baselines.accept import Acceptance, Mode
from ci_perf.errors import UsageError
from ci_perf.gate import Notify, compare
from ci_perf.model.run import Run
from ci_perf.report.accept_help import Accepted
from ci_perf.system import lock


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptOptions:
    """What is accepted, and where it is written; the fields are the options of the command line.

    ``root`` is the repository. ``select`` names workloads, all without any. With ``patch`` or
    ``into``, ``baselines`` is left alone: the changes become a patch, or files below a folder.
    """

    root: Path
    baselines: Path = Path("baselines")
    workloads: Path = Path("workloads")
    select: tuple[str, ...] = ()
    reason: str = ""
    append: bool = False
    replace: bool = False
    force: bool = False
    patch: Path | None = None
    into: Path | None = None


def accept(
    run: Run, options: AcceptOptions, *, label: str, notify: Notify
) -> tuple[Acceptance, ...]:
    """Write the baselines that a run changes, and say what became of each workload.

    `label` begins every message about the run. Raises RefusedError, UsageError, InvalidFileError
    and CannotWriteError; then no file has changed.
    """
    mode = _mode(options)
    rules = compare.rules(
        options.workloads, run.suite, options.baselines, run.environment.hard, notify=notify
    )
    is_elsewhere = options.patch is not None or options.into is not None
    # From what is read to what is written, nobody else adds a session.
    with contextlib.nullcontext() if is_elsewhere else lock.hold_folder(options.baselines):
        comparison = compare.against_baselines(run, options.baselines, label=label, rules=rules)
        accepted = baselines_accept.prepare(
            options.baselines,
            run,
            comparison,
            workloads=options.select,
            reason=options.reason,
            mode=mode,
            force=options.force,
        )
        _write(accepted, options)
    _caution(run, notify)
    return accepted


def described(acceptance: Acceptance, path: str = "") -> Accepted:
    """Return what the report tells of it; `path` where the file has another name there."""
    return Accepted(
        action=acceptance.action.value,
        path=path or str(acceptance.path),
        before=acceptance.before,
        after=acceptance.after,
        began=acceptance.began,
        changed_numerics=acceptance.changed_numerics,
    )


def _mode(options: AcceptOptions) -> Mode:
    if options.append and options.replace:
        raise UsageError("--append and --replace exclude each other: choose one")
    if options.replace and not options.reason.strip():
        # Small losses, each within its limit, would otherwise be forgotten one by one.
        raise UsageError('--replace forgets the history: say why with --reason "…"')
    return Mode.APPEND if options.append else Mode.REPLACE if options.replace else Mode.KEEP


def _write(accepted: tuple[Acceptance, ...], options: AcceptOptions) -> None:
    if options.into is not None:
        baselines_accept.write(options.into, accepted)
    if options.patch is not None:
        patches.write(options.patch, accepted, root=options.root)
    if options.into is None and options.patch is None:
        baselines_accept.write(options.baselines, accepted)


def _caution(run: Run, notify: Notify) -> None:
    """Say what is kept in the baseline from now on and might be regretted."""
    if run.source.dirty:
        notify("note: the run was measured with uncommitted changes, and the baseline says so")
    if run.validity.reasons:
        codes = ", ".join(sorted({reason.code for reason in run.validity.reasons}))
        notify(
            f"note: the machine was not at its best ({codes}); every later check will be compared "
            "with these numbers"
        )
