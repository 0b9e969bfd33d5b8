"""The command for the history of a branch: `history`."""

from pathlib import Path

import click

from ci_perf.cli import console, options, reports
from ci_perf.errors import UsageError
from ci_perf.gate import history
from ci_perf.model import codec
from ci_perf.model.history import BranchHistory
from ci_perf.system import files

_FORMS = ("html", "json", "csv", "parquet", "terminal")


@click.command("history")
@click.argument("names", nargs=-1, metavar="[WORKLOAD]...")
@click.option(
    "--ref",
    default="HEAD",
    show_default=True,
    metavar="REF",
    help="The branch, tag or commit whose history is read.",
)
@options.baselines
@options.workloads
@click.option(
    "--machines",
    default="",
    metavar="A,B",
    help="Only these folders of --baselines; a page draws two on one axis, too.",
)
@click.option(
    "--repository-url",
    default="",
    metavar="URL",
    help="Where people see the repository: commits link there. By default the address of the "
    "remote origin, if it is https.",
)
@click.option(
    "--format",
    type=click.Choice(_FORMS),
    help="By default terminal, or with -o html; parquet needs -o.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="With html the folder that gets the page; else a file, instead of stdout.",
)
def history_command(
    names: tuple[str, ...],
    ref: str,
    baselines: Path,
    workloads: Path,
    machines: str,
    repository_url: str,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
) -> None:
    """Show what git knows of the baselines of a branch: every session, and what moved.

    Reads the commits of --ref, checks nothing out and runs nothing. Limits are those of the
    suite.toml in --workloads.
    """
    form = format or ("html" if output else "terminal")
    _check_target(form, output, baselines)
    chosen = [name for name in machines.split(",") if name]
    read = history.read(
        history.HistoryOptions(
            root=files.current_folder(),
            baselines=baselines,
            workloads=workloads,
            names=names,
            machines=tuple(chosen),
            ref=ref,
            repository_url=repository_url,
        ),
        notify=console.say,
    )
    if form == "html" and output is not None:
        console.say(f"page: {history.write(read, output, together=chosen)}")
    else:
        _emit(read, form, output)


def _check_target(form: str, output: Path | None, baselines: Path) -> None:
    if form != "html":
        reports.check_target(form, output, inputs=[baselines])
    elif output is None:
        raise UsageError("--format html writes several files: name a folder with -o")
    else:
        files.check_apart("--output", output, baselines)
        history.check_folder(output)


def _emit(history: BranchHistory, form: str, output: Path | None) -> None:
    if form == "terminal":
        from ci_perf.report import branch_history

        reports.emit_page(branch_history.page(history), form, output)
    elif form == "json":
        console.emit(codec.encode(history), output=output)
    else:
        from ci_perf.report import frame

        reports.emit_frame(frame.of_history(history), form, output)
