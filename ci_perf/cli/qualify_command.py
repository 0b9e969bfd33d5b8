"""`ci-perf qualify`: which changes this machine notices, and how often it gives a false alarm."""

import random
from pathlib import Path
from typing import Any

import click

from ci_perf import suite as suites
from ci_perf.baselines import machine_documents as calibrations
from ci_perf.cli import keeping, options
from ci_perf.errors import ExitCode
from ci_perf.gate import measure, runners
from ci_perf.judge import calibration, qualification
from ci_perf.judge.policy import LOOKS

# The same launches always give the same table.
_SEED = 0


@click.command("qualify")
@click.argument("names", nargs=-1, metavar="[WORKLOAD]...")
@options.suite
@options.workloads
@options.baselines
@options.device
@runners.options
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
@options.lock_timeout
@options.run_output(default="qualification-run.json")
@options.table_format
@options.output
def command(
    names: tuple[str, ...],
    suite: str,
    workloads: Path,
    baselines: Path,
    device: str,
    size: float,
    rounds: int,
    lock_timeout: float,
    run_output: Path,
    format: str,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
    **runner: Any,  # noqa: ANN401  the options of runners.py
) -> int:
    """Find out which changes this machine notices, and how often it gives a false alarm.

    Launches every workload as it is, as it is once more, and with steps that take longer by a
    known share; then judges both changes as those of a pull request, many times. Writes
    BASELINES/MACHINE/qualification.json.

    Exit codes: 0 qualified, whatever was found, 3 a workload failed, or the machine cannot be
    trusted.
    """
    keeping.check_targets(run_output, output)
    chosen = runners.choice(outputs=(run_output, output), **runner)
    plan = measure.plan(workloads, suite, names, device=device, processes=rounds)
    run = measure.measure(
        qualification.arms(plan, size),
        device=device,
        lock_timeout_s=lock_timeout,
        run_file=run_output,
        runner=chosen,
        workloads=workloads,
    )
    if measure.is_interrupted(run):
        return ExitCode.INTERRUPTED
    known = calibrations.read(baselines, run.environment.hard)
    # Only now is the machine known, and with it the preset of its calibration.
    preset = known.preset if known else "default"
    judged = suites.plan(workloads, suite, selection=names, root=options.root(), preset=preset)
    found = qualification.qualify(
        run,
        calibration.applied(judged, known),
        size=size,
        calibration=known,
        uniform=random.Random(_SEED).random,  # noqa: S311  no secret
    )
    return keeping.keep(found, run, baselines, form=format, target=output)
