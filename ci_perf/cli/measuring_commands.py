"""The commands that measure a suite, and `list`, which says what they would measure."""

import math
from pathlib import Path
from typing import Any, get_args

import click

import ci_perf
from ci_perf.cli import console, following, measure_options, options, reports
from ci_perf.errors import ExitCode, UsageError
from ci_perf.gate import measure
from ci_perf.gate.measure import MeasureOptions
from ci_perf.judging.calibration import FEWEST_PROCESSES
from ci_perf.judging.policy import MOST_PAIRS
from ci_perf.model import codec
from ci_perf.model.suite import FailOn
from ci_perf.model.task import Activity, Tracing
from ci_perf.report import suite_text
from ci_perf.system import files


@click.command("run")
@measure_options.checking
@click.option(
    "--plan",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="PLAN.json",
    help="Measure --unit of what `ci-perf fleet plan` has written.",
)
@click.option(
    "--unit",
    default="",
    metavar="ID",
    help="Measure this unit of --plan: it says which workloads, and against what.",
)
@options.run_output(default="run.json")
def run_command(
    *,
    output: Path,
    plan: Path | None,
    unit: str,
    **said: Any,  # noqa: ANN401  the options of `checking`
) -> ExitCode:
    """Measure the workloads of a suite and write run.json.

    WORKLOAD is an id of `ci-perf list`, or the part before its first dot; none means all. Each
    process is a fresh child. A workload that fails is recorded and stops no other: exit code 3.
    With --against, the base is launched beside the head where the baselines do not clear it, and
    `ci-perf compare` judges both. With --unit, this node measures one part of a suite; `ci-perf
    fleet merge` joins the parts.
    """
    files.check_apart("--output", output, plan)
    measurement = measure_options.measurement(said, output=output)
    run = ci_perf.measure(
        **measurement,
        plan=plan,
        unit=unit,
        notify=console.say,
        listener=following.listener(),
    )
    if run.measured:
        from ci_perf.report import first_numbers

        reports.emit_page([first_numbers.from_run(run)], "terminal", None)
    return ExitCode.NO_ANSWER if run.failed else ExitCode.OK


@click.command("check")
@measure_options.checking
@options.fail_on(default=None)
@options.run_output(default="run.json")
@options.report
@click.option(
    "--comparison",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the verdicts to this file, too, as JSON: other commands read it.",
)
def check_command(
    *,
    fail_on: FailOn | None,
    output: Path,
    report: Path | None,
    comparison: Path | None,
    **said: Any,  # noqa: ANN401  the options of `checking`
) -> int:
    """Measure, compare with the committed baselines, and report: what a CI types.

    The baselines can clear a change and raise a suspicion, and no more: what they do not clear is
    called a regression only with --against, by launching the base and the head in turns. Exact
    numbers (memory of a GPU, counts) need no such proof.

    Exit codes: 0 no regression, 1 regression (or changed numerics, where their limit gates), 3 no
    answer: something looks worse and is not proven, a limit requires an answer and there is none, a
    workload failed, is missing or cannot be compared, the machine cannot be trusted, or nothing
    could be compared.
    """
    measurement = measure_options.measurement(said, output=output, outputs=(report, comparison))
    inputs = (measurement["baselines"], measurement["workloads"])
    files.check_apart("--report", report, output, *inputs)
    files.check_apart("--comparison", comparison, output, report, *inputs)
    for target in filter(None, (report, comparison)):
        files.check_target(target)
    checked = ci_perf.check(
        **measurement, fail_on=fail_on, notify=console.say, listener=following.listener()
    )
    reports.emit_comparison(checked.comparison, None, report)
    if comparison is not None:
        files.write(comparison, checked.comparison)
    if checked.trouble is not None:
        raise checked.trouble
    return checked.comparison.exit_code


@click.command("list")
@measure_options.planning
@click.option(
    "--against",
    metavar="REF",
    help="Say which workloads a check against the merge base with REF would launch, and why.",
)
@click.option("--json", is_flag=True, help="Print the whole plan, or answer, as JSON.")
def list_command(
    *,
    against: str | None,
    json: bool,
    **said: Any,  # noqa: ANN401  the options of `planning`
) -> None:
    """Show the workloads of a suite, without importing them.

    With --against, by records of earlier checks: takes seconds, and measures nothing. A workload
    that nobody has recorded yet is "not recorded": the next `ci-perf check --against` records it.
    """
    asked = measure_options.measurement(said, output=None)
    measuring = MeasureOptions(root=files.current_folder(), against=against, **asked)
    if against is None:
        plan = measure.plan(measuring)
        console.emit(codec.encode(plan) if json else suite_text.listing(plan), output=None)
        return
    from ci_perf.gate import touched
    from ci_perf.report import same_program

    answer = touched.touched(measuring, notify=console.say)
    if json:
        console.emit(codec.encode(answer), output=None)
    else:
        reports.emit_page(same_program.touched_page(answer), None, None)


def _even(_context: click.Context, _parameter: click.Parameter, value: int | None) -> int | None:
    """Refuse a launch without a partner."""
    if value is not None and value % 2:
        raise click.BadParameter(f"expected an even number, for pairs of launches, found {value}")
    return value


