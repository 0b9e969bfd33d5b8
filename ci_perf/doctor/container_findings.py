"""Whether containers can be started here, given GPUs, and measured in with this image. Pure."""

import re
from collections.abc import Callable, Iterable

from ci_perf.doctor.gpu_findings import has_gpu
from ci_perf.model.facts import (
    Containers,
    EngineAnswer,
    EngineSilence,
    Finding,
    Graphics,
    Level,
    MissingImage,
    NvmlAnswer,
    PresentImage,
    Space,
    Toolkit,
    Torch,
    TorchBroken,
    TorchBuild,
    TorchMissing,
    problem,
)

GIB = 2**30

# A PyTorch image takes about 12 GB unpacked, and as much again while it is pulled: pytorch/pytorch
# 2.8.0-cuda12.8-cudnn9-runtime is "12.10 GB" on disk.
MIN_ENGINE_BYTES = 24 * GIB

_INSTALL_TOOLKIT = (
    "Install the NVIDIA Container Toolkit (the package nvidia-container-toolkit), then `sudo "
    "nvidia-ctk runtime configure --runtime=docker` and restart the daemon."
)
_WRITE_CDI = (
    "Install the NVIDIA Container Toolkit (the package nvidia-container-toolkit), then `sudo "
    "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml`."
)

# As `uname -m` says it, and as images do: https://go.dev/doc/install/source#environment.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

_NEEDS = (
    "An image needs Python 3.11 or newer as `python3`, torch, msgspec, numpy and nvidia-ml-py "
    "(docs/containers.md)."
)

# The first driver of each major version of CUDA: it runs all its minor versions, and newer drivers
# run all older ones. Table 1 of https://docs.nvidia.com/deploy/cuda-compatibility/
# minor-version-compatibility.html.
_FIRST_DRIVER = {11: "450", 12: "525", 13: "580"}

# What NVIDIA_REQUIRE_CUDA may compare: "cuda>=12.6 brand=tesla,driver>=535,driver<536". Space means
# or, a comma means and: https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/
# docker-specialized.html#constraints.
_CONDITION = re.compile(r"(cuda|driver)(>=|<=|!=|=|>|<)(\d+(?:\.\d+)*)")
_HOLDS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": lambda has, asked: has >= asked,
    "<=": lambda has, asked: has <= asked,
    "!=": lambda has, asked: has != asked,
    "=": lambda has, asked: has == asked,
    ">": lambda has, asked: has > asked,
    "<": lambda has, asked: has < asked,
}


def explain_engine(containers: Containers, graphics: Graphics) -> list[Finding]:
    """Say whether the engine works, with what, and what it lacks."""
    engine = containers.engine
    if isinstance(engine, EngineSilence):
        return [_engine_silent(engine)]
    findings = [_engine_works(engine), *_disk(engine.data), *_storage(engine), *_limits(engine)]
    findings += _unreadable(containers)
    if has_gpu(graphics):
        findings.append(_gpus(engine, containers))
    return findings


def _engine_silent(engine: EngineSilence) -> Finding:
    code = "engine_silent" if engine.is_installed else "engine_absent"
    return problem(code, _sentence(engine.why), _sentence(engine.next_step))


def _engine_works(engine: EngineAnswer) -> Finding:
    return Finding(
        code="engine_works",
        level=Level.OK,
        what=f"{engine.name} {engine.version} answers ({describe_engine(engine)}).",
    )


def describe_engine(engine: EngineAnswer) -> str:
    """Describe an engine in a few words."""
    who = "rootless" if engine.rootless else "as root"
    return f"{who}, {engine.storage or 'unknown'}, cgroup v{engine.cgroups or '?'}"


def _disk(data: Space | None) -> Iterable[Finding]:
    if data is not None and data.free_bytes < MIN_ENGINE_BYTES:
        yield Finding(
            code="little_disk_for_images",
            level=Level.WARNING,
            what=f"{data.path}, where the engine keeps images, has {data.free_bytes / GIB:.1f} GiB "
            f"free: expected at least {MIN_ENGINE_BYTES // GIB} GiB to pull an image with torch "
            "and CUDA.",
            next_step="Remove images that nobody uses (`docker image prune`, `podman image "
            "prune`), or give the engine a larger disk.",
        )


def _storage(engine: EngineAnswer) -> Iterable[Finding]:
    if engine.storage == "vfs":
        yield Finding(
            code="slow_storage",
            level=Level.WARNING,
            what=f"{engine.name} copies the whole image for each container (storage driver vfs).",
            next_step="Let it use overlay: the storage driver overlay2 of docker, overlay of "
            "podman.",
        )


