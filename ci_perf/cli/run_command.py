"""`ci-perf run`: measure, write run.json, judge nothing."""

from pathlib import Path
from typing import Any

import click

from ci_perf.cli import options
from ci_perf.errors import ExitCode
from ci_perf.gate import compare, measure, runners


@click.command("run")
@click.argument("names", nargs=-1, metavar="[WORKLOAD]...")
@options.suite
@options.workloads
@options.device
@options.processes
@options.baselines
@options.lock_timeout
@options.wait
@options.against
@options.budget
@runners.options
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default="run.json",
    show_default=True,
    help="Where to write the run.",
)
def command(
    names: tuple[str, ...],
    suite: str,
    workloads: Path,
    device: str,
    processes: int | None,
    baselines: Path,
    lock_timeout: float,
    wait: float | None,
    against: str | None,
    budget: float,
    output: Path,
    **runner: Any,  # noqa: ANN401  the options of runners.py
) -> ExitCode:
    """Measure the workloads of a suite and write run.json.

    WORKLOAD is an id of `ci-perf list`, or the part before its first dot; none means all. Each
    process is a fresh child. A workload that fails is recorded and stops no other: exit code 3.
    With --against, the base is launched beside the head where the baselines do not clear it, and
    `ci-perf compare` judges both.
    """
    if against is not None:
        compare.check_baselines(baselines, suite)
    chosen = runners.choice(outputs=(output,), **runner)
    plan = measure.plan(
        workloads, suite, names, device=device, processes=processes, is_paired=against is not None
    )
    run = measure.measure(
        plan,
        device=device,
        lock_timeout_s=lock_timeout,
        wait_s=wait,
        run_file=output,
        runner=chosen,
        workloads=workloads,
        baselines=baselines,
        beside=measure.beside(against, budget, baselines, workloads),
    )
    return measure.exit_code(run)
