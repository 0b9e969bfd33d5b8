"""`ci-perf check`: measure, compare, report: the one command that a person or a CI types."""

from pathlib import Path

import click

from ci_perf.cli import judging, measuring, options
from ci_perf.errors import ExitCode


@click.command("check")
@click.argument("names", nargs=-1, metavar="[WORKLOAD]...")
@options.suite
@options.workloads
@options.baselines
@options.device
@options.processes
@options.lock_timeout
@click.option(
    "--run-output",
    type=click.Path(dir_okay=False, path_type=Path),
    default="run.json",
    show_default=True,
    help="Where to keep the run: `ci-perf accept` reads it.",
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
    run_output: Path,
    format: str,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
) -> int:
    """Measure, compare with the committed baselines, and report: what a CI types.

    Exit codes: 0 no regression, 1 regression (or changed numerics, where their limit gates), 3 no
    answer: a workload failed, is missing or cannot be compared, the machine cannot be trusted, or
    there is no baseline at all.
    """
    judging.check_target(format, output, inputs=[run_output, baselines])
    plan = measuring.plan(workloads, suite, names, device=device, processes=processes)
    run = measuring.measure(plan, device=device, lock_timeout_s=lock_timeout, run_file=run_output)
    if measuring.is_interrupted(run):
        return ExitCode.INTERRUPTED
    comparison = judging.against_baselines(
        run, baselines, label=str(run_output), limits=plan.limits, tiers=plan.tiers
    )
    judging.emit(comparison, format, output)
    return comparison.exit_code
