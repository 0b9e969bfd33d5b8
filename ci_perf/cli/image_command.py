"""`ci-perf image`: make the image that a suite is measured in, and pin it."""

import shlex
from pathlib import Path
from typing import get_args

import click

from ci_perf import suite
from ci_perf.cli import console, options
from ci_perf.errors import UsageError
from ci_perf.launch.containers import building, pinning
from ci_perf.launch.containers import engine as engines
from ci_perf.model.container import EngineName
from ci_perf.system import files

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group("image")
def command() -> None:
    """Make the image that a suite is measured in, and pin it."""


@command.command("lock")
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
    written = pinning.default_output(requirements[0]) if target is None else target
    pinning.lock_requirements(request, written, header=_spelled(request, written))
    if pinning.asks_for_torch(request):
        console.say("torch is left out: the base image brings it")
    console.say(f"wrote {written}; next: build the image anew (`ci-perf image build`)")


@command.command("build")
@click.argument(
    "context", type=click.Path(exists=True, file_okay=False, path_type=Path), default="."
)
@click.option(
    "--engine",
    type=click.Choice(get_args(EngineName)),
    default="docker",
    show_default=True,
    help="What builds.",
)
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
    recipe = building.Recipe(
        context=context,
        dockerfile=dockerfile or _dockerfile(context),
        base=base,
        arguments=arguments,
    )
    building.check_ignored(recipe)
    if not allow_unpinned:
        building.check_base(recipe)
    inputs = building.inputs(recipe)
    name = tag or building.default_tag(inputs)
    image = building.build(
        engines.find(engine),
        recipe,
        tag=name,
        labels=building.labels(recipe, inputs),
        network=network,
        hear=console.say,
    )
    console.say(f"built {name} from {inputs}")
    console.emit(image, output=None)


@command.command("pin")
@click.argument("reference", required=False)
@options.workloads
@click.option(
    "--engine",
    type=click.Choice(get_args(EngineName)),
    default="docker",
    show_default=True,
    help="Whose images are meant.",
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
def pin(
    reference: str | None, workloads: Path, engine: EngineName, *, pull: bool, local: bool
) -> None:
    """Write the digest of an image into suite.toml, so that every runner measures in the same.

    REFERENCE is a tag, by default that of the image in suite.toml: what it means now is written as
    NAME:TAG@sha256:... into the table [container]. Shows it on stdout.
    """
    path = workloads / "suite.toml"
    before = suite.load(workloads).container.image
    wanted = reference or _tagged(before, path)
    after = pinning.pin(
        engines.find(engine), wanted, allow_local=local, ask_registry=pull, say=console.say
    )
    if after.startswith("sha256:"):
        console.say(f"warning: {after} means something on this host only: no other runner has it")
    if after == before:
        console.say(f"{path}: has this image already")
    else:
        pinning.write(path, after)
        console.say(f"{path}: $.container.image: {before or 'none'} → {after}")
        console.say(f"next: git add {shlex.quote(str(path))} && git commit")
    console.emit(after, output=None)


def _dockerfile(context: Path) -> Path:
    """Return the Dockerfile that comes with a checkout of ours. Raises UsageError: not there."""
    ours = context / "docker/Dockerfile"
    if files.is_missing(ours):
        raise UsageError(
            f"{ours}: expected the Dockerfile of ci_perf, found none; run it in a checkout of "
            "ci_perf, or name a Dockerfile with -f"
        )
    return ours


def _tagged(reference: str, path: Path) -> str:
    """Return the reference without its digest, where a tag remains that means something."""
    if not reference:
        raise UsageError(
            f"{path}: $.container.image: expected an image to pin, found none; name one: "
            "`ci-perf image pin NAME:TAG`"
        )
    return pinning.tag_of(reference)


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.BadParameter(f"expected NAME=VALUE, found {text!r}", param_hint="--build-arg")
    return name, value


def _spelled(request: pinning.LockRequest, written: Path) -> str:
    """Return the command that makes this lock again; no option that is a default."""
    words = ["ci-perf", "image", "lock"]
    words += [word for path in request.sources for word in ("--requirements", str(path))]
    words += [word for extra in request.extras for word in ("--extra", extra)]
    words += [word for group in request.groups for word in ("--group", group)]
    words += [word for path in request.constraints for word in ("--constraint", str(path))]
    if request.python_version != pinning.OLDEST_PYTHON:
        words += ["--python-version", request.python_version]
    return shlex.join([*words, "--output", str(written)])
