"""The command that looks for the commit that made a workload worse: `bisect`."""

from pathlib import Path
from typing import Any

import click

import ci_perf
from ci_perf.cli import console, measure_options, options, reports
from ci_perf.errors import ExitCode


@click.command("bisect")
@click.argument("good")
@click.argument("bad")
@click.argument("workload")
@measure_options.add_measure_options(
    "wait_s",
    "threads",
    "budget_s",
    select=False,
    budget_s={"default": 7200.0, "help": "How long all sessions together may take."},
)
@click.option(
    "--metric",
    default="",
    metavar="NAME",
    help="The metric to judge, such as step_time_s or peak_allocated_bytes. By default the step "
    "time if it is worse, else the worst metric that gates.",
)
@options.table_format
@options.output
def bisect_command(
    *,
    measuring: dict[str, Any],
    good: str,
    bad: str,
    workload: str,
    metric: str,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
) -> int:
    """Find the commit that made a workload slower or larger.

    GOOD and BAD are commits, tags or branches on one line of first parents. First, pairs of GOOD
    and BAD must prove that BAD is worse. Then commits between them are paired with GOOD. At last,
    the commit that is left is paired with its parent. A commit with the same program as a measured
    one is skipped. A commit that cannot be measured is skipped and named. Your checkout stays as it
    is.

    Exit codes: 0 one commit was found, 3 BAD is not proven worse, or several commits are left, 130
    interrupted (the answer so far is printed).
    """
    reports.check_target(output, inputs=[])
    bisected = ci_perf.bisect(
        good,
        bad,
        workload,
        metric=metric,
        **measuring,
        notify=console.say,
        listener=measure_options.open_listener,
    )
    from ci_perf.features.bisect import report

    reports.emit_page(report.page(bisected), format, output, document=bisected)
    if bisected.ended == "interrupted":
        return ExitCode.INTERRUPTED
    return ExitCode.OK if bisected.outcome == "found" else ExitCode.NO_ANSWER
