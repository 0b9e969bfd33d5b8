"""`ci-perf check`: measure, compare, report: the one command that a person or a CI types."""

from pathlib import Path

import click

from ci_perf.cli import judging, measuring, options
from ci_perf.errors import ExitCode
from ci_perf.model.suite import FailOn


@click.command("check")
@click.argument("names", nargs=-1, metavar="[WORKLOAD]...")
@options.suite
@options.workloads
@options.baselines
@options.device
@options.processes
@options.lock_timeout
@options.against
@options.budget
@options.fail_on(default=None)
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
    against: str | None,
    budget: float,
    fail_on: FailOn | None,
    run_output: Path,
    format: str,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
) -> int:
    """Measure, compare with the committed baselines, and report: what a CI types.

    The baselines can clear a change and raise a suspicion, and no more: what they do not clear is
    called a regression only with --against, by launching the base and the head in turns. Exact
    numbers (memory of a GPU, counts) need no such proof.

    Exit codes: 0 no regression, 1 regression (or changed numerics, where their limit gates), 3 no
    answer: a workload failed, is missing or cannot be compared, the machine cannot be trusted, or
    there is no baseline at all.
    """
    judging.check_target(format, output, inputs=[run_output, baselines])
    judging.check_baselines(baselines, suite)
    plan = measuring.plan(
        workloads, suite, names, device=device, processes=processes, is_paired=against is not None
    )
    run = measuring.measure(
        plan,
        device=device,
        lock_timeout_s=lock_timeout,
        run_file=run_output,
        baselines=baselines,
        beside=judging.beside(against, budget, baselines, workloads),
    )
    if measuring.is_interrupted(run):
        return ExitCode.INTERRUPTED
    rules = judging.rules(workloads, suite, baselines, run.environment.hard).of(fail_on)
    comparison = judging.against_baselines(run, baselines, label=str(run_output), rules=rules)
    judging.emit(comparison, format, output)
    return comparison.exit_code
