"""The commands that measure other commits than the one that is checked out."""

from pathlib import Path
from typing import Any

import click

from ci_perf.cli import (
    console,
    following,
    measure_options,
    options,
    reports,
)
from ci_perf.errors import ExitCode
from ci_perf.gate import backfill, bisect
from ci_perf.gate.measure import MeasureOptions
from ci_perf.model import codec
from ci_perf.model.backfill import Backfill
from ci_perf.model.bisection import Bisection
from ci_perf.system import files


@click.command("bisect")
@click.argument("good")
@click.argument("bad")
@click.argument("workload")
@measure_options.suite_and_machine
@options.wait
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
@click.option(
    "--budget",
    default="2h",
    show_default=True,
    metavar="DURATION",
    callback=lambda _context, option, text: options.duration_s(text, option.opts[0]),
    help="How long all sessions together may take.",
)
@options.record
@click.option(
    "--explain/--no-explain",
    default=False,
    show_default=True,
    help="Profile the commit that was found beside its parent, and name the cause.",
)
@options.explain_budget
@options.table_format
@options.output
def bisect_command(
    *,
    good: str,
    bad: str,
    workload: str,
    metric: str,
    at_once: int,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
    **said: Any,  # noqa: ANN401  the options of `suite_and_machine`
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
    measurement = measure_options.measurement(
        {**said, "names": (workload,)}, run_output=None, outputs=(output,)
    )
    reports.check_target(None, output, inputs=[])
    bisected = bisect.bisect(
        bisect.BisectOptions(
            measuring=MeasureOptions(root=files.current_folder(), **measurement),
            good=good,
            bad=bad,
            at_once=at_once,
            metric=metric,
        ),
        notify=console.say,
        listener=following.listener,
    )
    _emit(bisected, format, output)
    if bisected.ended == "interrupted":
        return ExitCode.INTERRUPTED
    return ExitCode.OK if bisected.outcome == "found" else ExitCode.NO_ANSWER


def _emit(document: Bisection | Backfill, form: str | None, output: Path | None) -> None:
    if form == "json":
        console.emit(codec.encode(document), output=output)
        return
    from ci_perf.report import backfill, bisection

    page = bisection.page(document) if isinstance(document, Bisection) else backfill.page(document)
    reports.emit_page(page, form, output)


@click.command("backfill")
@click.argument("commits", metavar="FROM..TO")
@measure_options.measuring
@options.processes
@options.wait
@options.record
@click.option(
    "--every",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Measure each N-th commit, counted from TO back.",
)
@click.option("--force", is_flag=True, help="Accept also what was measured under heavy pressure.")
@options.table_format
@options.output
def backfill_command(
    *,
    commits: str,
    every: int,
    force: bool,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
    **said: Any,  # noqa: ANN401  the options of `measuring`
) -> int:
    """Measure older commits, oldest first, and add a session of each to the baselines.

    For a history from nothing: `ci-perf history` shows it once the files are committed, which this
    command does not do. FROM..TO are commits of one line of first parents, without FROM. A commit
    that runs the same program as the one before is left out, one that fails is named. The same
    command goes on where an earlier one has ended.

    Exit codes: 0 done, or left for the next call, 3 a commit failed, 130 interrupted: what was
    accepted by then stays.
    """
    measurement = measure_options.measurement(said, run_output=None, outputs=(output,))
    reports.check_target(None, output, inputs=[measurement["baselines"]])
    backfilled = backfill.backfill(
        backfill.BackfillOptions(
            measuring=MeasureOptions(root=files.current_folder(), **measurement),
            commits=commits,
            every=every,
            force=force,
        ),
        notify=console.say,
        listener=following.listener,
    )
    _emit(backfilled, format, output)
    if backfilled.is_interrupted:
        return ExitCode.INTERRUPTED
    failed = any(each.outcome == "failed" for each in backfilled.commits)
    return ExitCode.NO_ANSWER if failed else ExitCode.OK
