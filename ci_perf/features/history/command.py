"""The command for the history of a branch: `history`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

import ci_perf
from ci_perf.cli import console, measure_options, reports
from ci_perf.errors import ExitCode, UsageError
from ci_perf.features.history import backfill_report, costs, history, history_frame, report
from ci_perf.features.history.branch_history import BranchHistory
from ci_perf.model import codec
from ci_perf.system import files

_HTML = "html"
_FORMS: dict[str, Callable[[BranchHistory], str]] = {
    "json": codec.encode,
    "csv": lambda history: history_frame.from_history(history).to_csv(),
    "terminal": lambda history: reports.PAGE_FORMS["terminal"](report.page(history)),
}


@click.command("history")
@click.option(
    "--ref",
    default="HEAD",
    show_default=True,
    metavar="REF",
    help="The branch, tag or commit whose history is read.",
)
@click.option(
    "--machines", default="", metavar="A,B", help="Read only these folders of --baselines."
)
@click.option(
    "--format",
    type=click.Choice([_HTML, *_FORMS]),
    help="By default terminal, and html with -o.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="With html the folder for the page. Else a file, instead of stdout.",
)
@click.option(
    "--measure",
    metavar="FROM..TO",
    help="Measure these commits, oldest first, and add a session of each to --baselines, which you "
    "then commit.",
)
@click.option(
    "--every",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Measure each N-th commit, counted back from TO. With --measure.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Accept numbers of a very busy machine. With --measure.",
)
@click.option(
    "--cost",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    metavar="FOLDER",
    help="Instead, add up what the checks took whose comparison.json lies below this folder, by "
    "month.",
)
@click.option(
    "--prices",
    type=click.Path(path_type=Path),
    metavar="prices.toml",
    help="With --cost: a currency, and what an hour of each machine costs (docs/history.md).",
)
@measure_options.add_measure_options("wait_s", "processes", "threads")
def history_command(
    *,
    measuring: dict[str, Any],
    ref: str,
    machines: str,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
    measure: str | None,
    every: int,
    force: bool,
    cost: Path | None,
    prices: Path | None,
) -> int:
    """Show the history of each metric of a branch, from the baselines in git.

    Reads the commits of --ref, and runs nothing. The suite.toml in --workloads has the limits. With
    --measure it measures older commits: those after FROM up to TO, along first parents, each in its
    own worktree. A commit with the same program as the one before is skipped. A commit that fails
    is named. Call it again to continue.

    Exit codes: 0 done. With --measure also 3: a commit failed, and 130: interrupted (accepted
    sessions stay).
    """
    if cost is not None:
        if format not in {None, "terminal"}:
            raise UsageError(f"--cost: expected --format terminal, or -o FILE, found {format}")
        reports.check_target(output, inputs=[cost, *([prices] if prices else [])])
        reports.emit_page(costs.page(cost, prices), format, output)
        return ExitCode.OK
    if prices is not None:
        raise UsageError("--prices: expected --cost beside it, found none")
    if measure is not None:
        return _measure(measure, measuring, format, output, every=every, force=force)
    baselines = measuring["baselines"]
    form = format or (_HTML if output else "terminal")
    if form != _HTML:
        reports.check_target(output, inputs=[baselines])
    elif output is None:
        raise UsageError("--format html writes several files: name a folder with -o")
    else:
        files.check_apart("--output", output, baselines)
        history.check_folder(output)
    read = ci_perf.history(
        *measuring["select"],
        ref=ref,
        baselines=baselines,
        workloads=measuring["workloads"],
        machines=[name for name in machines.split(",") if name],
        notify=console.say,
    ).document
    if form == _HTML and output is not None:
        console.say(f"page: {history.write(read, output)}")
    else:
        reports.emit(_FORMS, read, form, output)
    return ExitCode.OK


def _measure(
    commits: str,
    measuring: dict[str, Any],
    form: str | None,
    output: Path | None,
    *,
    every: int,
    force: bool,
) -> int:
    if form not in {None, "terminal", "json"}:
        raise UsageError(f"--measure: expected --format terminal or json, found {form}")
    reports.check_target(output, inputs=[measuring["baselines"]])
    backfilled = ci_perf.backfill(
        commits,
        every=every,
        force=force,
        **measuring,
        notify=console.say,
        listener=measure_options.open_listener,
    )
    reports.emit_page(backfill_report.page(backfilled), form, output, document=backfilled)
    if backfilled.is_interrupted:
        return ExitCode.INTERRUPTED
    failed = any(each.outcome == "failed" for each in backfilled.commits)
    return ExitCode.NO_ANSWER if failed else ExitCode.OK
