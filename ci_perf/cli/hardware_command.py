"""The command that compares machines by what they do for their price: `hardware`."""

from datetime import UTC, datetime
from pathlib import Path

import click

from ci_perf.cli import console, options, reports
from ci_perf.errors import ExitCode, UsageError
from ci_perf.gate.hardware import compare
from ci_perf.model import codec
from ci_perf.model.hardware import Hardware
from ci_perf.system import files

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("hardware")
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path), metavar="RUN.json...")
@click.option(
    "--prices",
    type=_FILE,
    metavar="prices.toml",
    help="What an hour of each machine costs, and who says so; no price is built in.",
)
@click.option("--page", type=_FILE, help="Write tables and picture to this file of HTML, too.")
@click.option("--picture", type=_FILE, help="Draw price against speed to this file of SVG, too.")
@options.table_format
@options.output
def hardware_command(
    *,
    runs: tuple[Path, ...],
    prices: Path | None,
    page: Path | None,
    picture: Path | None,
    format: str | None,  # noqa: A002  the option's name, and that of its environment variable
    output: Path | None,
) -> int:
    """Compare machines by runs of one suite, and by the prices of their owner.

    RUN.json is what `ci-perf run` wrote on a machine, of the same suite and commit each; several of
    one class of machines count together. Launches nothing, and gives no verdict.

    Exit codes: 0 compared, 2 a run or prices.toml is invalid, 3 no workload was measured on all
    machines, so that nothing orders them.
    """
    inputs = [*runs, *([prices] if prices else [])]
    reports.check_target(None, output, inputs=inputs)
    files.check_apart("--page", page, output, *inputs)
    files.check_apart("--picture", picture, page, output, *inputs)
    for target in filter(None, (page, picture)):
        files.check_target(target)
    compared = compare(runs, prices, today=datetime.now(UTC).date())
    _draw(compared, page, picture)
    if format == "json":
        console.emit(codec.encode(compared), output=output)
    else:
        from ci_perf.report import hardware

        reports.emit_page(hardware.page(compared), format, output)
    is_ordered = any(each.speed_rank is not None for each in compared.classes)
    return ExitCode.OK if is_ordered else ExitCode.NO_ANSWER


def _draw(compared: Hardware, page: Path | None, picture: Path | None) -> None:
    """Write the page and the picture. Raises UsageError where there is nothing to draw."""
    if page is None and picture is None:
        return
    from ci_perf.report import hardware
    from ci_perf.report.page import price_picture, tables_page

    drawn = price_picture.picture(compared)
    if picture is not None and drawn is None:
        raise UsageError(
            "--picture: expected a machine with a speed and a price, found none; name "
            "--prices, and runs that share a workload"
        )
    if page is not None:
        text = tables_page.render(hardware.page(compared), tone="same", picture=drawn)
        files.write_text(page, text)
        console.say(f"page: {page}")
    if picture is not None and drawn is not None:
        files.write_text(picture, price_picture.svg(drawn))
        console.say(f"picture: {picture}")
