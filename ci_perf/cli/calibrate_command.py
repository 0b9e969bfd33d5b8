"""`ci-perf calibrate`: how noisy this machine is, and what suits it."""

import random
from pathlib import Path
from typing import Any

import click

from ci_perf.cli import keeping, options
from ci_perf.errors import ExitCode
from ci_perf.gate import measure, runners
from ci_perf.judge import calibration as judge

# The same launches always give the same table.
_SEED = 0


def _even(_context: click.Context, _parameter: click.Parameter, value: int) -> int:
    """Refuse a launch without a partner."""
    if value % 2:
        raise click.BadParameter(f"expected an even number, for pairs of launches, found {value}")
    return value


@click.command("calibrate")
@click.argument("names", nargs=-1, metavar="[WORKLOAD]...")
@options.suite
@options.workloads
@options.baselines
@options.device
@runners.options
@click.option(
    "--processes",
    type=click.IntRange(judge.FEWEST_PROCESSES, 100),
    default=judge.FEWEST_PROCESSES,
    show_default=True,
    callback=_even,
    help="Fresh processes per workload: an even number.",
)
@options.lock_timeout
@options.run_output(default="calibration-run.json")
@options.table_format
@options.output
def command(
    names: tuple[str, ...],
    suite: str,
    workloads: Path,
    baselines: Path,
    device: str,
    processes: int,
    lock_timeout: float,
    run_output: Path,
    format: str,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
    **runner: Any,  # noqa: ANN401  the options of runners.py
) -> int:
    """Measure how noisy this machine is, and choose statistic and preset for it.

    Launches every workload of a suite several times, all of the same code, and says how much they
    differ. Writes BASELINES/MACHINE/calibration.json, which later verdicts use once it is there.

    Exit codes: 0 calibrated, 3 a workload failed, or the machine cannot be trusted.
    """
    keeping.check_targets(run_output, output)
    chosen = runners.choice(outputs=(run_output, output), **runner)
    plan = measure.plan(workloads, suite, names, device=device, processes=processes)
    run = measure.measure(
        plan,
        device=device,
        lock_timeout_s=lock_timeout,
        run_file=run_output,
        runner=chosen,
        workloads=workloads,
    )
    if measure.is_interrupted(run):
        return ExitCode.INTERRUPTED
    found = judge.calibrate(run, plan, random.Random(_SEED).random)  # noqa: S311  no secret
    own = {one.id for one in plan.workloads if one.own_statistic}
    return keeping.keep(found, run, baselines, form=format, target=output, own=own)
