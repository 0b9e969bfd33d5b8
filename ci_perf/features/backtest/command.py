"""The command of a team that asks what the gate would have found: `backtest`."""

from pathlib import Path
from typing import Any

import click

from ci_perf.cli import console, measure_options, options, reports
from ci_perf.cli.measuring_commands import (
    CommandAtEnd,
    add_sources,
    metric_option,
    setup_option,
)
from ci_perf.errors import ExitCode
from ci_perf.features.backtest import backtest
from ci_perf.features.backtest.backtested import FILE


@click.command("backtest", cls=CommandAtEnd, options_metavar="[OPTIONS]")
@measure_options.add_measure_options(
    "wait_s",
    "threads",
    "budget_s",
    "explain_s",
    budget_s={"default": 7200.0, "help": "How long this call may take."},
    explain_s={
        "help": "How long to profile what moved, for the causes. 0s: no profiles.",
        "show_default": "1m",
    },
)
@add_sources
@click.option(
    "--last",
    type=click.IntRange(1, 10_000),
    default=50,
    show_default=True,
    metavar="N",
    help="How many merges of the branch to look at, newest first.",
)
@click.option(
    "--ref",
    default="HEAD",
    show_default=True,
    metavar="REF",
    help="The branch, along first parents.",
)
@setup_option
@metric_option
@options.run_output(
    default=FILE, holds="that holds each answer, and that the next call goes on with."
)
@options.report
@options.table_format
def backtest_command(
    *,
    measuring: dict[str, Any],
    last: int,
    ref: str,
    setup: str,
    metric: str,
    output: Path,
    report: Path | None,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    **asked: Any,  # noqa: ANN401  one for each source
) -> int:
    """Say which of your last merges made the code slower, larger or faster.

    Each merge is launched beside its parent, by the suite of today. What moved is measured again:
    only what moves twice is reported. Merges of the same program are skipped. Call it again to
    continue; your checkout stays as it is.

    Exit codes: 0 all merges have been looked at, 3 some are left for the next call, 130 interrupted
    (the answers so far are kept and shown).
    """
    reports.check_target(report, inputs=[output])
    answer = backtest.backtest(
        {**measuring, **asked},
        command=click.get_current_context().meta.get("command", ()),
        setup=setup,
        metric=metric,
        ref=ref,
        last=last,
        output=output,
        notify=console.say,
        listener=measure_options.open_listener,
    )
    from ci_perf.features.backtest.report import build_page

    reports.emit_page(build_page(answer), format, report, document=answer)
    console.say(f"back-test: {output}")
    if answer.ended == "interrupted":
        return ExitCode.INTERRUPTED
    return ExitCode.OK if answer.ended == "finished" else ExitCode.NO_ANSWER
