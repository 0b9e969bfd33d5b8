"""`ci-perf judge`: judge samples that any harness has recorded."""

import itertools
from pathlib import Path
from typing import get_args

import click

import ci_perf
from ci_perf import importers
from ci_perf.cli import console, options, reports
from ci_perf.model.suite import FailOn, Preset

_FILE = click.Path(path_type=Path)


@click.command("judge")
@click.argument("samples", nargs=-1, type=_FILE, metavar="[SAMPLES]...")
@click.option(
    "--from",
    type=click.Choice(list(importers.TOOLS)),
    help="Judge files of this harness, given by --base and --head, instead of SAMPLES.",
)
@click.option(
    "--base",
    type=_FILE,
    multiple=True,
    metavar="FILE",
    help="What the harness wrote for the base: each file is one session. May be repeated.",
)
@click.option(
    "--head",
    type=_FILE,
    multiple=True,
    metavar="FILE",
    help="What it wrote for the head: all files together are one session. May be repeated.",
)
@click.option(
    "--pair",
    type=_FILE,
    nargs=2,
    multiple=True,
    metavar="BASE HEAD",
    help="What it wrote for base and head launched in turns: only this confirms. May be repeated.",
)
@click.option(
    "--preset",
    type=click.Choice(get_args(Preset)),
    default="default",
    show_default=True,
    help="How small a change must be found, and how quiet the machine must be for it.",
)
@options.fail_on(default="regressed")
@options.report_format
@options.output
def command(
    samples: tuple[Path, ...],
    base: tuple[Path, ...],
    head: tuple[Path, ...],
    pair: tuple[tuple[Path, Path], ...],
    preset: Preset,
    fail_on: FailOn,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
    **harness: str | None,  # `from`, which Python allows as no parameter of its own
) -> int:
    """Judge samples that any harness has recorded.

    SAMPLES are JSON files (their schema: `ci-perf schema samples`) with sessions of the base,
    launches of the head, and pairs of launches that took turns. Or name the files of another
    harness: `--from pyperf --base monday.json --base tuesday.json --head new.json`. Name all files
    of a pull request in one call: the chance of a false alarm, 5 %, is shared within a call.
    Without pairs nothing is confirmed, and nothing ends with exit code 1 unless --fail-on says so.
    """
    inputs = [*samples, *base, *head, *itertools.chain.from_iterable(pair)]
    reports.check_target(format, output, inputs=inputs)
    comparison = ci_perf.judge(
        *samples,
        tool=harness["from"],
        base=base,
        head=head,
        pairs=pair,
        preset=preset,
        fail_on=fail_on,
        notify=console.say,
    )
    reports.emit_comparison(comparison, format, output)
    return comparison.exit_code
