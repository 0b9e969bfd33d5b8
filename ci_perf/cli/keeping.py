"""The step that `calibrate` and `qualify` share: show what was found of a machine, and keep it."""

from collections.abc import Collection, Sequence
from pathlib import Path

from ci_perf.baselines import machine_documents as documents
from ci_perf.cli import output
from ci_perf.errors import ExitCode, UsageError
from ci_perf.gate import measure
from ci_perf.model import codec
from ci_perf.model.calibration import Calibration, Qualification
from ci_perf.model.run import Run
from ci_perf.model.suite import Protocol
from ci_perf.model.validity import Status
from ci_perf.system import files

# More names than this make a sentence that nobody reads.
_SHOWN = 5


def check_targets(run_file: Path, report: Path | None) -> None:
    """Find out before the work that a result has nowhere to go. See `files.check_target`."""
    if report is None:
        return
    files.check_target(report)
    if report.resolve() == run_file.resolve():
        raise UsageError(f"--output {report}: would overwrite the run; name another file")


def keep(
    found: Calibration | Qualification,
    run: Run,
    baselines: Path,
    *,
    form: str,
    target: Path | None,
    own: Collection[str] = (),
) -> ExitCode:
    """Show `found` in the form that was asked for, and write it beside the machine's baselines.

    `own` are the workloads whose statistic suite.toml sets. What an untrusted machine showed is
    not kept.
    """
    output.emit(_text(found, form), output=target)
    if run.validity.status is Status.INVALID:
        output.say("nothing is kept: the machine could not be trusted, see the reasons above")
        return ExitCode.NO_ANSWER
    before = documents.read(baselines, found.machine)
    file = documents.write(baselines, found)
    output.say("\n".join([f"written: {file}", *_outdated(before, found, own), _next(file)]))
    return measure.exit_code(run)


def _outdated(
    before: Calibration | None, found: Calibration | Qualification, own: Collection[str]
) -> list[str]:
    """Say what a new statistic means for numbers that were made by another one."""
    old = before.statistic if before else Protocol().statistic
    if isinstance(found, Qualification) or found.statistic == old:
        return []
    changed = [name for name in found.workloads if name not in own]
    if not changed:
        return []
    note = (
        f"note: {old} spoke for a launch of {_named(changed)} before, and {found.statistic} will "
        "from now on: accept baselines that were made by another one anew"
    )
    return [note]


def _named(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _next(file: Path) -> str:
    return f"next: git add {file} && git commit"


def _text(found: Calibration | Qualification, form: str) -> str:
    if form == "json":
        return codec.encode(found)
    from ci_perf.report import calibration_report, tables

    page = calibration_report.page(found)
    if form == "markdown":
        return tables.markdown(page)
    return tables.terminal(page, width=output.width(), color=output.in_color())
