"""`ci-perf pin`: pin the image that a suite is measured in."""

from pathlib import Path
from typing import get_args

import click

from ci_perf.cli import console, options
from ci_perf.features.containers import pin
from ci_perf.model.container import EngineName


@click.command("pin")
@click.argument("reference", required=False)
@options.workloads
@click.option(
    "--engine",
    type=click.Choice(get_args(EngineName)),
    default="docker",
    show_default=True,
    help="The engine that has the image.",
)
@click.option(
    "--pull",
    is_flag=True,
    help="Ask the registry for the current image of the tag, even if this host has an image.",
)
@click.option(
    "--local",
    is_flag=True,
    help="Use the id of an image that was never pushed. Only this host knows it.",
)
def pin_command(
    reference: str | None, workloads: Path, engine: EngineName, *, pull: bool, local: bool
) -> None:
    """Write the digest of an image into suite.toml, so that all runners use the same image.

    REFERENCE is a tag, by default that of the image in suite.toml. Writes its current image as
    NAME:TAG@sha256:... into the table [container], and prints it.
    """
    pinned = pin.pin(
        reference,
        workloads,
        engine,
        ask_registry=pull,
        allow_local=local,
        notify=console.say,
    )
    console.emit(pinned, output=None)
