"""`ci-perf compare`: judge what has been measured."""

from collections.abc import Sequence
from pathlib import Path

import click

import ci_perf
from ci_perf.cli import console, options, reports
from ci_perf.errors import ExitCode
from ci_perf.model.run import Run
from ci_perf.model.suite import FailOn
from ci_perf.system import files

_FILE = click.Path(path_type=Path)


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, type=_FILE, metavar="[BASE] HEAD")
@click.option(
    "--baselines",
    type=click.Path(file_okay=False, path_type=Path),
    default="baselines",
    show_default=True,
    help="Judge HEAD against this folder when no BASE is given.",
)
@click.option(
    "--losses",
    is_flag=True,
    help="Show the losses of the first steps side by side, and judge nothing.",
)
@options.workloads
@options.fail_on(default=None)
@options.report_format
@options.output
def command(
    runs: tuple[Path, ...],
    baselines: Path,
    losses: bool,  # noqa: FBT001  as click passes an option
    workloads: Path,
    fail_on: FailOn | None,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
) -> int:
    """Judge one run against another, or against the committed baselines.

    BASE and HEAD are files that `ci-perf run` wrote. The limits are those of the suite.toml in
    --workloads.
    """
    reports.check_target(format, output, inputs=[*runs, baselines])
    if len(runs) > 2:
        raise click.UsageError(f"expected one or two runs, found {len(runs)}")
    if losses:
        return _show_losses(runs, format, output)
    comparison = ci_perf.compare(
        runs[-1],
        base=runs[0] if len(runs) == 2 else None,
        baselines=baselines,
        workloads=workloads,
        fail_on=fail_on,
        notify=console.say,
    )
    reports.emit_comparison(comparison, format, output)
    return comparison.exit_code


def _show_losses(runs: Sequence[Path], asked: str | None, target: Path | None) -> int:
    form = reports.report_format(asked, target)
    if form not in {"markdown", "terminal"}:
        raise click.UsageError(
            f"--losses: expected --format markdown or terminal, found {form}; a program reads them "
            "in run.json, under fingerprint"
        )
    from ci_perf.report import profiles

    sides = ("base", "head") if len(runs) == 2 else ("",)
    page = profiles.losses(
        [(side, files.read(run, Run)) for side, run in zip(sides, runs, strict=True)]
    )
    reports.emit_page(page, form, target)
    return ExitCode.OK
