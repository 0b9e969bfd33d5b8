"""The command that looks for the commit that made a workload worse: `bisect`."""

from pathlib import Path
from typing import Any

import click

from ci_perf.cli import console, following, measure_options, options, reports
from ci_perf.errors import ExitCode
from ci_perf.features.bisect import bisect
from ci_perf.gate.options import MeasureOptions
from ci_perf.model import codec
from ci_perf.system import files


@click.command("bisect")
@click.argument("good")
@click.argument("bad")
@click.argument("workload")
@measure_options.measuring(
    "wait_s",
    "budget_s",
    "explain_s",
    select=False,
    budget_s={"default": 7200.0, "help": "How long all sessions together may take."},
    explain_s={
        "default": 0.0,
        "help": "How long to profile the commit that was found beside its parent, to name the "
        "cause.",
    },
)
@click.option(
    "--metric",
    default="",
    metavar="NAME",
    help="What has to be worse, such as step_time_s or peak_allocated_bytes; by default the time "
    "of a step if that is worse, else the worst metric that gates.",
)
@click.option(
    "--at-once",
    type=click.IntRange(min=1),
    default=7,
    show_default=True,
    help="How many commits a round chooses. They are measured one by one, and those that an answer "
    "has made needless are left out.",
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
    at_once: int,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
) -> int:
    """Find the commit that made a workload worse, by pairs of commits with a good one.

    GOOD and BAD are commits, tags or branches on one line of first parents. BAD is launched beside
    GOOD first: where it is not proven worse, there is nothing to look for. Then commits between
    them are launched beside GOOD, and the commit that is left beside its parent. A commit that runs
    the same program as a measured one is not launched; one that cannot be measured is left out, and
    named. Nothing of the checkout changes.

    Exit codes: 0 one commit was found, 3 no answer: BAD is not proven worse, or several commits are
    left, 130 interrupted: what is known by then is printed.
    """
    reports.check_target(None, output, inputs=[])
    bisected = bisect.bisect(
        bisect.BisectOptions(
            measuring=MeasureOptions(root=files.current_folder(), select=(workload,), **measuring),
            good=good,
            bad=bad,
            at_once=at_once,
            metric=metric,
        ),
        notify=console.say,
        listener=following.listener,
    )
    if format == "json":
        console.emit(codec.encode(bisected), output=output)
    else:
        from ci_perf.features.bisect import report

        reports.emit_page(report.page(bisected), format, output)
    if bisected.ended == "interrupted":
        return ExitCode.INTERRUPTED
    return ExitCode.OK if bisected.outcome == "found" else ExitCode.NO_ANSWER
