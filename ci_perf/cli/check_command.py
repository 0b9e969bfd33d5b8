"""`ci-perf check`: measure, compare, report: the one command that a person or a CI types."""

import os
from pathlib import Path
from typing import Any

import click

import ci_perf
from ci_perf.cli import console, measure_options, options, progress, reports
from ci_perf.errors import UsageError
from ci_perf.model.suite import FailOn
from ci_perf.system import files


@click.command("check")
@measure_options.checking
@options.fail_on(default=None)
@click.option(
    "--run-output",
    type=click.Path(dir_okay=False, path_type=Path),
    default="run.json",
    show_default=True,
    help="Where to keep the run: `ci-perf accept` reads it.",
)
@click.option(
    "--comparison-output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to keep the comparison, too, as JSON: `ci-perf publish` reads it.",
)
@options.report_format
@options.output
def command(
    *,
    fail_on: FailOn | None,
    run_output: Path,
    comparison_output: Path | None,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
    **said: Any,  # noqa: ANN401  the options of `checking`
) -> int:
    """Measure, compare with the committed baselines, and report: what a CI types.

    The baselines can clear a change and raise a suspicion, and no more: what they do not clear is
    called a regression only with --against, by launching the base and the head in turns. Exact
    numbers (memory of a GPU, counts) need no such proof.

    Exit codes: 0 no regression, 1 regression (or changed numerics, where their limit gates), 3 no
    answer: something looks worse by more than its margin and is not proven, a workload failed, is
    missing or cannot be compared, the machine cannot be trusted, or there is no baseline at all.
    """
    measurement = measure_options.measurement(
        said, run_output=run_output, outputs=(comparison_output, output)
    )
    reports.check_target(format, output, inputs=[run_output, measurement["baselines"]])
    if comparison_output is not None:
        _check_apart(comparison_output, run_output, output)
    checked = ci_perf.check(
        **measurement, fail_on=fail_on, notify=console.say, listener=progress.listener()
    )
    if comparison_output is not None:
        files.write(comparison_output, checked.comparison)
    reports.emit_comparison(checked.comparison, format, output)
    return checked.comparison.exit_code


def _check_apart(path: Path, *others: Path | None) -> None:
    """Find out before the work that the comparison has no file of its own. Raises UsageError."""
    if os.path.realpath(path) in {os.path.realpath(other) for other in others if other}:
        raise UsageError(f"--comparison-output {path}: is written already; name another file")
    files.check_target(path)
