"""The options that several commands share, each with one meaning."""

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import click

from ci_perf.model.suite import FailOn
from ci_perf.report.accept_help import USUAL_ARTIFACT

_Command = TypeVar("_Command", bound=Callable[..., Any])
_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smh])")
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_LONGEST_S = 86_400.0
_FOLDER = click.Path(file_okay=False, path_type=Path)


def duration(
    name: str, *, default: str | None, text: str, show_default: str | Literal[True] = True
) -> Callable[[_Command], _Command]:
    """Make an option that is a duration, as seconds."""
    return click.option(
        name,
        default=default,
        show_default=show_default,
        metavar="DURATION",
        callback=lambda _context, _option, said: None if said is None else duration_s(said, name),
        help=text,
    )


suite = click.option(
    "--suite",
    default="",
    show_default="smoke, or the only one",
    metavar="NAME",
    help="A suite of suite.toml, or builtin:NAME for one that comes with ci-perf. Without "
    "suite.toml, each file of --workloads is a workload of the suite default.",
)
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
device = click.option(
    "--device",
    default="auto",
    show_default=True,
    metavar="auto|cpu|cuda|cuda:N",
    help="Where to measure; auto takes what the suite names, else the first GPU, or the CPU.",
)
processes = click.option(
    "--processes",
    type=click.IntRange(1, 100),
    help="Fresh processes per workload; by default as suite.toml says, with --against at most 3.",
)
against = click.option(
    "--against",
    metavar="REF",
    help="Launch the code of the merge base with REF (a branch, tag or commit) and the head in "
    "turns, wherever the baselines do not clear the head.",
)
budget = duration(
    "--budget",
    default="20m",
    text="How long base and head may be launched in turns: 90s, 20m, 1h. With --against.",
)
add = click.option(
    "--add",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="RUN.json",
    help="An earlier run: its pairs count, too, where it is of the same commits, machine and "
    "software. With --against.",
)
checks_before = click.option(
    "--checks-before",
    metavar="N",
    callback=lambda _context, option, text: _count(text, option.opts[0]),
    help="How many checks of the same pull request have tested pairs: all share the chance of a "
    "false alarm. 'unknown' makes the report say so.",
)
all_workloads = click.option(
    "--all",
    is_flag=True,
    help="Measure every workload, also one that runs the same program on both sides. With "
    "--against.",
)
explain = duration(
    "--explain",
    default="5m",
    text="How long to profile base and head where pairs prove a change, worst workload first; no "
    "verdict depends on it, and 0s leaves it out. With --against.",
)
traces = click.option(
    "--traces",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep what torch.profiler has traced of the first launch of each side, for "
    "ui.perfetto.dev: WORKLOAD.base.pt.trace.json.gz and WORKLOAD.head.pt.trace.json.gz.",
)
wait = duration(
    "--wait",
    default=None,
    show_default="1m for a CPU, or for a GPU that others use",
    text="How long to wait until others no longer use the machine, before measuring all the same. "
    "Another run of ci-perf may take 30m, or as long where that is more. 0s waits for nobody.",
)
output = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write the result to this file, whole or not at all, instead of stdout.",
)
report = click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the report to this file, as Markdown, instead of stdout.",
)
report_format = click.option(
    "--format",
    type=click.Choice(["markdown", "json", "terminal", "csv", "parquet"]),
    help="The form of the report: by default markdown, or terminal on one; parquet needs --output.",
)

table_format = click.option(
    "--format",
    type=click.Choice(["terminal", "markdown", "json"]),
    help="The form of the tables: by default markdown in a file, else terminal; json is the "
    "document itself.",
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
    help="The workflow that measures: a run of any other one is refused.",
)


def run_output(*, default: str) -> Callable[[_Command], _Command]:
    """Make the option --output of a command that measures: the file of its run."""
    return click.option(
        "-o",
        "--output",
        type=click.Path(dir_okay=False, path_type=Path),
        default=default,
        show_default=True,
        help="The file of the run: everything that was measured.",
    )


def fail_on(*, default: FailOn | None) -> Callable[[_Command], _Command]:
    """Make the option --fail-on; without a default, suite.toml says it."""
    return click.option(
        "--fail-on",
        type=click.Choice(get_args(FailOn)),
        default=default,
        show_default=default or "as suite.toml says, else proven",
        help="The mildest loss that ends with exit code 1. proven: only a proven one, and what "
        "looks like a loss ends with 3. likely: also one that is likely or predicted. unanswered: "
        "also each metric without a clear answer. never: none, and a loss ends with 0. What has no "
        "numbers, or none to compare with, ends with 3 in each case.",
    )


def _count(text: str | None, option: str) -> int | Literal["unknown"] | None:
    """Return a number from 0 on, or "unknown". Raises BadParameter."""
    if text is None or text == "unknown":
        return None if text is None else "unknown"
    if not (text.isascii() and text.isdigit()):
        raise click.BadParameter(
            f"expected a number from 0 on, or unknown, found {text!r}", param_hint=option
        )
    return int(text)


def duration_s(text: str, option: str = "--budget") -> float:
    """Return seconds of "90s", "20m" or "1h". Raises BadParameter."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else math.inf
    if not seconds <= _LONGEST_S:
        raise click.BadParameter(
            f"expected a duration such as 90s, 20m or 1h, at most a day, found {text!r}",
            param_hint=option,
        )
    return seconds
