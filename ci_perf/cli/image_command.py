"""`ci-perf image`: make the image that a suite is measured in, and pin it."""

from pathlib import Path
from typing import get_args

import click

from ci_perf.cli import console, options
from ci_perf.gate import image
from ci_perf.launch.containers import pinning
from ci_perf.launch.containers.building import Recipe
from ci_perf.model.container import EngineName

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_ENGINE = click.option(
    "--engine",
    type=click.Choice(get_args(EngineName)),
    default="docker",
    show_default=True,
    help="The engine that builds images and holds them.",
)


@click.group("image")
def image_command() -> None:
    """Make the image that a suite is measured in, and pin it."""


@image_command.command("lock")
@click.option(
    "--requirements",
    type=_FILE,
    multiple=True,
    required=True,
    metavar="FILE",
    help="What goes in: a requirements file or a pyproject.toml; several times for several.",
)
@click.option("--extra", multiple=True, help="An extra of that pyproject.toml.")
@click.option("--group", multiple=True, help="A dependency group of the pyproject.toml here.")
@click.option(
    "--constraint", type=_FILE, multiple=True, metavar="FILE", help="Versions to stay within."
)
@click.option(
    "--output",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The lock; by default NAME.txt for NAME.in.",
)
@click.option(
    "--python-version",
    default=pinning.OLDEST_PYTHON,
    show_default=True,
    help="The oldest Python that it is for.",
)
def lock(
    requirements: tuple[Path, ...],
    extra: tuple[str, ...],
    group: tuple[str, ...],
    constraint: tuple[Path, ...],
    target: Path | None,
    python_version: str,
) -> None:
    """Lock what is installed into an image: exact versions with hashes.

    torch is never locked, nor what only torch needs: the base image brings it. Versions that the
    lock names already are kept; remove the file to take the newest. Needs uv.
    """
    request = pinning.LockRequest(
        sources=requirements,
        extras=extra,
        groups=group,
        constraints=constraint,
        python_version=python_version,
    )
    output = pinning.default_output(requirements[0]) if target is None else target
    image.lock(request, output, notify=console.say)


@image_command.command("build")
@click.argument(
    "context", type=click.Path(exists=True, file_okay=False, path_type=Path), default="."
)
@_ENGINE
@click.option(
    "-f",
    "--file",
    "dockerfile",
    type=_FILE,
    help="The Dockerfile; by default docker/Dockerfile of CONTEXT.",
)
@click.option("--base", default="", metavar="REF", help="Another base image, with its digest.")
@click.option("--tag", metavar="NAME", help="By default ci-perf: and the hash of the inputs.")
@click.option(
    "--build-arg",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    callback=lambda _context, _option, pairs: dict(map(_pair, pairs)),
    help="An argument of the Dockerfile, such as PIP_INDEX_URL for a mirror.",
)
@click.option("--network", default="", help="The network of the build, as the engine calls it.")
@click.option(
    "--allow-unpinned", is_flag=True, help="Build on a base without a digest all the same."
)
def build(
    context: Path,
    engine: EngineName,
    dockerfile: Path | None,
    base: str,
    tag: str | None,
    arguments: dict[str, str],
    network: str,
    *,
    allow_unpinned: bool,
) -> None:
    """Build the image that a suite is measured in, and label it with what went in.

    CONTEXT is the folder that the Dockerfile copies from. Shows the id of the image on stdout: it
    means this image and no other, but on this host only. Once it is pushed, `ci-perf image pin`
    finds the digest that it has everywhere.
    """
    recipe = Recipe(
        context=context,
        dockerfile=dockerfile or image.default_dockerfile(context),
        base=base,
        arguments=arguments,
    )
    made = image.build(
        recipe,
        engine,
        tag=tag,
        network=network,
        allow_unpinned=allow_unpinned,
        notify=console.say,
    )
    console.emit(made, output=None)


@image_command.command("pin")
@click.argument("reference", required=False)
@options.workloads
@_ENGINE
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
def pin(
    reference: str | None, workloads: Path, engine: EngineName, *, pull: bool, local: bool
) -> None:
    """Write the digest of an image into suite.toml, so that every runner measures in the same.

    REFERENCE is a tag, by default that of the image in suite.toml: what it means now is written as
    NAME:TAG@sha256:... into the table [container]. Shows it on stdout.
    """
    pinned = image.pin(
        reference,
        workloads,
        engine,
        ask_registry=pull,
        allow_local=local,
        notify=console.say,
    )
    console.emit(pinned, output=None)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.BadParameter(f"expected NAME=VALUE, found {text!r}", param_hint="--build-arg")
    return name, value
