"""Gather what a container engine says of itself, and what a container from the image can do.

The container is made with the flags of a measurement and imports torch, as a worker would. Judges
nothing.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec

from ci_perf import suite as suites
from ci_perf.doctor import machine_facts
from ci_perf.doctor.machine_facts import Sources
from ci_perf.errors import CiPerfError, EngineError, UsageError
from ci_perf.launch import child_environment, never
from ci_perf.launch.containers import arguments, engine_errors, images, mounts, running, stale
from ci_perf.launch.containers import engine as engines
from ci_perf.launch.containers.arguments import GpuAccess, Gpus, Labels
from ci_perf.launch.containers.engine import Engine
from ci_perf.launch.containers.mounts import Mount
from ci_perf.model.container import Container, EngineName
from ci_perf.model.facts import (
    Containers,
    EngineAnswer,
    EngineSilence,
    MachineFacts,
    MissingImage,
    PresentImage,
    Refused,
    Space,
    Torch,
    TorchBroken,
    TorchMissing,
)

# A hung driver hangs the container, too.
_TRIAL_S = 300.0

# How a run gives GPUs where no option says otherwise.
_ACCESS: Mapping[EngineName, GpuAccess] = {"docker": "gpus", "podman": "cdi"}

# What the NVIDIA toolkit reads in images, and what keeps it from doing so.
_REQUIRES = "NVIDIA_REQUIRE_CUDA"
_DISABLES = "NVIDIA_DISABLE_REQUIRE"

# A tag or a label such as "2.13.0-cuda12.6-cudnn9-runtime".
_CUDA_IN_NAME = re.compile(r"\bcuda-?(\d{1,2}\.\d{1,2})")
_BASE_LABEL = "org.opencontainers.image.base.name"

_TORCH: "msgspec.json.Decoder[Torch]" = msgspec.json.Decoder(Torch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What to look at; ``image`` is empty where none is named."""

    engine: EngineName
    image: str
    checkout: Path
    limits: Container
    wants_gpus: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """What there is to say; ``torch`` is that of the image, as a container has seen it."""

    containers: Containers
    torch: Torch


def of_runner(
    runner: Literal["local"] | EngineName, image: str | None, *, workloads: Path, checkout: Path
) -> MachineFacts:
    """Gather what there is to know of this machine; of containers too, if these are asked for.

    Raises UsageError for an image without an engine, and as `gather` does.
    """
    sources = machine_facts.this_machine()
    if runner != "local":
        return gather(runner, image, workloads=workloads, checkout=checkout, sources=sources)
    if image is not None:
        raise UsageError("--image: expected --runner docker or podman beside it, found local")
    return machine_facts.gather(sources)


def gather(
    engine: EngineName, image: str | None, *, workloads: Path, checkout: Path, sources: Sources
) -> MachineFacts:
    """Gather what there is to know of this machine, and of containers on it.

    The limits, and the image where none is given, are those of `workloads`/suite.toml, if there is
    one. Raises InvalidFileError, and UsageError: no name of an image.
    """
    has_suite = (workloads / "suite.toml").exists()
    limits = suites.load(workloads).container if has_suite else Container()
    result = probe(
        Probe(
            engine=engine,
            image=limits.image if image is None else image,
            checkout=checkout,
            limits=limits,
            wants_gpus=machine_facts.has_gpu_nodes(sources),
        ),
        sources,
    )
    return machine_facts.gather(
        replace(sources, torch=lambda: result.torch), containers=result.containers
    )


def probe(asked: Probe, sources: Sources) -> ProbeResult:
    """Ask the engine, look for the image, and try it. Raises UsageError: no name of an image."""
    if asked.image:
        images.parse(asked.image)
    containers = Containers(
        engine=ask_engine(asked.engine, sources),
        toolkit=machine_facts.toolkit(sources),
        image=None,
        refused=None,
        gpus_refused=None,
    )
    if isinstance(containers.engine, EngineSilence):
        return ProbeResult(containers=containers, torch=TorchMissing())
    engine = engines.find(asked.engine, sources.environ)
    unreadable = _unreadable(engine, asked.checkout)
    containers = msgspec.structs.replace(containers, unreadable=unreadable)
    if not asked.image:
        return ProbeResult(containers=containers, torch=TorchMissing())
    containers = msgspec.structs.replace(containers, image=_image(engine, asked.image))
    return _try_image(engine, asked, containers)


