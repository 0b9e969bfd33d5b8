"""The commands that measure a suite, and `list`, which says what they would measure."""

from pathlib import Path
from typing import Any

import click
import msgspec

import ci_perf
from ci_perf import hooks
from ci_perf.cli import console, measure_options, options, reports
from ci_perf.errors import ExitCode
from ci_perf.gate import collecting, measure
from ci_perf.gate.options import MeasureOptions
from ci_perf.model import codec
from ci_perf.report import suite_text
from ci_perf.system import files


@click.command("run")
@measure_options.add_measure_options(*measure_options.CHECKING)
@options.run_output(default="run.json")
def run_command(*, measuring: dict[str, Any], output: Path) -> ExitCode:
    """Measure the workloads of a suite and write run.json.

    WORKLOAD is an id of `ci-perf list`, or the part before its first dot; none means all. Each
    process is a fresh child. A workload that fails is recorded and stops no other: exit code 3.
    With --against, each workload that the baselines do not clear is launched on the base, too, and
    `ci-perf compare` judges both sides.
    """
    run = ci_perf.measure(
        **measuring,
        output=output,
        notify=console.say,
        listener=measure_options.open_listener(),
    )
    if run.measured:
        from ci_perf.report import first_numbers

        reports.emit_page([first_numbers.from_run(run)], "terminal", None)
    return ExitCode.NO_ANSWER if run.failed else ExitCode.OK


class CommandAtEnd(click.Command):
    """A command line whose words behind "--" are a command to measure."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the command for `check_command`, and parse what stands before it."""
        if "--" in args:
            place = args.index("--")
            ctx.meta["command"] = args[place + 1 :]
            args = args[:place]
            if not ctx.meta["command"]:
                raise click.UsageError("--: expected a command behind it, found none", ctx)
        return super().parse_args(ctx, args)


def add_sources(command: Any) -> Any:  # noqa: ANN401  what click decorates
    """Add an option for each source of benchmarks that a feature brings."""
    for name, source in hooks.find_sources().items():
        command = click.option(
            f"--{name}", multiple=True, metavar=source.metavar, help=source.does
        )(command)
    return command


metric_option = click.option(
    "--metric",
    default="",
    metavar="NAME_ms=REGEX",
    help="With -- COMMAND: read step times in s, ms or us from the lines that the command prints, "
    "such as 'step_ms=iter .*time ([0-9.]+)ms'. Instead, "
    "--reads FORMAT[:FILE] reads numbers that the command writes, such as those of vllm.  "
    "[default: (the time of the whole command)]",
)
setup_option = click.option(
    "--setup",
    default="",
    metavar="COMMAND",
    help="With -- COMMAND or --pytest: a shell command that prepares a checkout, such as a link to "
    "untracked data. It runs once in each side.",
)


@click.command("check", cls=CommandAtEnd, options_metavar="[OPTIONS]")
@measure_options.add_measure_options(*measure_options.CHECKING)
@add_sources
@metric_option
@click.option(
    "--skip",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="With --metric: ignore the first N times.",
)
@click.option(
    "--reads",
    default="",
    metavar="FORMAT[:FILE]",
    hidden=True,
    help="With -- COMMAND: the format of the numbers that the command writes to {output}, or to "
    "FILE: vllm, hyperfine, pytest-benchmark, …",
)
@setup_option
@options.fail_on(default=None)
@options.paused_until
@options.run_output(default="run.json")
@options.report
@click.option(
    "--format",
    type=click.Choice(list(reports.COMPARISON_FORMS)),
    hidden=True,
    help="The form of the report, such as json.",
)
@click.option(
    "--comparison",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    hidden=True,
    help="Write the verdicts to this file, too, as JSON: other commands read it.",
)
def check_command(
    *,
    measuring: dict[str, Any],
    output: Path,
    report: Path | None,
    format: str | None,  # noqa: A002  the name of the option
    comparison: Path | None,
    paused_until: str,
    **asked: Any,  # noqa: ANN401  the keywords of `ci_perf.check`, and one for each source
) -> int:
    """Measure, compare with base and baselines, and report: the command for a CI.

    Baselines can clear a workload, but cannot prove a slowdown. With --against, base and head are
    launched alternately, which can. Exact numbers (memory of a GPU, counts) are compared at once.

    `ci-perf check --against main -- COMMAND` runs a command alternately in base and head, and
    judges its time, CPU time and memory. A suite or baselines are not needed.

    Exit codes: 0 pass: no slowdown was proven. 1: a proven regression, or changed numerics if they
    gate. 3 no answer: a regression is only likely, a workload failed, is missing or cannot be
    compared, the machine was disturbed, a metric with require = true is inconclusive, or there is
    nothing to compare.
    """
    inputs = (measuring["baselines"], measuring["workloads"])
    files.check_apart("--report", report, output, *inputs)
    files.check_apart("--comparison", comparison, output, report, *inputs)
    for target in filter(None, (report, comparison)):
        files.check_target(target)
    checked = ci_perf.check(
        **measuring,
        **asked,
        command=click.get_current_context().meta.get("command", ()),
        output=output,
        notify=console.say,
        listener=measure_options.open_listener(),
    )
    judged = msgspec.structs.replace(checked.comparison, paused_until=paused_until)
    reports.emit_comparison(judged, format, report)
    if comparison is not None:
        files.write(comparison, judged)
    if checked.trouble is not None:
        raise checked.trouble
    return judged.job_exit_code


@click.command("list")
@measure_options.add_measure_options()
@click.option(
    "--against",
    metavar="REF",
    help="Show which workloads a check against the merge base with REF would launch, and why.",
)
@click.option("--json", is_flag=True, help="Print the whole plan, or answer, as JSON.")
def list_command(*, measuring: dict[str, Any], against: str | None, json: bool) -> None:
    """Show the workloads of a suite, without importing them.

    Tests are imported: pytest collects them. With --against, it uses records of earlier checks and
    measures nothing. A workload without a record is "not recorded": the next `ci-perf check
    --against` records it.
    """
    asked = MeasureOptions(root=files.current_folder(), against=against, **measuring)
    if against is None:
        plan = measure.plan(asked, has_tests=True)
        plan = collecting.collect_plan(plan, asked.root, runs=False, notify=console.say)
        console.emit(codec.encode(plan) if json else suite_text.render_list(plan), output=None)
        return
    from ci_perf.gate import touched
    from ci_perf.report import same_program

    answer = touched.find_touched(asked, notify=console.say)
    if json:
        console.emit(codec.encode(answer), output=None)
    else:
        reports.emit_page(same_program.build_touched_page(answer), None, None)
