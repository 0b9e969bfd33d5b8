"""The commands that judge what was measured, draw it and hand it on."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import click

import ci_perf
from ci_perf import importers
from ci_perf.cli import console, options, reports
from ci_perf.errors import ExitCode
from ci_perf.model.run import Run
from ci_perf.model.suite import FailOn
from ci_perf.system import files

FORMATS = ("csv", "parquet", "openmetrics", "tensorboard", "html")

_FILE = click.Path(path_type=Path)


@click.command("compare")
@click.argument("runs", nargs=-1, required=True, type=_FILE, metavar="[BASE] HEAD | RUN...")
@click.option(
    "--baselines",
    type=click.Path(file_okay=False, path_type=Path),
    default="baselines",
    show_default=True,
    help="Judge HEAD against this folder when no BASE is given.",
)
@click.option(
    "--losses",
    is_flag=True,
    help="Show the losses of the first steps side by side, and judge nothing.",
)
@click.option(
    "--prices",
    type=_FILE,
    metavar="prices.toml",
    help="What an hour of each machine costs: show runs side by side with what a million items "
    "cost, and judge nothing.",
)
@options.workloads
@options.fail_on(default=None)
@options.report_format
@options.output
def compare_command(
    runs: tuple[Path, ...],
    baselines: Path,
    losses: bool,  # noqa: FBT001  as click passes an option
    prices: Path | None,
    workloads: Path,
    fail_on: FailOn | None,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
) -> int:
    """Judge one run against another, or against the committed baselines.

    BASE and HEAD are files that `ci-perf run` wrote. The limits are those of the suite.toml in
    --workloads. Three runs or more, and runs with --prices, are shown side by side, without a
    verdict: the same suite on several machines, for example.
    """
    reports.check_target(format, output, inputs=[*runs, baselines, *([prices] if prices else [])])
    if losses:
        return _show_losses(runs, format, output)
    if prices is not None or len(runs) > 2:
        return _show_side_by_side(runs, prices, format, output)
    comparison = ci_perf.compare(
        runs[-1],
        base=runs[0] if len(runs) == 2 else None,
        baselines=baselines,
        workloads=workloads,
        fail_on=fail_on,
        notify=console.say,
    )
    reports.emit_comparison(comparison, format, output)
    return comparison.exit_code


def _show_side_by_side(
    runs: Sequence[Path], prices: Path | None, asked: str | None, target: Path | None
) -> int:
    from ci_perf.gate import side_by_side

    form = reports.report_format(asked, target)
    if form == "json":
        raise click.UsageError("--format json: expected a comparison, found runs side by side")
    page = side_by_side.page(runs, prices)
    if form in {"csv", "parquet"}:
        from ci_perf.report import frame

        reports.emit_frame(frame.of_runs(*(files.read(run, Run) for run in runs)), form, target)
    else:
        reports.emit_page(page, form, target)
    return ExitCode.OK


def _show_losses(runs: Sequence[Path], asked: str | None, target: Path | None) -> int:
    form = reports.report_format(asked, target)
    if len(runs) > 2:
        raise click.UsageError(f"--losses: expected one or two runs, found {len(runs)}")
    if form not in {"markdown", "terminal"}:
        raise click.UsageError(
            f"--losses: expected --format markdown or terminal, found {form}; a program reads them "
            "in run.json, under fingerprint"
        )
    from ci_perf.report import profiles

    sides = ("base", "head") if len(runs) == 2 else ("",)
    page = profiles.losses(
        [(side, files.read(run, Run)) for side, run in zip(sides, runs, strict=True)]
    )
    reports.emit_page(page, form, target)
    return ExitCode.OK


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
    "--limit",
    type=click.FloatRange(min=0, max=1, min_open=True),
    metavar="SHARE",
    help="The loss of a time that must not pass unseen; 0.02, which is 2 %, by default.",
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
    help="A table (csv, parquet), what another tool reads, or one page of HTML.",
)
@click.option(
    "--run",
    type=_FILE,
    help="Of html: the run.json that was judged; without it no launches, pairs and machine are "
    "drawn.",
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
    """Write a run, a comparison or a history for another tool, or as a page of HTML.

    FILE is what `ci-perf run`, or `compare` or `history` with --format json, wrote. html draws a
    comparison as one page that needs no server, network or script, with the committed sessions of
    --baselines. tensorboard makes a folder of --output.
    """
    from ci_perf.gate import export

    is_folder = format == "tensorboard"
    reports.check_target(
        format,
        None if is_folder else output,
        inputs=[source, baselines, *([run] if run else [])],
    )
    text = export.export(
        source, format, run=run, baselines=baselines, output=output, notify=console.say
    )
    if text:
        console.emit(text, output=output)