def _unreadable(engine: Engine, checkout: Path) -> Refused | None:
    """Say why a container could not read the checkout; who runs inside depends on the engine."""
    try:
        mounts.check_readable(checkout, mounts.user(engine))
    except CiPerfError as error:
        return _refusal(engine.name, error)
    return None


class _Config(msgspec.Struct, rename="pascal"):
    env: list[str] | None = None
    labels: dict[str, str] | None = None


class _Inspected(msgspec.Struct, rename="pascal"):
    """What both engines say of an image, of all that they say."""

    id: str
    architecture: str = ""
    repo_tags: list[str] | None = None
    config: _Config | None = None


def _image(engine: Engine, reference: str) -> PresentImage | MissingImage:
    try:
        text = engine.must("image", "inspect", images.spelled(images.parse(reference)))
        (said,) = msgspec.json.decode(text, type=tuple[_Inspected])
    except CiPerfError as error:
        why = _refusal(engine.name, error)
        return MissingImage(reference=reference, why=why.why, next_step=why.next_step)
    except msgspec.MsgspecError as error:
        words = f"`{engine.name} image inspect`: expected JSON, found {error}"
        return MissingImage(
            reference=reference, why=words, next_step=f"bring {engine.name} up to date"
        )
    config = said.config or _Config()
    variables = dict(entry.partition("=")[::2] for entry in config.env or [])
    return PresentImage(
        reference=reference,
        is_pinned=images.is_pinned(reference),
        identity=f"sha256:{said.id.removeprefix('sha256:')}",
        architecture=said.architecture,
        requires="" if _DISABLES in variables else variables.get(_REQUIRES, ""),
        cuda=_cuda(variables, config.labels or {}, reference, said.repo_tags or []),
    )


def _cuda(
    variables: Mapping[str, str], labels: Mapping[str, str], reference: str, tags: list[str]
) -> str:
    """Return which CUDA an image holds: what it says itself, else its name or that of its base."""
    if own := variables.get("CUDA_VERSION"):
        return own
    for name in (labels.get(_BASE_LABEL, ""), reference, *tags):
        if version := _CUDA_IN_NAME.search(name):
            return version[1]
    return ""


def _try_image(engine: Engine, asked: Probe, containers: Containers) -> ProbeResult:
    """Start a container from the image: with GPUs where there are some, else without."""
    if not isinstance(containers.image, PresentImage):
        return ProbeResult(containers=containers, torch=TorchMissing())
    image = containers.image.identity
    with_gpus = _try(engine, asked, image, arguments.ALL) if asked.wants_gpus else None
    if with_gpus is not None and not isinstance(with_gpus, Refused):
        return ProbeResult(containers=containers, torch=with_gpus)
    without = _try(engine, asked, image, ())
    if isinstance(without, Refused):  # GPUs are not to blame
        containers = msgspec.structs.replace(containers, refused=without)
        return ProbeResult(containers=containers, torch=TorchMissing())
    containers = msgspec.structs.replace(containers, gpus_refused=with_gpus)
    return ProbeResult(containers=containers, torch=without)


def _try(engine: Engine, asked: Probe, image: str, gpus: tuple[str, ...]) -> Torch | Refused:
    name = f"ci-perf-doctor-{secrets.token_hex(6)}"
    try:
        create = arguments.create(
            engine.name,
            name=name,
            image=image,
            command=("python3", "-P", "-m", "ci_perf.measuring.library_probe", "torch"),
            labels=Labels(run=name, owner=stale.owner()),
            user=mounts.user(engine),
            limits=asked.limits,
            gpus=Gpus(devices=gpus, access=_ACCESS[asked.engine]),
            mounts=(
                Mount(
                    source=child_environment.PACKAGE,
                    target=f"{mounts.PACKAGE}/{child_environment.PACKAGE.name}",
                ),
            ),
            environment={**child_environment.of_child({}, 1), "PYTHONPATH": mounts.PACKAGE},
            workdir="/",
        )
        stop = running.run(engine, name, create, timeout_s=_TRIAL_S, interrupted=never)
    except CiPerfError as error:
        return _refusal(engine.name, error)
    if stop.ended.timed_out:
        return TorchBroken(reason=f"no answer within {_TRIAL_S:g} s")
    return _answer(stop.ended.code, stop.ended.tail)


