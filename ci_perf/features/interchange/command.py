"""The commands for other tools: `judge` reads what they wrote, `export` writes what they read."""

import itertools
from pathlib import Path

import click

import ci_perf
from ci_perf.cli import console, options, reports
from ci_perf.features.interchange import export, importers
from ci_perf.model.suite import FailOn

FORMATS = ("csv", "html")

_FILE = click.Path(path_type=Path)


@click.command("judge")
@click.argument("samples", nargs=-1, type=_FILE, metavar="[SAMPLES]...")
@click.option(
    "--from",
    type=click.Choice(importers.find_tools()),
    help="Instead of SAMPLES: judge files of this harness, given by --base, --head and --pair.",
)
@click.option(
    "--base",
    type=_FILE,
    multiple=True,
    metavar="FILE",
    help="A file of the base. Each file is one session. May be repeated.",
)
@click.option(
    "--head",
    type=_FILE,
    multiple=True,
    metavar="FILE",
    help="A file of the head. All files together are one session. May be repeated.",
)
@click.option(
    "--pair",
    type=_FILE,
    nargs=2,
    multiple=True,
    metavar="BASE HEAD",
    help="Two files that were launched alternately. Only pairs prove a slowdown. May be repeated.",
)
@click.option(
    "--limit",
    type=click.FloatRange(min=0, max=1, min_open=True),
    metavar="SHARE",
    help="The smallest slowdown to find, as a share: 0.02 is 2 %.  [default: (0.02)]",
)
@options.fail_on(default="proven")
@options.report_format
@options.output
def judge_command(
    samples: tuple[Path, ...],
    base: tuple[Path, ...],
    head: tuple[Path, ...],
    pair: tuple[tuple[Path, Path], ...],
    limit: float | None,
    fail_on: FailOn,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
    **harness: str | None,  # `from`, which Python allows as no parameter of its own
) -> int:
    """Judge numbers of another harness.

    SAMPLES are JSON files (`ci-perf schema samples` prints the schema) with sessions of the base,
    launches of the head, and pairs of both. Or name the files of another harness: `--from pyperf
    --base monday.json --base tuesday.json --head new.json`. Name all files of a pull request in one
    call: they share the chance of a false alarm. Without pairs, a slowdown is at most likely, and
    ends with 1 only by --fail-on.
    """
    inputs = [*samples, *base, *head, *itertools.chain.from_iterable(pair)]
    reports.check_target(output, inputs=inputs)
    comparison = ci_perf.judge(
        *samples,
        tool=harness["from"],
        base=base,
        head=head,
        pairs=pair,
        limit=limit,
        fail_on=fail_on,
        notify=console.say,
    )
    reports.emit_comparison(comparison, format, output)
    return comparison.exit_code


@click.command("export")
@click.argument("source", type=_FILE, metavar="FILE")
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    required=True,
    help="A table, or a page.",
)
@click.option(
    "--run",
    type=_FILE,
    help="For html: the run.json that was judged, if it is in another folder than FILE.",
)
@options.baselines
@options.output
def export_command(
    source: Path,
    format: str,  # noqa: A002  the option's name, and that of its environment variable
    run: Path | None,
    baselines: Path,
    output: Path | None,
) -> None:
    """Write a run or a comparison as a table, or as a page of HTML.

    FILE is a run of `ci-perf run`, or a comparison of `ci-perf compare --format json`. html draws a
    comparison as one static page, with the committed sessions of --baselines.
    """
    reports.check_target(output, inputs=[source, baselines, *([run] if run else [])])
    text = export.export(source, format, run=run, baselines=baselines, notify=console.say)
    console.emit(text, output=output)
