"""`ci-perf baseline`: look at the committed history, and let git merge it."""

from pathlib import Path
from typing import get_args

import click

from ci_perf.baselines import layout, merge
from ci_perf.cli import console, options
from ci_perf.gate import baseline_history
from ci_perf.report import history
from ci_perf.report.history import Form

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group("baseline")
def command() -> None:
    """Look at the committed history, and let git merge it."""


@command.command("show")
@click.argument("names", nargs=-1, metavar="[WORKLOAD]...")
@options.baselines
@options.workloads
@click.option(
    "--format",
    type=click.Choice(get_args(Form)),
    default="terminal",
    show_default=True,
    help="The form of the table.",
)
def show(names: tuple[str, ...], baselines: Path, workloads: Path, format: Form) -> None:  # noqa: A002  the option's name
    """Show the history of every metric that gates.

    Sessions, epochs, age, centre, spread between sessions, and the trend within the epoch. Change
    points need ruptures (the extra "history"). They are for information, never a gate.
    """
    histories = baseline_history.read(baselines, workloads, names=names, notify=console.say)
    console.emit(history.render(histories, format), output=None)


@command.command("merge")
@click.argument("base", type=_FILE)
@click.argument("ours", type=_FILE)
@click.argument("theirs", type=_FILE)
@click.option("--path", default="", help="What the file is called in the repository.")
def merge_files(base: Path, ours: Path, theirs: Path, path: str) -> None:
    """Unite two histories of a workload.

    What both sides added to BASE goes into OURS, as git asks of a merge driver. Exit code 3 is a
    conflict, and leaves OURS as it was: both sides accepted a change of the same metric, measured
    different things, or one began anew while the other went on.
    """
    merged = merge.merge(
        layout.read_anywhere(base) if base.stat().st_size else None,
        layout.read_anywhere(ours),
        layout.read_anywhere(theirs),
        name=path or str(ours),
    )
    layout.write_anywhere(ours, merged)


@command.command("install")
@options.baselines
def install(baselines: Path) -> None:
    """Let git merge baselines with ci-perf.

    Writes .gitattributes, which is committed, and the configuration of this clone, which is not.
    """
    attributes = merge.install_driver(baselines)
    console.say(f"this clone merges {baselines} with ci-perf from now on; every clone needs this")
    console.say(f"next: git add {attributes} && git commit")
