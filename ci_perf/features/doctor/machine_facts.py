"""Gather what this machine is from /proc, /sys, /dev and the libraries. Judges nothing.

Whatever cannot be read is absent: no file of the system is required to exist.
"""

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ci_perf.measuring import environment_probe, library_probe
from ci_perf.model.facts import (
    Containers,
    DeviceNode,
    Graphics,
    Host,
    MachineFacts,
    Nvml,
    Programs,
    Space,
    Torch,
)
from ci_perf.system import linux

NVIDIA = "0x10de"  # PCI vendor
DISPLAY_CONTROLLER = "0x03"  # PCI class: VGA, 3D and other display controllers

_NODE = re.compile(r"nvidia(\d+|ctl|-uvm)")


# Marks that container engines leave: (file, kind).
_MARKS = (("run/.containerenv", "podman"), (".dockerenv", "docker"))
_ENVIRONMENT_MARKS = (
    ("KUBERNETES_SERVICE_HOST", "kubernetes"),
    ("APPTAINER_CONTAINER", "apptainer"),
    ("SINGULARITY_CONTAINER", "apptainer"),
)
_CGROUP_MARKS = (
    ("kubepods", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("lxc", "lxc"),
    ("containerd", "containerd"),
)


def _space(path: Path) -> Space | None:
    try:
        usage = shutil.disk_usage(path)
    except OSError:
        return None
    return Space(path=str(path), total_bytes=usage.total, free_bytes=usage.free)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where facts come from; the defaults are this machine."""

    root: Path
    environ: Mapping[str, str]
    temporary: Path
    torch: Callable[[], Torch] = library_probe.torch_facts
    nvml: Callable[[], Nvml] = library_probe.nvml_facts
    which: Callable[[str], str | None] = shutil.which


def this_machine() -> Sources:
    """Read from the machine that this process runs on."""
    return Sources(root=Path("/"), environ=os.environ, temporary=Path(tempfile.gettempdir()))


def gather(sources: Sources, containers: Containers | None = None) -> MachineFacts:
    """Read every fact; takes seconds, because torch is imported in a child.

    `containers` is what a probe of them found; none is started here.
    """
    return MachineFacts(
        host=_host(sources),
        graphics=graphics(sources),
        torch=sources.torch(),
        programs=_programs(sources),
        containers=containers,
    )


def has_gpu_nodes(sources: Sources) -> bool:
    """Say whether this host shows a driver through which a GPU could be used."""
    return bool(_nodes(sources.root))


def _host(sources: Sources) -> Host:
    root = sources.root
    pressure = linux.cpu_pressure(root / "proc")
    return Host(
        system=f"{platform.system()} {platform.release()}",
        container=_container(root, sources.environ),
        cpu_model=linux.cpu_model(root / "proc") or None,
        logical_cores=os.cpu_count() or 0,
        usable_cores=len(os.sched_getaffinity(0)),
        cpu_quota=_cpu_quota(root),
        cpu_pressure_percent=None if pressure is None else 100 * pressure,
        memory_bytes=linux.memory_total_bytes(root / "proc") or None,
        temporary=_space(sources.temporary),
        shared_memory=_space(root / "dev/shm"),
    )


def graphics(sources: Sources) -> Graphics:
    """Look for GPUs and their driver, from the bus up."""
    root = sources.root
    return Graphics(
        pci=_pci_gpus(root),
        kernel_module=_first_line(root / "proc/driver/nvidia/version"),
        nouveau=(root / "sys/module/nouveau").is_dir(),
        nodes=_nodes(root),
        visible_devices=sources.environ.get("CUDA_VISIBLE_DEVICES"),
        nvml=sources.nvml(),
    )


def _programs(sources: Sources) -> Programs:
    def has_compiler(variable: str, *names: str) -> bool:
        chosen = sources.environ.get(variable, "").split()[:1]  # "gcc -std=c17", "ccache gcc"
        return any(sources.which(name) for name in chosen or names)

    return Programs(
        python=platform.python_version(),
        transformers=environment_probe.find_version("transformers"),
        git=sources.which("git") is not None,
        c_compiler=has_compiler("CC", "gcc", "cc", "clang"),
        cxx_compiler=has_compiler("CXX", "g++", "c++", "clang++"),
    )


def _container(root: Path, environ: Mapping[str, str]) -> str | None:
    """Name the kind of container, the most telling mark first."""
    for variable, kind in _ENVIRONMENT_MARKS:
        if environ.get(variable):
            return kind
    for file, kind in _MARKS:
        if (root / file).exists():
            return kind
    groups = linux.read_or_nothing(root / "proc/1/cgroup")
    return next((kind for mark, kind in _CGROUP_MARKS if mark in groups), None)


def _cpu_quota(root: Path) -> float | None:
    """Return how many cores' worth of time a cgroup allows, by version 2 or 1."""
    cgroup = root / "sys/fs/cgroup"
    quota, _, period = linux.read_or_nothing(cgroup / "cpu.max").strip().partition(" ")
    if not quota:
        quota = linux.read_or_nothing(cgroup / "cpu/cpu.cfs_quota_us").strip()
        period = linux.read_or_nothing(cgroup / "cpu/cpu.cfs_period_us").strip()
    if not (quota.isdigit() and period.isdigit() and int(period)):
        return None  # "max", -1, or no such controller
    return int(quota) / int(period)


def _pci_gpus(root: Path) -> tuple[str, ...]:
    return tuple(
        device.name
        for device in _entries(root / "sys/bus/pci/devices")
        if _first_line(device / "vendor") == NVIDIA
        and (_first_line(device / "class") or "").startswith(DISPLAY_CONTROLLER)
    )


def _nodes(root: Path) -> tuple[DeviceNode, ...]:
    return tuple(
        DeviceNode(path=f"/dev/{node.name}", usable=_opens(node))
        for node in _entries(root / "dev")
        if _NODE.fullmatch(node.name)
    )


def _opens(node: Path) -> bool:
    """Open it: a container's device rules refuse what the file's mode allows."""
    try:
        os.close(os.open(node, os.O_RDWR))
    except OSError:
        return False
    return True


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _first_line(path: Path) -> str | None:
    return linux.read_or_nothing(path).partition("\n")[0].strip() or None
