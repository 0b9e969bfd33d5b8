"""The command that looks for the commit that made a workload worse: `bisect`."""

from pathlib import Path
from typing import Any

import click

import ci_perf
from ci_perf.cli import console, measure_options, options, reports
from ci_perf.errors import ExitCode, UsageError
from ci_perf.gate import arguments


@click.command("bisect")
@click.argument("names", nargs=-1, metavar="GOOD BAD WORKLOAD")
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
@click.option(
    "--over",
    default="",
    metavar="PACKAGE=V1,V2,…",
    help="Bisect versions of a package instead, the good one first: only WORKLOAD is named.",
)
@click.option(
    "--setup",
    default="",
    metavar="COMMAND",
    help="With --over: what installs {version} into {folder}, such as 'uv pip install --target "
    "{folder} torch=={version}'.",
)
@options.table_format
@options.output
def bisect_command(
    *,
    measuring: dict[str, Any],
    names: tuple[str, ...],
    metric: str,
    over: str,
    setup: str,
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
    expected = ("WORKLOAD",) if over else ("GOOD", "BAD", "WORKLOAD")
    if len(names) != len(expected):
        raise UsageError(
            f"bisect: expected {' '.join(expected)}, found {' '.join(names) or 'none'}"
        )
    if setup and not over:
        raise UsageError("--setup: expected --over PACKAGE=V1,V2, whose versions it installs")
    following: dict[str, Any] = {
        "metric": metric,
        "notify": console.say,
        "listener": measure_options.open_listener,
    }
    if over:
        from ci_perf.features.bisect import versions

        asked = arguments.measure_options(None, measuring, select=names[0])
        bisected = versions.search_versions(asked, over, setup, **following)
    else:
        good, bad, workload = names
        bisected = ci_perf.bisect(good, bad, workload, **measuring, **following)
    from ci_perf.features.bisect import report

    reports.emit_page(report.page(bisected), format, output, document=bisected)
    if bisected.ended == "interrupted":
        return ExitCode.INTERRUPTED
    return ExitCode.OK if bisected.outcome == "found" else ExitCode.NO_ANSWER
