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
    help="The engine that is asked for the image.",
)
@click.option(
    "--pull",
    is_flag=True,
    help="Ask the registry what the tag means today, even where this host has such an image.",
)
@click.option(
    "--local",
    is_flag=True,
    help="Take the id of an image that was never pushed; no other host has such an id.",
)
def pin_command(
    reference: str | None, workloads: Path, engine: EngineName, *, pull: bool, local: bool
) -> None:
    """Write the digest of an image into suite.toml, so that all runners measure in the same.

    REFERENCE is a tag, by default that of the image in suite.toml: what it means now is written as
    NAME:TAG@sha256:... into the table [container]. Shows it on stdout.
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
