"""The command that profiles workloads now: `explain`."""

from pathlib import Path
from typing import Any

import click

import ci_perf
from ci_perf.cli import console, measure_options, options, reports


@click.command("explain")
@click.argument("names", nargs=-1, metavar="[WORKLOAD]...")
@measure_options.add_measure_options(
    "against",
    "wait_s",
    "budget_s",
    "traces",
    select=False,
    against={
        "help": "Profile the merge base with REF (a branch, tag or commit), too, base and head "
        "alternately."
    },
    budget_s={"default": 300.0, "help": "How long all profiling may take."},
)
@click.option(
    "--operators",
    is_flag=True,
    help="Also list the operators of a step: calls, CPU time, GPU time, waits of the host.",
)
@options.table_format
@options.output
def explain_command(
    *,
    measuring: dict[str, Any],
    names: tuple[str, ...],
    operators: bool,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
) -> None:
    """Name the functions that cause a change, or the waits of a step.

    Profiles the workloads now. With --against, it compares the merge base and the head. It gives no
    verdict: the exit code is 0.
    """
    reports.check_target(output, inputs=[])
    explained = ci_perf.explain(
        names,
        **measuring,
        notify=console.say,
        listener=measure_options.open_listener(),
    )
    from ci_perf.features.explain import page

    built = page.build_page(explained, operators=operators)
    reports.emit_page(built, format, output, document=explained)
