"""`ci-perf calibrate`: how noisy this machine is, and what suits it."""

from pathlib import Path
from typing import Any

import click

from ci_perf.cli import console, measure_options, options, progress, reports
from ci_perf.gate import machine
from ci_perf.gate.measure import MeasureOptions
from ci_perf.judging.calibration import FEWEST_PROCESSES
from ci_perf.system import files


def _even(_context: click.Context, _parameter: click.Parameter, value: int) -> int:
    """Refuse a launch without a partner."""
    if value % 2:
        raise click.BadParameter(f"expected an even number, for pairs of launches, found {value}")
    return value


@click.command("calibrate")
@measure_options.measuring
@click.option(
    "--processes",
    type=click.IntRange(FEWEST_PROCESSES, 100),
    default=FEWEST_PROCESSES,
    show_default=True,
    callback=_even,
    help="Fresh processes per workload: an even number.",
)
@options.run_output(default="calibration-run.json")
@options.table_format
@options.output
def command(
    *,
    run_output: Path,
    format: str,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
    **said: Any,  # noqa: ANN401  the options of `measuring`
) -> int:
    """Measure how noisy this machine is, and choose statistic and preset for it.

    Launches every workload of a suite several times, all of the same code, and says how much they
    differ. Writes BASELINES/MACHINE/calibration.json, which later verdicts use once it is there.

    Exit codes: 0 calibrated, 3 a workload failed, or the machine cannot be trusted.
    """
    measurement = measure_options.measurement(said, run_output=run_output, outputs=(output,))
    reports.check_table_target(output, run_output)
    report = machine.calibrate(
        MeasureOptions(root=files.current_folder(), **measurement),
        notify=console.say,
        listener=progress.listener(),
    )
    reports.emit_machine(report.document, format, output)
    return report.exit_code