def _answer(code: int, tail: str) -> Torch:
    """Read the last line of the container's output: libraries may print before it."""
    last = tail.rstrip().rpartition("\n")[2]
    if code == 0:
        try:
            return _TORCH.decode(last)
        except msgspec.MsgspecError as error:
            return TorchBroken(reason=f"expected facts as JSON, found: {error}")
    return TorchBroken(
        reason=f"python3 ended with {code}: {engine_errors.short(last) or 'no words'}"
    )


def ask_engine(name: EngineName, sources: Sources) -> EngineAnswer | EngineSilence:
    """Ask an engine who it is."""
    try:
        engine = engines.find(name, sources.environ)
    except CiPerfError as error:
        return _silent(name, error, is_installed=False)
    try:
        return _read_info[name](engine.must("info", "--format", "{{json .}}"), sources)
    except CiPerfError as error:
        return _silent(name, error, is_installed=True)
    except msgspec.MsgspecError as error:
        words = f"`{name} info`: expected JSON, found {error}; bring {name} up to date"
        return _silent(name, CiPerfError(words), is_installed=True)


def _silent(name: EngineName, error: CiPerfError, *, is_installed: bool) -> EngineSilence:
    why = _refusal(name, error)
    return EngineSilence(name=name, is_installed=is_installed, why=why.why, next_step=why.next_step)


def _refusal(name: EngineName, error: CiPerfError) -> Refused:
    """Split an error message into what is wrong and the next step."""
    why, _, then = str(error).partition("; ")
    if then in ("", engine_errors.further(name)):
        then = f"try it by hand: `{name} info`, then `{name} run --rm IMAGE python3 --version`"
    return Refused(why=why, next_step=then)


class _Docker(msgspec.Struct, rename="pascal"):
    """What `docker info` says, of all that it says. Docker 20.10 tells errors only in there."""

    server_version: str = ""
    driver: str = ""
    cgroup_version: str = ""
    architecture: str = ""
    docker_root_dir: str = ""
    runtimes: dict[str, msgspec.Raw] | None = None
    security_options: list[str] | None = None
    server_errors: list[str] | None = None
    cdi_spec_dirs: list[str] | None = msgspec.field(name="CDISpecDirs", default=None)


def _read_docker(text: str, sources: Sources) -> EngineAnswer:
    said = msgspec.json.decode(text, type=_Docker)
    if said.server_errors or not said.server_version:
        words = "\n".join(said.server_errors or ["no server"])
        raise EngineError(engine_errors.explain("docker", "info", words))
    return EngineAnswer(
        name="docker",
        version=said.server_version,
        rootless=any("name=rootless" in option for option in said.security_options or []),
        storage=said.driver,
        cgroups=said.cgroup_version,
        architecture=said.architecture,
        data=_space(said.docker_root_dir, sources),
        nvidia_runtime="nvidia" in (said.runtimes or {}),
        knows_cdi=bool(said.cdi_spec_dirs),
    )


class _Security(msgspec.Struct, frozen=True):
    rootless: bool = False


class _Host(msgspec.Struct, rename="camel"):
    arch: str = ""
    cgroup_version: str = ""
    security: _Security = _Security()


class _Store(msgspec.Struct, rename="camel"):
    graph_driver_name: str = ""
    graph_root: str = ""


class _Version(msgspec.Struct, rename="pascal"):
    version: str = ""


class _Podman(msgspec.Struct):
    """What `podman info` says, of all that it says."""

    host: _Host
    store: _Store
    version: _Version


def _read_podman(text: str, sources: Sources) -> EngineAnswer:
    said = msgspec.json.decode(text, type=_Podman)
    return EngineAnswer(
        name="podman",
        version=said.version.version,
        rootless=said.host.security.rootless,
        storage=said.store.graph_driver_name,
        cgroups=said.host.cgroup_version.removeprefix("v"),
        architecture=said.host.arch,
        data=_space(said.store.graph_root, sources),
        nvidia_runtime=False,
        knows_cdi=True,
    )


_read_info = {"docker": _read_docker, "podman": _read_podman}


def _space(folder: str, sources: Sources) -> Space | None:
    return sources.space(Path(folder)) if folder else None
