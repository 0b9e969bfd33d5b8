"""Whether the host's driver is new enough for the CUDA that an image holds. Pure."""

import re
from collections.abc import Callable

from ci_perf.doctor import evidence
from ci_perf.doctor.finding import Finding, Level, problem
from ci_perf.model.facts import Graphics, Image, NvmlAnswer, Torch, TorchBuild

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


def explain(image: Image, torch: Torch, graphics: Graphics) -> list[Finding]:
    """Compare what an image needs with what the driver can; nothing where either is unknown."""
    nvml = graphics.nvml
    needed = _needed(image, torch)
    if not isinstance(nvml, NvmlAnswer) or not nvml.cuda or not evidence.has_gpu(graphics):
        return []
    if needed and _version(needed)[:1] > _version(nvml.cuda)[:1]:
        return [_too_old(needed, nvml)]
    if image.requires and not _is_let_in(image.requires, nvml):
        return [_refused_by_toolkit(image, nvml)]
    if needed and _version(needed)[:2] > _version(nvml.cuda)[:2]:
        return [_older(needed, nvml)]
    return [_new_enough(needed, nvml)] if needed else []


def _needed(image: Image, torch: Torch) -> str:
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


def _refused_by_toolkit(image: Image, nvml: NvmlAnswer) -> Finding:
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
        all(_holds(condition, has) for condition in one.split(",")) for one in requires.split()
    )


def _holds(condition: str, has: dict[str, tuple[int, ...]]) -> bool:
    found = _CONDITION.fullmatch(condition)
    if found is None or not has[found[1]]:
        return True
    return _HOLDS[found[2]](has[found[1]], _version(found[3]))


def _driver(nvml: NvmlAnswer) -> str:
    return f"the driver {nvml.driver}" if nvml.driver else "the driver"


def _version(words: str) -> tuple[int, ...]:
    """Return the numbers at the beginning: "12.6.3" and "570.86.15", of anything else nothing."""
    found = re.match(r"\d+(\.\d+)*", words)
    return tuple(int(part) for part in found[0].split(".")) if found else ()
