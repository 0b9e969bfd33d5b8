"""`ci-perf qualify`: which changes this machine notices, and how often it gives a false alarm."""

from pathlib import Path
from typing import Any

import click

from ci_perf.cli import console, measure_options, options, progress, reports
from ci_perf.gate import machine
from ci_perf.gate.measure import MeasureOptions
from ci_perf.judging.policy import LOOKS
from ci_perf.system import files


@click.command("qualify")
@measure_options.measuring
@click.option(
    "--size",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.05,
    show_default=True,
    help="By which share the slowed steps take longer.",
)
@click.option(
    "--rounds",
    type=click.IntRange(LOOKS[0], 100),
    default=LOOKS[-1],
    show_default=True,
    help="Pairs of launches per workload and change; each round is three launches of each.",
)
@options.run_output(default="qualification-run.json")
@options.table_format
@options.output
def command(
    *,
    size: float,
    rounds: int,
    run_output: Path,
    format: str,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
    **said: Any,  # noqa: ANN401  the options of `measuring`
) -> int:
    """Find out which changes this machine notices, and how often it gives a false alarm.

    Launches every workload as it is, as it is once more, and with steps that take longer by a
    known share; then judges both changes as those of a pull request, many times. Writes
    BASELINES/MACHINE/qualification.json.

    Exit codes: 0 qualified, whatever was found, 3 a workload failed, or the machine cannot be
    trusted.
    """
    measurement = measure_options.measurement(
        {**said, "processes": rounds}, run_output=run_output, outputs=(output,)
    )
    reports.check_table_target(output, run_output)
    report = machine.qualify(
        MeasureOptions(root=files.current_folder(), **measurement),
        size,
        notify=console.say,
        listener=progress.listener(),
    )
    reports.emit_machine(report.document, format, output)
    return report.exit_code
