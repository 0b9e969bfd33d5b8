"""The command that measures what a machine can show: `calibrate`."""

from pathlib import Path
from typing import Any

import click

from ci_perf.cli import console, measure_options, options, reports
from ci_perf.errors import ExitCode
from ci_perf.features.calibrate import calibrate, calibration_report
from ci_perf.features.calibrate.calibration import FEWEST_PROCESSES
from ci_perf.gate.options import MeasureOptions
from ci_perf.system import files


def _check_even(_context: click.Context, _parameter: click.Parameter, value: int) -> int:
    """Refuse a launch without a partner."""
    if value % 2:
        raise click.BadParameter(f"expected an even number, for pairs of launches, found {value}")
    return value


@click.command("calibrate")
@measure_options.add_measure_options("wait_s")
@click.option(
    "--processes",
    type=click.IntRange(FEWEST_PROCESSES, 100),
    default=FEWEST_PROCESSES,
    show_default=True,
    callback=_check_even,
    help="Fresh processes per workload, an even number.",
)
@options.run_output(default="calibration-run.json")
@options.report
@options.table_format
def calibrate_command(
    *,
    measuring: dict[str, Any],
    processes: int,
    output: Path,
    report: Path | None,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
) -> int:
    """Measure the noise of this machine, and the smallest limit that it can check.

    Launches the same code of every workload several times. Shows how much the launches differ, and
    the smallest slowdown that pairs would prove. Writes BASELINES/MACHINE/calibration.json for
    later verdicts.

    Exit codes: 0 calibrated, 3 a workload failed, or the machine cannot be trusted.
    """
    reports.check_target(report, inputs=[output])
    calibration, is_whole = calibrate.calibrate(
        MeasureOptions(
            root=files.current_folder(), output=output, processes=processes, **measuring
        ),
        notify=console.say,
        listener=measure_options.open_listener(),
    )
    page = calibration_report.page(calibration)
    reports.emit_page(page, format, report, document=calibration)
    return ExitCode.OK if is_whole else ExitCode.NO_ANSWER
