"""The options that several commands share, each with one meaning."""

from pathlib import Path

import click

from ci_perf.errors import UsageError

_FOLDER = click.Path(file_okay=False, path_type=Path)

suite = click.option(
    "--suite",
    default="smoke",
    show_default=True,
    metavar="NAME",
    help="A suite of suite.toml, or builtin:NAME for one that comes with ci-perf.",
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
    help="Fresh processes per workload; suite.toml says how many by default.",
)
lock_timeout = click.option(
    "--lock-timeout",
    type=click.FloatRange(min=0),
    default=1800.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for another run to leave the device.",
)
output = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="Write the result to this file, whole or not at all, instead of stdout.",
)
report_format = click.option(
    "--format",
    type=click.Choice(["markdown", "json", "terminal", "csv", "parquet"]),
    default="markdown",
    show_default=True,
    help="The form of the report; parquet needs --output.",
)


def check_device(device: str) -> None:
    """Refuse what can be no device. Raises BadParameter."""
    kind, _, index = device.partition(":")
    if device in {"auto", "cpu", "cuda"} or (kind == "cuda" and index.isdecimal()):
        return
    raise click.BadParameter(
        f"expected auto, cpu, cuda or cuda:N, found {device!r}", param_hint="--device"
    )


def root() -> Path:
    """Return the folder that the command was called in: the repository. Raises UsageError."""
    try:
        return Path.cwd()
    except OSError:
        raise UsageError("the current folder is gone; change into one that exists") from None
