"""What the doctor asks of an engine: facts, and a container that tries the image. Judges nothing.

The container is made with the very flags of a measurement, and runs the doctor's own question for
torch: what it can answer, a worker can measure.
"""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf.doctor import engine_facts, machine_facts
from ci_perf.doctor.machine_facts import Sources
from ci_perf.errors import CiPerfError
from ci_perf.launch import environment as environments
from ci_perf.launch import never
from ci_perf.launch.containers import arguments, failures, images, inside, places, running, stale
from ci_perf.launch.containers import engine as engines
from ci_perf.launch.containers.arguments import GpuAccess, Gpus, Labels
from ci_perf.launch.containers.engine import Engine
from ci_perf.launch.containers.inside import Mount
from ci_perf.model.container import Container, EngineName
from ci_perf.model.facts import (
    Containers,
    EngineSilence,
    Image,
    ImageMissing,
    Refused,
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
class Asked:
    """What the doctor is to look at; ``image`` empty where none is named."""

    engine: EngineName
    image: str
    checkout: Path
    limits: Container
    wants_gpus: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """What there is to say; ``torch`` is that of the image, as a container has seen it."""

    containers: Containers
    torch: Torch


def ask(asked: Asked, sources: Sources) -> Heard:
    """Ask the engine, look for the image, and try it. Raises UsageError: no name of an image."""
    if asked.image:
        images.parse(asked.image)
    found = Containers(
        engine=engine_facts.look(asked.engine, sources),
        toolkit=machine_facts.toolkit(sources),
        image=None,
        refused=None,
        gpus_refused=None,
    )
    if isinstance(found.engine, EngineSilence):
        return Heard(containers=found, torch=TorchMissing())
    engine = engines.find(asked.engine, sources.environ)
    found = msgspec.structs.replace(found, unreadable=_unreadable(engine, asked.checkout))
    if not asked.image:
        return Heard(containers=found, torch=TorchMissing())
    found = msgspec.structs.replace(found, image=_image(engine, asked.image))
    return _tried(engine, asked, found)


def _unreadable(engine: Engine, checkout: Path) -> Refused | None:
    """Say why a container could not read the checkout; who runs inside depends on the engine."""
    try:
        places.check_readable(checkout, places.user(engine))
    except CiPerfError as error:
        return engine_facts.refused(engine.name, error)
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


def _image(engine: Engine, reference: str) -> Image | ImageMissing:
    try:
        text = engine.must("image", "inspect", images.spelled(images.parse(reference)))
        (said,) = msgspec.json.decode(text, type=tuple[_Inspected])
    except CiPerfError as error:
        why = engine_facts.refused(engine.name, error)
        return ImageMissing(reference=reference, why=why.why, next_step=why.next_step)
    except msgspec.MsgspecError as error:
        words = f"`{engine.name} image inspect`: expected JSON, found {error}"
        return ImageMissing(
            reference=reference, why=words, next_step=f"bring {engine.name} up to date"
        )
    config = said.config or _Config()
    variables = dict(entry.partition("=")[::2] for entry in config.env or [])
    return Image(
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
    if version := variables.get("CUDA_VERSION"):
        return version
    for name in (labels.get(_BASE_LABEL, ""), reference, *tags):
        if found := _CUDA_IN_NAME.search(name):
            return found[1]
    return ""


def _tried(engine: Engine, asked: Asked, found: Containers) -> Heard:
    """Start a container from the image: with GPUs where there are some, else without."""
    if not isinstance(found.image, Image):
        return Heard(containers=found, torch=TorchMissing())
    image = found.image.identity
    with_gpus = _try(engine, asked, image, places.ALL) if asked.wants_gpus else None
    if with_gpus is not None and not isinstance(with_gpus, Refused):
        return Heard(containers=found, torch=with_gpus)
    without = _try(engine, asked, image, ())
    if isinstance(without, Refused):  # GPUs are not to blame
        refused = msgspec.structs.replace(found, refused=without)
        return Heard(containers=refused, torch=TorchMissing())
    return Heard(containers=msgspec.structs.replace(found, gpus_refused=with_gpus), torch=without)


def _try(engine: Engine, asked: Asked, image: str, gpus: tuple[str, ...]) -> Torch | Refused:
    name = f"ci-perf-doctor-{secrets.token_hex(6)}"
    try:
        create = arguments.create(
            engine.name,
            name=name,
            image=image,
            command=("python3", "-P", "-m", "ci_perf.measure.libraries", "torch"),
            labels=Labels(run=name, owner=stale.owner()),
            user=places.user(engine),
            limits=asked.limits,
            gpus=Gpus(devices=gpus, access=_ACCESS[asked.engine]),
            mounts=(
                Mount(
                    source=environments.PACKAGE,
                    target=f"{inside.PACKAGE}/{environments.PACKAGE.name}",
                ),
            ),
            environment={**environments.of_child({}, 1), "PYTHONPATH": inside.PACKAGE},
            workdir="/",
        )
        stop = running.run(engine, name, create, timeout_s=_TRIAL_S, interrupted=never)
    except CiPerfError as error:
        return engine_facts.refused(engine.name, error)
    if stop.ended.timed_out:
        return TorchBroken(reason=f"no answer within {_TRIAL_S:g} s")
    return _answer(stop.ended.code, stop.ended.tail)


def _answer(code: int, tail: str) -> Torch:
    """Read what the container said; the answer is the last line, as for a child of ours."""
    last = tail.rstrip().rpartition("\n")[2]
    if code == 0:
        try:
            return _TORCH.decode(last)
        except msgspec.MsgspecError as error:
            return TorchBroken(reason=f"expected facts as JSON, found: {error}")
    return TorchBroken(reason=f"python3 ended with {code}: {failures.short(last) or 'no words'}")
