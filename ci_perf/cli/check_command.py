"""`ci-perf check`: measure, compare, report: the one command that a person or a CI types."""

import os
from pathlib import Path
from typing import Any

import click

from ci_perf.cli import options
from ci_perf.cli import output as out
from ci_perf.errors import ExitCode, UsageError
from ci_perf.gate import compare, measure, runners
from ci_perf.model.comparison import Comparison
from ci_perf.model.suite import FailOn
from ci_perf.system import files


@click.command("check")
@click.argument("names", nargs=-1, metavar="[WORKLOAD]...")
@options.suite
@options.workloads
@options.baselines
@options.device
@options.processes
@options.lock_timeout
@options.wait
@options.against
@options.budget
@runners.options
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
    names: tuple[str, ...],
    suite: str,
    workloads: Path,
    baselines: Path,
    device: str,
    processes: int | None,
    lock_timeout: float,
    wait: float | None,
    against: str | None,
    budget: float,
    fail_on: FailOn | None,
    run_output: Path,
    comparison_output: Path | None,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
    **runner: Any,  # noqa: ANN401  the options of runners.py
) -> int:
    """Measure, compare with the committed baselines, and report: what a CI types.

    The baselines can clear a change and raise a suspicion, and no more: what they do not clear is
    called a regression only with --against, by launching the base and the head in turns. Exact
    numbers (memory of a GPU, counts) need no such proof.

    Exit codes: 0 no regression, 1 regression (or changed numerics, where their limit gates), 3 no
    answer: something looks worse by more than its margin and is not proven, a workload failed, is
    missing or cannot be compared, the machine cannot be trusted, or there is no baseline at all.
    """
    out.check_target(format, output, inputs=[run_output, baselines])
    if comparison_output is not None:
        _check_apart(comparison_output, run_output, output)
    compare.check_baselines(baselines, suite)
    chosen = runners.choice(outputs=(run_output, comparison_output, output), **runner)
    plan = measure.plan(
        workloads, suite, names, device=device, processes=processes, is_paired=against is not None
    )
    run = measure.measure(
        plan,
        device=device,
        lock_timeout_s=lock_timeout,
        wait_s=wait,
        run_file=run_output,
        runner=chosen,
        workloads=workloads,
        baselines=baselines,
        beside=measure.beside(against, budget, baselines, workloads),
    )
    if measure.is_interrupted(run):
        return ExitCode.INTERRUPTED
    rules = compare.rules(workloads, suite, baselines, run.environment.hard, notify=out.say).of(
        fail_on
    )
    comparison = compare.against_baselines(run, baselines, label=str(run_output), rules=rules)
    _keep(comparison, comparison_output)
    out.emit_comparison(comparison, format, output)
    return comparison.exit_code


def _check_apart(path: Path, *others: Path | None) -> None:
    """Find out before the work that the comparison has no file of its own. Raises UsageError."""
    if os.path.realpath(path) in {os.path.realpath(other) for other in others if other}:
        raise UsageError(f"--comparison-output {path}: is written already; name another file")
    files.check_target(path)


def _keep(comparison: Comparison, path: Path | None) -> None:
    if path is not None:
        files.write(path, comparison)
