"""`ci-perf run`: measure, write run.json, judge nothing."""

from pathlib import Path
from typing import Any

import click

import ci_perf
from ci_perf.cli import console, measure_options, progress
from ci_perf.errors import ExitCode


@click.command("run")
@measure_options.checking
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default="run.json",
    show_default=True,
    help="Where to write the run.",
)
def command(
    *,
    output: Path,
    **said: Any,  # noqa: ANN401  the options of `checking`
) -> ExitCode:
    """Measure the workloads of a suite and write run.json.

    WORKLOAD is an id of `ci-perf list`, or the part before its first dot; none means all. Each
    process is a fresh child. A workload that fails is recorded and stops no other: exit code 3.
    With --against, the base is launched beside the head where the baselines do not clear it, and
    `ci-perf compare` judges both.
    """
    measurement = measure_options.measurement(said, run_output=output)
    run = ci_perf.measure(**measurement, notify=console.say, listener=progress.listener())
    return ExitCode.NO_ANSWER if run.failed else ExitCode.OK
