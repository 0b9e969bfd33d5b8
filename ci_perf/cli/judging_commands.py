"""The command that judges what was measured: `compare`."""

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
@click.argument("runs", nargs=-1, required=True, type=_FILE, metavar="[BASE] HEAD | RUN...")
@click.option(
    "--baselines",
    type=click.Path(file_okay=False, path_type=Path),
    default="baselines",
    show_default=True,
    help="Without BASE: the folder of baselines to judge HEAD by.",
)
@click.option(
    "--prices",
    type=_FILE,
    metavar="prices.toml",
    help="A file with the price of an hour of each machine. Only shows runs side by side, with the "
    "price of a million items.",
)
@options.workloads
@options.fail_on(default=None)
@options.report_format
@options.output
def compare_command(
    runs: tuple[Path, ...],
    baselines: Path,
    prices: Path | None,
    workloads: Path,
    fail_on: FailOn | None,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
) -> int:
    """Judge one run against another, or against the committed baselines.

    BASE and HEAD are files of `ci-perf run`. The suite.toml in --workloads has the limits. Three or
    more runs, or runs with --prices, are only shown side by side, for example of several machines.
    """
    reports.check_target(output, inputs=[*runs, baselines, *([prices] if prices else [])])
    if prices is not None or len(runs) > 2:
        return _show_side_by_side(runs, prices, format, output)
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


def _show_side_by_side(
    runs: Sequence[Path], prices: Path | None, asked: str | None, target: Path | None
) -> int:
    from ci_perf.gate import side_by_side
    from ci_perf.report import frame

    page = side_by_side.page(runs, prices)
    read = [files.read(run, Run) for run in runs]
    forms = {**reports.PAGE_FORMS, "csv": lambda _page: frame.tabulate_runs(*read).to_csv()}
    reports.emit(forms, page, reports.report_format(asked, target), target)
    return ExitCode.OK
