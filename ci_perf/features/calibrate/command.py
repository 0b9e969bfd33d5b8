"""The command that measures what a machine can show: `calibrate`."""

import math
from pathlib import Path
from typing import Any

import click

from ci_perf.cli import console, measure_options, options, reports
from ci_perf.errors import ExitCode
from ci_perf.features.calibrate import calibrate, calibration_report
from ci_perf.features.calibrate.calibration import FEWEST_PROCESSES
from ci_perf.gate.options import MeasureOptions
from ci_perf.judging.policy import MOST_PAIRS
from ci_perf.model import codec
from ci_perf.system import files


def _check_even(
    _context: click.Context, _parameter: click.Parameter, value: int | None
) -> int | None:
    """Refuse a launch without a partner."""
    if value is not None and value % 2:
        raise click.BadParameter(f"expected an even number, for pairs of launches, found {value}")
    return value


def _share(_context: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
    """Read a share in percent."""
    if value is None:
        return None
    try:
        share = float(value.removesuffix("%")) / 100 if value.endswith("%") else math.nan
    except ValueError:
        share = math.nan
    if not 0 < share <= 1:
        raise click.BadParameter(f"expected a share up to 100%, such as 3%, found {value!r}")
    return share


@click.command("calibrate")
@measure_options.add_measure_options("wait_s")
@click.option(
    "--processes",
    type=click.IntRange(FEWEST_PROCESSES, 100),
    callback=_check_even,
    help=f"Fresh processes per workload, an even number: by default {FEWEST_PROCESSES}, and "
    f"{MOST_PAIRS} with --planted.",
)
@click.option(
    "--planted",
    metavar="SHARE",
    callback=_share,
    help="Also launch each workload slower by this share (3%), and show whether pairs find it.",
)
@options.run_output(default="calibration-run.json")
@options.report
@options.table_format
def calibrate_command(
    *,
    measuring: dict[str, Any],
    processes: int | None,
    planted: float | None,
    output: Path,
    report: Path | None,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
) -> int:
    """Measure the noise of this machine, and the limit that it can hold.

    Launches the same code of every workload several times. Shows how much the launches differ, and
    the smallest loss that pairs would prove. Writes BASELINES/MACHINE/calibration.json for later
    verdicts.

    Exit codes: 0 calibrated, 3 a workload failed, or the machine cannot be trusted.
    """
    usual = FEWEST_PROCESSES if planted is None else MOST_PAIRS
    reports.check_target(None, report, inputs=[output])
    calibration, is_whole = calibrate.calibrate(
        MeasureOptions(
            root=files.current_folder(),
            output=output,
            processes=processes or usual,
            **measuring,
        ),
        planted,
        notify=console.say,
        listener=measure_options.open_listener(),
    )
    if format == "json":
        console.emit(codec.encode(calibration), output=report)
    else:
        reports.emit_page(calibration_report.page(calibration), format, report)
    return ExitCode.OK if is_whole else ExitCode.NO_ANSWER
