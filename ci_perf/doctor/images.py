"""Whether an image can be measured in: there, pinned, for this host, with torch. Pure."""

from collections.abc import Iterable

from ci_perf.doctor.finding import Finding, Level, problem
from ci_perf.model.facts import (
    Containers,
    EngineAnswer,
    Image,
    ImageMissing,
    Torch,
    TorchBroken,
    TorchBuild,
    TorchMissing,
)

# As `uname -m` says it, and as images do: https://go.dev/doc/install/source#environment.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

_NEEDS = (
    "An image needs Python 3.11 or newer as `python3`, torch, msgspec, numpy and nvidia-ml-py "
    "(docs/containers.md)."
)


def explain(containers: Containers, torch: Torch) -> list[Finding]:
    """Say whether the image is there and can be measured in."""
    match containers.image:
        case None:
            return [_unnamed()] if isinstance(containers.engine, EngineAnswer) else []
        case ImageMissing(why=why, next_step=then):
            return [problem("image_missing", f"{why}.", f"{then[:1].upper()}{then[1:]}.")]
        case image:
            return [*_pinned(image), *_of_this_host(image, containers), *_tried(containers, torch)]


def can_be_measured_in(containers: Containers, torch: Torch) -> bool:
    """Say whether a worker can run in a container from this image, and read the checkout."""
    image = containers.image
    return (
        isinstance(image, Image)
        and containers.refused is None
        and containers.unreadable is None
        and isinstance(torch, TorchBuild)
        and not _is_foreign(image, containers)
    )


def _unnamed() -> Finding:
    return problem(
        "image_unnamed",
        "No image is named: neither by --image nor by [container] in suite.toml.",
        "`ci-perf image pin NAME:TAG` writes one into suite.toml; or name one here: `--image "
        "NAME@sha256:DIGEST`.",
    )


def _pinned(image: Image) -> Iterable[Finding]:
    if not image.is_pinned:
        yield Finding(
            code="image_unpinned",
            level=Level.WARNING,
            what=f"{image.reference} may mean another image tomorrow: `ci-perf run` refuses it.",
            next_step=f"Pin it with `ci-perf image pin {image.reference}`; --allow-unpinned "
            "measures in it all the same, and marks the run degraded.",
        )


def _of_this_host(image: Image, containers: Containers) -> Iterable[Finding]:
    """Refuse emulation: it runs the image too, many times slower."""
    if _is_foreign(image, containers):
        yield problem(
            "image_of_another_architecture",
            f"{image.reference} is for {image.architecture}, and this host is "
            f"{_host_architecture(containers)}.",
            "Take an image for the architecture of this host; one that runs by emulation is no "
            "measure of anything.",
        )


def _tried(containers: Containers, torch: Torch) -> Iterable[Finding]:
    if containers.refused is not None:
        then = containers.refused.next_step
        yield problem(
            "container_refused",
            f"A container of this image could not be started: {containers.refused.why}.",
            f"{then[:1].upper()}{then[1:]}.",
        )
        return
    match torch:
        case TorchMissing():
            yield problem("image_without_torch", "The image holds no torch.", _NEEDS)
        case TorchBroken(reason=reason):
            yield problem(
                "image_cannot_measure",
                f"A container of this image starts and cannot answer: {reason}",
                _NEEDS,
            )
        case TorchBuild(version=version):
            yield Finding(
                code="image_works",
                level=Level.OK,
                what=f"A container of this image has imported torch {version}: CPU workloads can "
                "be measured.",
            )


def _is_foreign(image: Image, containers: Containers) -> bool:
    host = _host_architecture(containers)
    return bool(host and image.architecture) and image.architecture != host


def _host_architecture(containers: Containers) -> str:
    if not isinstance(containers.engine, EngineAnswer):
        return ""
    name = containers.engine.architecture
    return _ARCHITECTURES.get(name, name)