def _share(_context: click.Context, _parameter: click.Parameter, value: str | None) -> float | None:
    """Read a share in percent."""
    if value is None:
        return None
    try:
        share = float(value.removesuffix("%")) / 100 if value.endswith("%") else math.nan
    except ValueError:
        share = math.nan
    if not 0 < share <= 1:
        raise click.BadParameter(f"expected a share up to 100%, such as 3%, found {value!r}")
    return share


@click.command("calibrate")
@measure_options.measuring
@click.option(
    "--processes",
    type=click.IntRange(FEWEST_PROCESSES, 100),
    callback=_even,
    help=f"Fresh processes per workload, an even number: by default {FEWEST_PROCESSES}, and "
    f"{MOST_PAIRS} with --planted.",
)
@click.option(
    "--planted",
    metavar="SHARE",
    callback=_share,
    help="Launch each workload slowed down by this share (3%), too, and say whether pairs find it.",
)
@options.run_output(default="calibration-run.json")
@options.report
@options.table_format
def calibrate_command(
    *,
    processes: int | None,
    planted: float | None,
    output: Path,
    report: Path | None,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    **said: Any,  # noqa: ANN401  the options of `measuring`
) -> int:
    """Measure what this machine can show: its statistic, and the limit it can hold.

    Launches every workload of a suite several times, all of the same code, and says how much they
    differ, and the smallest change that pairs of them would prove. Writes
    BASELINES/MACHINE/calibration.json, which later verdicts use once it is there.

    Exit codes: 0 calibrated, 3 a workload failed, or the machine cannot be trusted.
    """
    from ci_perf.gate import calibrate
    from ci_perf.report import calibration_report

    said["processes"] = processes or (FEWEST_PROCESSES if planted is None else MOST_PAIRS)
    measurement = measure_options.measurement(said, output=output, outputs=(report,))
    reports.check_target(None, report, inputs=[output])
    calibrated = calibrate.calibrate(
        MeasureOptions(root=files.current_folder(), **measurement),
        planted,
        notify=console.say,
        listener=following.listener(),
    )
    if format == "json":
        console.emit(codec.encode(calibrated.calibration), output=report)
    else:
        reports.emit_page(calibration_report.page(calibrated.calibration), format, report)
    return calibrated.exit_code


@click.command("explain")
@click.argument("names", nargs=-1, metavar="[RUN.json] [WORKLOAD]...")
@measure_options.suite_and_machine
@click.option(
    "--against",
    metavar="REF",
    help="Profile the merge base with REF (a branch, tag or commit), too, base and head in turns.",
)
@options.wait
@options.duration("--budget", default="5m", text="How long all profiling may take.")
@options.traces
@click.option(
    "--steps",
    type=click.IntRange(0, 1000),
    default=0,
    help="How many steps torch.profiler traces at most; by default as many as there is time for, "
    "20 at most.",
)
@click.option(
    "--stacks",
    is_flag=True,
    help="Put Python stacks into the traces: for people, as its times say little.",
)
@click.option(
    "--activities",
    type=click.Choice(get_args(Activity)),
    multiple=True,
    help="What torch.profiler traces; by default all that the device has.",
)
@click.option(
    "--operators",
    is_flag=True,
    help="List the operators of a step, too: calls, CPU time, GPU time, how long the host waits.",
)
@options.table_format
@options.output
def explain_command(
    *,
    against: str | None,
    budget: float,
    traces: Path | None,
    steps: int,
    stacks: bool,
    activities: tuple[Activity, ...],
    operators: bool,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
    **said: Any,  # noqa: ANN401  the options of `measuring`
) -> None:
    """Say why workloads moved, or what a step of them does and waits for.

    With RUN.json, which `ci-perf check --against` wrote, explains what that run has profiled, and
    launches nothing. Without a run, profiles the workloads now: with --against the merge base and
    the head in turns, whatever their verdict; else the head alone. Nothing is judged: the exit code
    is 0.
    """
    run, said["names"] = _run_file(said["names"])
    measurement = measure_options.measurement(said, output=None, outputs=(output,))
    del measurement["output"]
    reports.check_target(None, output, inputs=[] if run is None else [run])
    if run is not None and against is not None:
        raise UsageError(f"--against {against}: expected none with {run}, which has its own base")
    explained = ci_perf.explain(
        **measurement,
        run=run,
        against=against,
        budget_s=budget,
        traces=traces,
        tracing=Tracing(steps=steps, stacks=stacks, activities=activities),
        notify=console.say,
        listener=following.listener(),
    )
    if format == "json":
        console.emit(codec.encode(explained), output=output)
        return
    from ci_perf.features.explain import page

    reports.emit_page(page.build_page(explained, operators=operators), format, output)


def _run_file(names: tuple[str, ...]) -> tuple[Path | None, tuple[str, ...]]:
    """Tell the file of a run from names of workloads, which end with no ".json"."""
    if names and names[0].endswith(".json"):
        return Path(names[0]), names[1:]
    return None, names
