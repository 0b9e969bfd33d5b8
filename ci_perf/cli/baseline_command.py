"""`ci-perf baseline`: look at the committed history, and let git merge it."""

import datetime as dt
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

import click

from ci_perf.baselines import change_points, layout, merge, summaries
from ci_perf.cli import console, options
from ci_perf.errors import UsageError
from ci_perf.gate import compare
from ci_perf.judge import trends
from ci_perf.model import codec
from ci_perf.model.baseline import Baseline
from ci_perf.model.suite import is_selected
from ci_perf.report import history
from ci_perf.report.history import Form, SuiteHistory

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_DAY_S = 86_400


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
    every = layout.read_everything(baselines)
    _check_names(names, sorted({one.workload for one in every}), baselines)
    found = [one for one in every if is_selected(one.workload, names)]
    if not change_points.is_known():
        console.say(f"no change points: ruptures is not installed; next: {change_points.INSTALL}")
    console.emit(history.render(list(_histories(found, workloads)), format), output=None)


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


def _check_names(names: Iterable[str], known: list[str], baselines: Path) -> None:
    for name in names:
        if not any(is_selected(workload, (name,)) for workload in known):
            families = {workload.partition(".")[0] for workload in known}
            hint = codec.did_you_mean(name, [*sorted(families), *known])
            raise UsageError(f"{baselines}: has no baseline of a workload {name!r}; {hint}")


def _histories(found: Iterable[Baseline], workloads: Path) -> Iterator[SuiteHistory]:
    """Put what was measured on one class of machine in one suite together."""
    now = dt.datetime.now(dt.UTC)
    split = change_points.places if change_points.is_known() else None
    for (place, suite), group in itertools.groupby(found, key=_place):
        threshold = trends.gated(compare.rules(workloads, suite, notify=console.say).limits)
        lines = trends.describe([summaries.subject(one) for one in group], threshold, split=split)
        yield SuiteHistory(
            machine=place, suite=suite, lines=lines, days=lambda time: _days(time, now)
        )


def _place(baseline: Baseline) -> tuple[str, str]:
    return layout.machine_key(baseline.machine), baseline.suite


def _days(time: str, now: dt.datetime) -> float | None:
    """Return how long ago a time was, `None` for what is none: a file is edited by anybody."""
    try:
        then = dt.datetime.fromisoformat(time)
    except ValueError:
        return None
    if then.tzinfo is None:
        return None
    return (now - then).total_seconds() / _DAY_S
