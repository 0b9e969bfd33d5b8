"""The options that several commands share, each with one meaning."""

import math
import re
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import click

from ci_perf.cli import console, reports
from ci_perf.model.suite import MOST_THREADS, FailOn
from ci_perf.report.commands import USUAL_ARTIFACT

_Command = TypeVar("_Command", bound=Callable[..., Any])
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_LONGEST_S = 86_400.0
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Longer than a month is no pause: then `fail_on` says it, where reviewers see it.
_LONGEST_PAUSE = timedelta(days=31)
_FOLDER = click.Path(file_okay=False, path_type=Path)


workloads = click.option(
    "--workloads",
    type=_FOLDER,
    default="workloads",
    show_default=True,
    help="The folder with suite.toml and the workload files.",
)
baselines = click.option(
    "--baselines",
    type=_FOLDER,
    default="baselines",
    show_default=True,
    help="The folder of the committed baselines.",
)
output = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write the result to this file instead of stdout.",
)
report = click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the report to this file instead of stdout.",
)
report_format = click.option(
    "--format",
    type=click.Choice(list(reports.COMPARISON_FORMS)),
    help="The form of the report. By default terminal on a terminal, else markdown.",
)

table_format = click.option(
    "--format",
    type=click.Choice([*reports.PAGE_FORMS, "json"]),
    help="The form of the result. By default markdown in a file, else terminal.",
)
artifact = click.option(
    "--artifact",
    default=USUAL_ARTIFACT,
    show_default=True,
    metavar="NAME",
    help="The artifact of that run, with run.json at its top.",
)
artifacts = click.option(
    "--artifact",
    multiple=True,
    default=(USUAL_ARTIFACT,),
    show_default=True,
    metavar="NAME",
    help="The artifact of that run, with run.json at its top; may be repeated: one per machine.",
)
workflow = click.option(
    "--workflow",
    default=".github/workflows/perf.yml",
    show_default=True,
    metavar="FILE",
    help="The workflow that measures. Runs of other workflows are refused.",
)


def give_options(command: _Command, options: Sequence[Callable[[_Command], _Command]]) -> _Command:
    """Give a command options, which ``--help`` lists in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def run_output(
    *, default: str, holds: str = "of the run: everything that was measured."
) -> Callable[[_Command], _Command]:
    """Make the option --output of a command that measures: its file, and what that `holds`."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        default=default,
        show_default=True,
        help=f"The file {holds}",
    )


def fail_on(*, default: FailOn | None) -> Callable[[_Command], _Command]:
    """Make the option --fail-on; without a default, suite.toml says it."""
    return click.option(
        "--fail-on",
        type=click.Choice(get_args(FailOn)),
        default=default,
        show_default=default or "as suite.toml says, else proven",
        help="Which regressions end with exit code 1. proven: only proven ones (a likely one ends "
        "with 3). likely: also likely ones. unanswered: also metrics without an answer. never: "
        "none (they end with 0). A failed workload, or nothing to compare, always ends with 3.",
    )


def read_pause(text: str, today: date) -> str:
    """Return the date on which a pause ends; empty without a pause. Raises BadParameter."""
    if not text:
        return ""
    try:
        end = date.fromisoformat(text) if _DATE.fullmatch(text) else None
    except ValueError:
        end = None
    if end is None or end > today + _LONGEST_PAUSE:
        raise click.BadParameter(
            f"expected a date such as {today + timedelta(days=7)}, at most "
            f"{_LONGEST_PAUSE.days} days ahead, found {text!r}",
            param_hint="--paused-until",
        )
    if end > today:
        return text
    console.say(f"--paused-until: the pause ended on {text}. The gate is on: delete this setting.")
    return ""


paused_until = click.option(
    "--paused-until",
    default="",
    hidden=True,
    metavar="YYYY-MM-DD",
    callback=lambda _context, _option, text: read_pause(text.strip(), datetime.now(UTC).date()),
    help="Before this date (UTC, at most 31 days ahead), every verdict ends with exit code 0. The "
    "report names the date, and the verdict.",
)


def read_count(text: str | None, option: str) -> int | Literal["unknown"] | None:
    """Return a number from 0 on, or "unknown". Raises BadParameter."""
    if text is None or text == "unknown":
        return None if text is None else "unknown"
    if not (text.isascii() and text.isdigit()):
        raise click.BadParameter(
            f"expected a number from 0 on, or unknown, found {text!r}", param_hint=option
        )
    return int(text)


def read_threads(text: str | None, option: str) -> int | Literal["own"] | None:
    """Return a number of threads, or "own". Raises BadParameter."""
    if text is None or text == "own":
        return None if text is None else "own"
    if text.isascii() and text.isdigit() and 1 <= int(text) <= MOST_THREADS:
        return int(text)
    raise click.BadParameter(
        f"expected a number from 1 to {MOST_THREADS}, or own, found {text!r}", param_hint=option
    )


def read_duration(text: str | None, option: str) -> float | None:
    """Return seconds of "90s", "20m" or "1h". Raises BadParameter."""
    if text is None:
        return None
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else math.inf
    if not seconds <= _LONGEST_S:
        raise click.BadParameter(
            f"expected a duration such as 90s, 20m or 1h, at most a day, found {text!r}",
            param_hint=option,
        )
    return seconds
