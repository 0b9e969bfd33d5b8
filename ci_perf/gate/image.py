"""Make the image that a suite is measured in: lock what goes in, build it, pin it in suite.toml."""

import shlex
from pathlib import Path

from ci_perf import suite
from ci_perf.errors import UsageError
from ci_perf.gate import Notify
from ci_perf.launch.containers import building, engine, pinning
from ci_perf.launch.containers.building import Recipe
from ci_perf.launch.containers.pinning import LockRequest
from ci_perf.model.container import EngineName
from ci_perf.system import files


def lock(request: LockRequest, target: Path, *, notify: Notify) -> None:
    """Write exact versions with hashes of what a request asks for. Raises CiPerfError."""
    pinning.lock_requirements(request, target, header=_command_of(request, target))
    if pinning.asks_for_torch(request):
        notify("torch is left out: the base image brings it")
    notify(f"wrote {target}; next: build the image anew (`ci-perf image build`)")


def default_dockerfile(context: Path) -> Path:
    """Return the Dockerfile that comes with a checkout of ci_perf. Raises UsageError: not there."""
    dockerfile = context / "docker/Dockerfile"
    if files.is_missing(dockerfile):
        raise UsageError(
            f"{dockerfile}: expected the Dockerfile of ci_perf, found none; run it in a checkout "
            "of ci_perf, or name a Dockerfile with -f"
        )
    return dockerfile


def build(
    recipe: Recipe,
    engine_name: EngineName,
    *,
    tag: str | None,
    network: str,
    allow_unpinned: bool,
    notify: Notify,
) -> str:
    """Build an image, label it with what went in, and return its id. Raises CiPerfError."""
    building.check_ignored(recipe)
    if not allow_unpinned:
        building.check_base(recipe)
    inputs = building.inputs(recipe)
    name = tag or building.default_tag(inputs)
    image = building.build(
        engine.find(engine_name),
        recipe,
        tag=name,
        labels=building.labels(recipe, inputs),
        network=network,
        hear=notify,
    )
    notify(f"built {name} from {inputs}")
    return image


def pin(
    reference: str | None,
    workloads: Path,
    engine_name: EngineName,
    *,
    ask_registry: bool,
    allow_local: bool,
    notify: Notify,
) -> str:
    """Write the digest of an image into WORKLOADS/suite.toml, and return the pinned reference.

    Without a `reference`, the tag of the image in suite.toml is meant. Raises CiPerfError.
    """
    path = workloads / "suite.toml"
    before = suite.load(workloads).container.image
    wanted = reference or _tagged(before, path)
    after = pinning.pin(
        engine.find(engine_name),
        wanted,
        allow_local=allow_local,
        ask_registry=ask_registry,
        say=notify,
    )
    if after.startswith("sha256:"):
        notify(f"warning: {after} means something on this host only: no other runner has it")
    if after == before:
        notify(f"{path}: has this image already")
    else:
        pinning.write(path, after)
        notify(f"{path}: $.container.image: {before or 'none'} → {after}")
        notify(f"next: git add {shlex.quote(str(path))} && git commit")
    return after


def _tagged(reference: str, path: Path) -> str:
    """Return the reference without its digest, where a tag remains that means something."""
    if not reference:
        raise UsageError(
            f"{path}: $.container.image: expected an image to pin, found none; name one: "
            "`ci-perf image pin NAME:TAG`"
        )
    return pinning.tag_of(reference)


def _command_of(request: LockRequest, target: Path) -> str:
    """Return the command that makes this lock again; no option that is a default."""
    words = ["ci-perf", "image", "lock"]
    words += [word for path in request.sources for word in ("--requirements", str(path))]
    words += [word for extra in request.extras for word in ("--extra", extra)]
    words += [word for group in request.groups for word in ("--group", group)]
    words += [word for path in request.constraints for word in ("--constraint", str(path))]
    if request.python_version != pinning.OLDEST_PYTHON:
        words += ["--python-version", request.python_version]
    return shlex.join([*words, "--output", str(target)])
