"""Start a container from the image with the flags of a measurement, and import torch in it."""

import secrets
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ci_perf import suite
from ci_perf.errors import CiPerfError
from ci_perf.features.containers.launch import (
    arguments,
    engine_errors,
    images,
    mounts,
    running,
    stale,
)
from ci_perf.features.containers.launch import engine as engines
from ci_perf.features.containers.launch.engine import Engine
from ci_perf.features.containers.launch.mounts import Mount
from ci_perf.launch import child_environment, never
from ci_perf.model.container import Container, EngineName
from ci_perf.model.facts import (
    Containers,
    Finding,
    Torch,
    TorchBroken,
    TorchMissing,
    problem,
)

# A hung driver hangs the container, too.
_TRIAL_S = 300.0
_TORCH: "msgspec.json.Decoder[Torch]" = msgspec.json.Decoder(Torch)


def examine(
    engine: EngineName,
    image: str | None,
    *,
    workloads: Path,
    checkout: Path,
    environ: Mapping[str, str],
    has_gpus: bool,
) -> tuple[Containers, Torch]:
    """Return what there is to know of a container on this machine, and of the torch in it.

    The limits, and the image where none is given, are those of `workloads`/suite.toml, if there is
    one. Raises InvalidFileError, and UsageError: no name of an image.
    """
    has_suite = (workloads / "suite.toml").exists()
    limits = suite.load(workloads).container if has_suite else Container()
    limits = msgspec.structs.replace(limits, image=limits.image if image is None else image)
    if limits.image:
        images.parse(limits.image)
    return try_containers(engine, limits, checkout, environ, has_gpus=has_gpus)


def try_containers(
    name: EngineName,
    limits: Container,
    checkout: Path,
    environ: Mapping[str, str],
    *,
    has_gpus: bool,
) -> tuple[Containers, Torch]:
    """Ask the engine and start a container, then one with GPUs where there are some."""
    tried = Containers(engine=name, version="", image=limits.image)
    try:
        engine = engines.find(name, environ)
        tried = msgspec.structs.replace(tried, version=engine.version().strip())
        mounts.check_readable(checkout, mounts.user(engine))
        torch = _import_torch(engine, limits, ())
    except CiPerfError as error:
        refused = _explain("container_refused" if tried.version else "engine_silent", name, error)
        return msgspec.structs.replace(tried, problem=refused), TorchMissing()
    if has_gpus:
        try:
            torch = _import_torch(engine, limits, arguments.ALL)
        except CiPerfError as error:
            refused = _explain("gpus_refused", name, error)
            tried = msgspec.structs.replace(tried, gpu_problem=refused)
    return tried, torch


def _import_torch(engine: Engine, limits: Container, gpus: tuple[str, ...]) -> Torch:
    """Return what a container says of its torch. Raises CiPerfError: it cannot be started."""
    if not limits.image:
        raise CiPerfError(
            "no image is named, by --image or by [container] in suite.toml; name one here: "
            "`--image NAME@sha256:DIGEST`"
        )
    name = f"ci-perf-doctor-{secrets.token_hex(6)}"
    package = child_environment.PACKAGE
    create = arguments.create(
        engine.name,
        name=name,
        image=images.spell_reference(images.parse(limits.image)),
        command=("python3", "-P", "-m", "ci_perf.measuring.library_probe", "torch"),
        run=name,
        owner=stale.owner(),
        user=mounts.user(engine),
        limits=limits,
        gpus=gpus,
        gpu_access="cdi" if engine.name == "podman" else "gpus",
        mounts=(Mount(source=package, target=f"{mounts.PACKAGE}/{package.name}"),),
        environment={
            **child_environment.build_child_environment({}, 1),
            "PYTHONPATH": mounts.PACKAGE,
        },
        workdir="/",
    )
    ended = running.run(engine, name, create, timeout_s=_TRIAL_S, interrupted=never).ended
    if ended.timed_out:
        return TorchBroken(reason=f"no answer within {_TRIAL_S:g} s")
    last = ended.tail.rstrip().rpartition("\n")[2]  # libraries may print before it
    if ended.code != 0:
        words = engine_errors.short(last) or "no words"
        return TorchBroken(reason=f"python3 ended with {ended.code}: {words}")
    try:
        return _TORCH.decode(last)
    except msgspec.MsgspecError as error:
        return TorchBroken(reason=f"expected facts as JSON, found: {error}")


def _explain(code: str, engine: EngineName, error: CiPerfError) -> Finding:
    """Split an error message into what is wrong and the next step."""
    why, _, then = str(error).partition("; ")
    if then in ("", engine_errors.further(engine)):
        then = f"try it by hand: `{engine} info`, then `{engine} run --rm IMAGE python3 --version`"
    return problem(code, f"{why[:1].upper()}{why[1:]}.", f"{then[:1].upper()}{then[1:]}.")
