"""The command that proves an optimisation: `prove`."""

from pathlib import Path
from typing import Any

import click

from ci_perf.cli import console, measure_options, options, reports
from ci_perf.errors import ExitCode


@click.command("prove")
@measure_options.add_measure_options(
    "wait_s",
    "threads",
    "against",
    "budget_s",
    select=False,
    against={"default": "main"},
    budget_s={
        "help": "The time for pairs of base and head, and again for those with another seed: 90s, "
        "20m, 1h."
    },
)
@click.option(
    "--faster",
    multiple=True,
    metavar="NAME=5%",
    help="A claim: a step of this workload takes at least so much less time. May be repeated.",
)
@click.option(
    "--less-memory",
    multiple=True,
    metavar="NAME=64MiB",
    help="A claim: the workload needs at least so much less memory. May be repeated.",
)
@click.option(
    "--because",
    default="",
    metavar="REASON",
    help="Why a step does less work, or waits less, for the receipt. Without it, such a claim is "
    "refused.",
)
@options.table_format
@options.output
def prove_command(
    *,
    measuring: dict[str, Any],
    faster: tuple[str, ...],
    less_memory: tuple[str, ...],
    because: str,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
) -> int:
    """Prove that a change is faster, or needs less memory, and print a receipt.

    The whole suite is checked against the merge base. The claim is proven if its whole interval
    lies beyond it, no other metric is worse or open, both sides compute the same numbers with two
    seeds, the gate and the workloads are unchanged, a step does the same work, and a clock outside
    of the measured process agrees.

    Exit codes: 0 proven, 1 not proven (the receipt ends with the reason), 3 the machine gives no
    answer.
    """
    reports.check_target(output, inputs=[])
    from ci_perf.features.proof import proof, receipt

    answer = proof.prove(
        measuring,
        faster=faster,
        less_memory=less_memory,
        because=because,
        notify=console.say,
        listener=measure_options.open_listener(),
    )
    reports.emit_page(receipt.build_page(answer), format, output, document=answer)
    return ExitCode.OK if answer.holds else ExitCode.REGRESSED