def _limits(engine: EngineAnswer) -> Iterable[Finding]:
    """Warn of limits that are not enforced: a rootless engine needs control groups version 2."""
    if engine.rootless and engine.cgroups == "1":
        yield Finding(
            code="no_limits",
            level=Level.WARNING,
            what=f"A rootless {engine.name} limits neither memory nor processes nor cores with "
            "control groups version 1.",
            next_step="Boot with version 2 (`systemd.unified_cgroup_hierarchy=1`), or run the "
            "engine as root.",
        )


def _unreadable(containers: Containers) -> Iterable[Finding]:
    """Say that no container can read the checkout."""
    if containers.unreadable is not None:
        yield problem(
            "checkout_unreadable",
            _sentence(containers.unreadable.why),
            _sentence(containers.unreadable.next_step),
        )


def _gpus(engine: EngineAnswer, containers: Containers) -> Finding:
    """Say whether GPUs get in: what was tried says more than what is installed."""
    refused = containers.gpus_refused
    if refused is not None:
        return problem(
            "gpus_refused",
            f"A container with the GPUs of this host could not be started: {refused.why}.",
            _sentence(refused.next_step),
        )
    if not _can_pass_gpus(engine, containers.toolkit):
        return problem(
            "toolkit_missing",
            f"There is an NVIDIA GPU and {engine.name} has no way to give it to a container: "
            f"{_lacking(engine, containers.toolkit)}.",
            _INSTALL_TOOLKIT if engine.name == "docker" else _WRITE_CDI,
        )
    return Finding(
        code="toolkit_works",
        level=Level.OK,
        what=f"{engine.name} can give GPUs to containers: {_having(engine, containers.toolkit)}.",
    )


def _can_pass_gpus(engine: EngineAnswer, toolkit: Toolkit) -> bool:
    by_cdi = bool(toolkit.cdi) and engine.knows_cdi
    return by_cdi or (engine.name == "docker" and (engine.nvidia_runtime or toolkit.hook))


def _lacking(engine: EngineAnswer, toolkit: Toolkit) -> str:
    cdi = "no CDI specification in /etc/cdi or /var/run/cdi names nvidia.com/gpu"
    if engine.name == "podman":
        return cdi
    version = f"; nvidia-ctk {toolkit.version} is installed" if toolkit.version else ""
    return f"neither the runtime nvidia nor nvidia-container-runtime-hook is there{version}"


def _having(engine: EngineAnswer, toolkit: Toolkit) -> str:
    ways = [
        "the runtime nvidia" if engine.nvidia_runtime else "",
        "nvidia-container-runtime-hook" if toolkit.hook and engine.name == "docker" else "",
        ", ".join(toolkit.cdi) if engine.knows_cdi else "",
        f"nvidia-ctk {toolkit.version}" if toolkit.version else "",
    ]
    return ", ".join(filter(None, ways))


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:].rstrip('.')}." if words else words


def explain_image(containers: Containers, torch: Torch) -> list[Finding]:
    """Say whether the image is there and can be measured in."""
    match containers.image:
        case None:
            return [_unnamed()] if isinstance(containers.engine, EngineAnswer) else []
        case MissingImage(why=why, next_step=then):
            return [problem("image_missing", f"{why}.", f"{then[:1].upper()}{then[1:]}.")]
        case image:
            return [*_pinned(image), *_of_this_host(image, containers), *_trial(containers, torch)]


