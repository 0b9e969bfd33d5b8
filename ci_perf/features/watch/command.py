"""The command of a nightly job that looks for what made a branch worse: `watch`."""

from pathlib import Path
from typing import Any

import click

from ci_perf.cli import console, measure_options, options, reports
from ci_perf.errors import ExitCode
from ci_perf.features.watch import watch
from ci_perf.model.watch import FILE


@click.command("watch", options_metavar="[OPTIONS]")
@measure_options.add_measure_options(
    "wait_s",
    "threads",
    "budget_s",
    "explain_s",
    select=False,
    budget_s={"default": 7200.0, "help": "How long this call may take. The next one goes on."},
    explain_s={
        "help": "How long to profile a culprit, for its cause. 0s: no profiles.",
        "show_default": "1m",
    },
)
@options.run_output(
    default=FILE, holds="that holds what is known, and that the next call goes on with."
)
@options.report
@options.table_format
def watch_command(
    *,
    measuring: dict[str, Any],
    output: Path,
    report: Path | None,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
) -> int:
    """Find the commits that made your branch slower since its baselines.

    HEAD is measured. A metric that looks worse than the history of this machine is only suspected:
    pairs of HEAD with the last good commit say whether the code or the machine changed. Then a
    bisect finds the commit. Commits that were found are measured each night until they are
    repaired or accepted.

    Exit codes: 0 nothing is worse, 1 a commit or a slow creep is open, 3 something has no answer
    yet, 130 interrupted (what is known is in the file).
    """
    reports.check_target(report, inputs=[output])
    watched = watch.watch(
        measuring, output=output, notify=console.say, listener=measure_options.open_listener
    )
    from ci_perf.features.watch.report import build_page

    reports.emit_page(build_page(watched), format, report, document=watched)
    console.say(f"watch: {output}")
    states = [each.state for each in watched.culprits] + [each.state for each in watched.creeps]
    if "open" in states:
        return ExitCode.REGRESSED
    is_open = (
        not watched.complete
        or watched.no_answer
        or any(each.answer == "searching" or each.left for each in watched.suspicions)
    )
    return ExitCode.NO_ANSWER if is_open else ExitCode.OK
