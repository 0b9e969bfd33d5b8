"""`ci-perf touched`: which workloads a change would have to be measured for."""

from pathlib import Path
from typing import Any

import click

from ci_perf.cli import console, measure_options, options, reports
from ci_perf.gate.measure import MeasureOptions
from ci_perf.model import codec
from ci_perf.system import files


@click.command("touched")
@measure_options.measuring
@click.option(
    "--against",
    metavar="REF",
    default="main",
    show_default=True,
    help="Compare the checkout, as it is, with the merge base with REF (a branch, tag or commit).",
)
@options.table_format
@options.output
def command(
    *,
    against: str,
    format: str,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
    **said: Any,  # noqa: ANN401  the options of `measuring`
) -> None:
    """Say which workloads a change touches: what a check would measure, and why.

    By records of earlier checks: takes seconds, and measures nothing. A workload that nobody has
    recorded yet is "not recorded": the next `ci-perf check --against` records it.
    """
    from ci_perf.gate import touched

    measurement = measure_options.measurement(said, run_output=None, outputs=(output,))
    if output is not None:
        files.check_target(output)
    workloads = touched.touched(
        MeasureOptions(root=files.current_folder(), against=against, **measurement),
        notify=console.say,
    )
    if format == "json":
        console.emit(codec.encode(workloads), output=output)
        return
    from ci_perf.report import same_program

    reports.emit_page(same_program.touched_page(workloads), format, output)
