"""The step that `check`, `compare` and `accept` share: a run against the committed baselines."""

from collections.abc import Iterable
from pathlib import Path

from ci_perf import files, suite
from ci_perf.baselines import summarise as baselines
from ci_perf.cli import options, output
from ci_perf.errors import UsageError
from ci_perf.judge import compare, summarise
from ci_perf.model import codec
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run
from ci_perf.model.suite import Limits, Tiers


def against_baselines(
    run: Run, root: Path, *, label: str, limits: Limits | None, tiers: Tiers | None
) -> Comparison:
    """Judge `run` against the baselines of its machine and suite below `root`."""
    base = baselines.baselines(root, run.environment.hard, run.suite)
    head = summarise.run(run, label=label)
    return compare.compare(base, head, limits=limits, tiers=tiers)


def against_run(base: Path, head: Path, folder: Path) -> Comparison:
    """Judge the run in file `head` against the run in file `base`."""
    before, after = files.read(base, Run), files.read(head, Run)
    limits, tiers = settings(folder, after.suite)
    return compare.compare(
        summarise.run(before, label=str(base)),
        summarise.run(after, label=str(head)),
        limits=limits,
        tiers=tiers,
    )


def settings(folder: Path, name: str) -> tuple[Limits | None, Tiers | None]:
    """Return the limits that FOLDER/suite.toml sets for this suite, if it knows it.

    A run that is looked at outside its repository is judged by the defaults.
    """
    _, where = suite.locate(name, folder)
    if not (where / "suite.toml").exists():
        output.say(f"{where / 'suite.toml'}: not found; the default limits apply")
        return None, None
    try:
        found = suite.plan(folder, name, root=options.root())
    except UsageError:
        output.say(f"{folder / 'suite.toml'}: no suite {name!r}; the default limits apply")
        return None, None
    return found.limits, found.tiers


def check_target(form: str, target: Path | None, *, inputs: Iterable[Path]) -> None:
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


def emit(comparison: Comparison, form: str, target: Path | None) -> None:
    """Write the report in the form that was asked for; into a file, and its first line to a log."""
    if target is not None:
        output.say(_told(comparison, target))
    if form == "parquet" and target is not None:
        from ci_perf.report import frame

        files.write_bytes(target, frame.parquet(frame.of_comparison(comparison)))
    else:
        output.emit(_text(comparison, form), output=target)


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
