"""`ci-perf judge`: judge samples that any harness has recorded."""

from pathlib import Path
from typing import get_args

import click

from ci_perf.cli import options
from ci_perf.cli import output as out
from ci_perf.errors import InvalidFileError, UsageError
from ci_perf.importers import merging
from ci_perf.importers.reading import Document
from ci_perf.judge import samples as judge
from ci_perf.model.comparison import Comparison
from ci_perf.model.samples import Samples
from ci_perf.model.suite import FailOn, Preset
from ci_perf.system import files

_FILE = click.Path(path_type=Path)
_NAMED = 3


@click.command("judge")
@click.argument("samples", nargs=-1, type=_FILE, metavar="[SAMPLES]...")
@click.option(
    "--from",
    type=click.Choice(list(merging.TOOLS)),
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
    tool = harness["from"]
    paired = [path for both in pair for path in both]
    inputs = [*samples, *base, *head, *paired]
    out.check_target(format, output, inputs=inputs)
    if tool is None:
        if not samples or inputs != list(samples):
            raise UsageError(_wrong_use(inputs))
        comparison = _of_files(samples, preset, fail_on)
    elif samples or bool(base) != bool(head) or not (head or pair):
        raise UsageError(
            f"--from {tool}: expected --base FILE and --head FILE, or --pair BASE HEAD, or all "
            "three, and no SAMPLES"
        )
    else:
        comparison = _of_harness(tool, base, head, pair, preset, fail_on)
    out.emit_comparison(comparison, format, output)
    return comparison.exit_code


def _wrong_use(inputs: list[Path]) -> str:
    if inputs:
        return "--base, --head, --pair: expected --from TOOL, which says who wrote them"
    return "expected SAMPLES, or --from TOOL; see `ci-perf judge --help`"


def _of_files(paths: tuple[Path, ...], preset: Preset, fail_on: FailOn) -> Comparison:
    joined = merging.join([(str(path), files.read(path, Samples)) for path in paths])
    label = _label(paths)
    return judge.judge(joined, base=label, head=label, preset=preset, fail_on=fail_on)


def _of_harness(
    tool: str,
    bases: tuple[Path, ...],
    heads: tuple[Path, ...],
    pairs: tuple[tuple[Path, Path], ...],
    preset: Preset,
    fail_on: FailOn,
) -> Comparison:
    old, new = (tuple(both[side] for both in pairs) for side in (0, 1))
    paired = list(zip(_documents(old), _documents(new), strict=True))
    try:
        merged = merging.merge(tool, _documents(bases), _documents(heads), paired)
    except InvalidFileError as error:
        raise InvalidFileError(f"--from {tool}: {error}") from None
    for left_out in merged.left_out:
        out.say(f"{left_out.document}: {left_out.benchmark}: left out: {left_out.reason}")
    return judge.judge(
        merged.samples,
        base=_label((*bases, *old)),
        head=_label((*heads, *new)),
        preset=preset,
        fail_on=fail_on,
    )


def _documents(paths: tuple[Path, ...]) -> list[Document]:
    return [Document(name=str(path), text=files.read_text(path)) for path in paths]


def _label(paths: tuple[Path, ...]) -> str:
    """Name the first few files: the others are known to whoever typed them."""
    more = len(paths) - _NAMED
    return ", ".join(map(str, paths[:_NAMED])) + (f" and {more} more" if more > 0 else "")
