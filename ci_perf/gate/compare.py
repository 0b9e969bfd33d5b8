"""The step that `check`, `compare` and `accept` share: a run against the committed baselines."""

import dataclasses
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf import suite
from ci_perf.baselines import accepted, calibration, layout
from ci_perf.baselines import summarise as baselines
from ci_perf.cli import options, output
from ci_perf.errors import UsageError
from ci_perf.gate import measure
from ci_perf.judge import compare, summarise
from ci_perf.judge.limits import defaults
from ci_perf.model import codec
from ci_perf.model.comparison import Comparison
from ci_perf.model.environment import Machine
from ci_perf.model.run import Run, Source
from ci_perf.model.suite import FailOn, Limits, Tiers
from ci_perf.model.summary import Summary
from ci_perf.system import files, git


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What suite.toml, and the calibration of the machine, say of judging a suite."""

    limits: Limits
    tiers: Tiers
    fail_on: FailOn

    def of(self, fail_on: FailOn | None) -> "Rules":
        """Return the same rules with what the command line says, if it says something."""
        return dataclasses.replace(self, fail_on=fail_on or self.fail_on)


def against_baselines(run: Run, root: Path, *, label: str, rules: Rules) -> Comparison:
    """Judge `run` against the baselines of its machine and suite below `root`."""
    return _compared(_committed(run, root), summarise.run(run, label=label), rules)


def against_run(base: Path, head: Path, folder: Path, *, fail_on: FailOn | None) -> Comparison:
    """Judge the run in file `head` against the run in file `base`."""
    before, after = files.read(base, Run), files.read(head, Run)
    if after.interleaved is not None and not _is_of(after.interleaved.source, before.source):
        output.say(
            f"{head}: its pairs are left alone: they were launched against "
            f"{after.interleaved.source.commit}, and {base} is of {before.source.commit}"
        )
        after = msgspec.structs.replace(after, interleaved=None, paired=())
    return _compared(
        summarise.run(before, label=str(base)),
        summarise.run(after, label=str(head)),
        rules(folder, after.suite).of(fail_on),
    )


def _is_of(one: Source, other: Source) -> bool:
    """Whether both are surely the same code."""
    is_known = one.commit != git.UNKNOWN and not (one.dirty or other.dirty)
    return is_known and one.commit == other.commit


def check_baselines(root: Path, suite: str) -> None:
    """Find out before the work that a baseline cannot be read. Raises InvalidFileError."""
    layout.read_everything(root, suite)


def beside(
    ref: str | None, budget_s: float, baselines: Path, folder: Path
) -> measure.Beside | None:
    """Return the base that is launched where the baselines do not clear the head, if asked for."""
    if ref is None:
        return None
    return measure.Beside(
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
    return accepted.since(root, there, run.environment.hard, run.suite)


class _Undecided:
    """Names what another pair may decide, by what was committed when it was first asked."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._root = root
        self._folder = folder
        self._known: tuple[Summary, Rules] | None = None

    def __call__(self, run: Run) -> tuple[tuple[str, ...], int]:
        """See `session.Against`."""
        if self._known is None:
            machine = run.environment.hard
            found = rules(self._folder, run.suite, self._root, machine)
            self._known = _committed(run, self._root), found
        base, found = self._known
        head = summarise.run(run, label="")
        return compare.undecided(base, head, limits=found.limits, tiers=found.tiers)


def rules(
    folder: Path, name: str, baselines: Path | None = None, machine: Machine | None = None
) -> Rules:
    """Return how FOLDER/suite.toml has this suite judged, if it knows it.

    Where it names no preset, that of the calibration of `machine` below `baselines` holds. A run
    that is looked at outside its repository is judged by the defaults.
    """
    calibrated = calibration.read(baselines, machine) if baselines and machine else None
    preset = calibrated.preset if calibrated else "default"
    nothing = Rules(limits=Limits(default=defaults(preset)), tiers=Tiers(), fail_on="regressed")
    _, where = suite.locate(name, folder)
    if not (where / "suite.toml").exists():
        output.say(f"{where / 'suite.toml'}: not found; the default limits apply")
        return nothing
    try:
        found = suite.plan(folder, name, root=options.root(), preset=preset)
    except UsageError:
        output.say(f"{folder / 'suite.toml'}: no suite {name!r}; the default limits apply")
        return nothing
    return Rules(limits=found.limits, tiers=found.tiers, fail_on=found.fail_on)


def _committed(run: Run, root: Path) -> Summary:
    return baselines.baselines(root, run.environment.hard, run.suite)


def _compared(base: Summary, head: Summary, rules: Rules) -> Comparison:
    return compare.compare(
        base, head, limits=rules.limits, tiers=rules.tiers, fail_on=rules.fail_on
    )


def check_target(form: str | None, target: Path | None, *, inputs: Iterable[Path]) -> None:
    """Find out before the work that the report has nowhere to go, or would destroy its own input.

    Raises UsageError and CannotWriteError.
    """
    for path in inputs:
        if target is not None and _is_within(target, path):
            raise UsageError(f"--output {target}: would overwrite {path}; name another file")
    if form in {"csv", "parquet"}:
        from ci_perf.report import frame

        frame.require(form)
    if form == "parquet" and target is None:
        raise UsageError("--format parquet is binary: name a file with --output")
    if target is not None:
        files.check_target(target)


def _is_within(target: Path, path: Path) -> bool:
    """Whether `target` is `path`, or lies in it: by what they resolve to, links and all."""
    try:
        return target.resolve().is_relative_to(path.resolve())
    except (OSError, RuntimeError):
        return False  # a loop of links, which writing will refuse


def emit(comparison: Comparison, form: str | None, target: Path | None) -> None:
    """Write the report in the form that was asked for; into a file, and its first line to a log.

    The log names the exit code after the file is written: a full disk ends with another one.
    """
    form = output.report_format(form, target)
    if form == "parquet" and target is not None:
        from ci_perf.report import frame

        files.write_bytes(target, frame.parquet(frame.of_comparison(comparison)))
    else:
        output.emit(_text(comparison, form), output=target)
    if target is not None:
        output.say(_told(comparison, target))


def _told(comparison: Comparison, target: Path) -> str:
    from ci_perf.report import terminal

    return f"{terminal.headline(comparison)}\nreport: {target}\nexit code: {comparison.exit_code}"


def _text(comparison: Comparison, form: str) -> str:
    if form == "json":
        return codec.encode(comparison)
    if form == "csv":
        from ci_perf.report import frame

        return frame.csv(frame.of_comparison(comparison))
    if form == "terminal":
        from ci_perf.report import terminal

        return terminal.render(comparison, width=output.width(), color=output.in_color())
    from ci_perf.report import markdown

    return markdown.render(comparison)