def can_be_measured_in(containers: Containers, torch: Torch) -> bool:
    """Say whether a worker can run in a container from this image, and read the checkout."""
    image = containers.image
    return (
        isinstance(image, PresentImage)
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


def _pinned(image: PresentImage) -> Iterable[Finding]:
    if not image.is_pinned:
        yield Finding(
            code="image_unpinned",
            level=Level.WARNING,
            what=f"{image.reference} may mean another image tomorrow: `ci-perf run` refuses it.",
            next_step=f"Pin it with `ci-perf image pin {image.reference}`; --allow-unpinned "
            "measures in it all the same, and marks the run degraded.",
        )


def _of_this_host(image: PresentImage, containers: Containers) -> Iterable[Finding]:
    """Refuse emulation: it runs the image too, many times slower."""
    if _is_foreign(image, containers):
        yield problem(
            "image_of_another_architecture",
            f"{image.reference} is for {image.architecture}, and this host is "
            f"{_host_architecture(containers)}.",
            "Take an image for the architecture of this host; one that runs by emulation is no "
            "measure of anything.",
        )


def _trial(containers: Containers, torch: Torch) -> Iterable[Finding]:
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


def _is_foreign(image: PresentImage, containers: Containers) -> bool:
    host = _host_architecture(containers)
    return bool(host and image.architecture) and image.architecture != host


def _host_architecture(containers: Containers) -> str:
    if not isinstance(containers.engine, EngineAnswer):
        return ""
    name = containers.engine.architecture
    return _ARCHITECTURES.get(name, name)


def explain_driver_of_image(image: PresentImage, torch: Torch, graphics: Graphics) -> list[Finding]:
    """Compare what an image needs with what the driver can; nothing where either is unknown."""
    nvml = graphics.nvml
    needed = _needed(image, torch)
    if not isinstance(nvml, NvmlAnswer) or not nvml.cuda or not has_gpu(graphics):
        return []
    if needed and _version(needed)[:1] > _version(nvml.cuda)[:1]:
        return [_too_old(needed, nvml)]
    if image.requires and not _is_let_in(image.requires, nvml):
        return [_refused_by_toolkit(image, nvml)]
    if needed and _version(needed)[:2] > _version(nvml.cuda)[:2]:
        return [_older(needed, nvml)]
    return [_new_enough(needed, nvml)] if needed else []


def _needed(image: PresentImage, torch: Torch) -> str:
    """Return the CUDA of the image: what torch was built for, else what the image says."""
    return (torch.cuda if isinstance(torch, TorchBuild) else None) or image.cuda


def _too_old(needed: str, nvml: NvmlAnswer) -> Finding:
    major = _version(needed)[0]
    first = f" (from {_FIRST_DRIVER[major]} on)" if major in _FIRST_DRIVER else ""
    return problem(
        "driver_too_old_for_image",
        f"The image holds CUDA {needed}, and {_driver(nvml)} runs at most CUDA {nvml.cuda}.",
        f"Update the driver to one for CUDA {major}{first}, or take an image for CUDA "
        f"{_version(nvml.cuda or '0')[0]}.",
    )


def _refused_by_toolkit(image: PresentImage, nvml: NvmlAnswer) -> Finding:
    return problem(
        "image_requires_newer_driver",
        f"The image asks for {image.requires.split(' ')[0]} (NVIDIA_REQUIRE_CUDA), and "
        f"{_driver(nvml)} is for CUDA {nvml.cuda}: the NVIDIA toolkit starts no container with "
        "GPUs from it.",
        "Update the driver, or take an image for an older CUDA.",
    )


def _older(needed: str, nvml: NvmlAnswer) -> Finding:
    return Finding(
        code="driver_older_than_image",
        level=Level.WARNING,
        what=f"The image holds CUDA {needed}, and {_driver(nvml)} was made for CUDA {nvml.cuda}: "
        "it runs, without what is newer in the driver and without compiling PTX.",
        next_step=f"Update the driver to one for CUDA {needed}, if anything fails that works "
        "elsewhere.",
    )


def _new_enough(needed: str, nvml: NvmlAnswer) -> Finding:
    return Finding(
        code="driver_new_enough",
        level=Level.OK,
        what=f"{_driver(nvml)[:1].upper()}{_driver(nvml)[1:]} runs CUDA up to {nvml.cuda}: enough "
        f"for the CUDA {needed} of the image.",
    )


def _is_let_in(requires: str, nvml: NvmlAnswer) -> bool:
    """Ask the toolkit's question; what we cannot know (the brand of a GPU) is taken to hold."""
    has = {"cuda": _version(nvml.cuda or ""), "driver": _version(nvml.driver or "")}
    return any(
        all(_holds(condition, has) for condition in conditions.split(","))
        for conditions in requires.split()
    )


def _holds(condition: str, has: dict[str, tuple[int, ...]]) -> bool:
    parsed = _CONDITION.fullmatch(condition)
    if parsed is None or not has[parsed[1]]:
        return True
    return _HOLDS[parsed[2]](has[parsed[1]], _version(parsed[3]))


def _driver(nvml: NvmlAnswer) -> str:
    return f"the driver {nvml.driver}" if nvml.driver else "the driver"


def _version(words: str) -> tuple[int, ...]:
    """Return the numbers at the beginning: "12.6.3" and "570.86.15", of anything else nothing."""
    numbers = re.match(r"\d+(\.\d+)*", words)
    return tuple(int(part) for part in numbers[0].split(".")) if numbers else ()
