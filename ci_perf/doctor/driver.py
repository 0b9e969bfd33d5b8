"""From the bus to the driver's libraries: why a GPU cannot be reached from here. Pure."""

from collections.abc import Callable

from ci_perf.doctor import containers, evidence
from ci_perf.doctor.finding import Finding, problem
from ci_perf.model.facts import Graphics, Host, NvmlTrouble

_CONTROL_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm")


def explain(host: Host, graphics: Graphics) -> Finding | None:
    """Name the lowest thing that is broken, ``None`` when the GPU can be reached."""
    if evidence.is_listed(graphics):
        return None
    return next((finding for rule in _RULES if (finding := rule(host, graphics))), None)


def _container_without_gpus(host: Host, graphics: Graphics) -> Finding | None:
    if not host.container or graphics.nodes:
        return None
    return problem(
        "container_without_gpus",
        f"The host has an NVIDIA GPU ({evidence.name(graphics)}) and this "
        f"{host.container} container was started without it.",
        f"To give it one, {containers.give_gpus(host)}. The host needs the NVIDIA Container "
        "Toolkit, and `nvidia-smi` must work there first.",
    )


def _no_driver(_host: Host, graphics: Graphics) -> Finding | None:
    loaded = graphics.kernel_module is not None or bool(graphics.nodes)
    if loaded and evidence.trouble(graphics) is not NvmlTrouble.DRIVER_NOT_LOADED:
        return None
    holder = " (nouveau holds it)" if graphics.nouveau else ""
    return problem(
        "no_driver",
        f"There is an NVIDIA GPU ({evidence.name(graphics)}){holder} and no NVIDIA driver is "
        "loaded.",
        "Install the driver and reboot (Ubuntu: `sudo ubuntu-drivers install --gpgpu`; others: "
        "your distribution's nvidia-driver package); then `nvidia-smi` must list the GPU.",
    )


def _driver_mismatch(_host: Host, graphics: Graphics) -> Finding | None:
    if evidence.trouble(graphics) is not NvmlTrouble.VERSION_MISMATCH:
        return None
    return problem(
        "driver_mismatch",
        "The NVIDIA libraries and the loaded kernel module are of different versions "
        f"(loaded: {graphics.kernel_module or 'unknown'}): the driver was updated while "
        "it ran.",
        "Reboot the machine; in a container, start it again.",
    )


def _no_device_nodes(host: Host, graphics: Graphics) -> Finding | None:
    present = {node.path for node in graphics.nodes}
    missing = [path for path in _CONTROL_NODES if path not in present]
    if not evidence.gpu_nodes(graphics):
        missing.insert(0, "/dev/nvidia0")
    if not missing:
        return None
    return problem(
        "no_device_nodes",
        f"The NVIDIA driver is loaded and {', '.join(missing)} "
        f"{'is' if len(missing) == 1 else 'are'} missing.",
        f"To give the container all of them, {containers.give_gpus(host)}."
        if host.container
        else "Create them with `sudo nvidia-modprobe -c 0 -u`, and enable "
        "nvidia-persistenced so that they are there after a reboot.",
    )


def _no_permission(_host: Host, graphics: Graphics) -> Finding | None:
    refused = [node.path for node in graphics.nodes if not node.usable]
    # One GPU of several may belong to somebody else; the control nodes are needed for all.
    control = any(path in _CONTROL_NODES for path in refused)
    every_gpu = not any(node.usable for node in evidence.gpu_nodes(graphics))
    if not (control or every_gpu or evidence.trouble(graphics) is NvmlTrouble.NO_PERMISSION):
        return None
    return problem(
        "no_permission",
        f"This user may not open {', '.join(refused) or 'the GPU'}.",
        "See `ls -l /dev/nvidia*`: add the runner's user to the group that owns them (`sudo "
        "usermod -aG video USER`, then log in again); in a container also check its device rules "
        "and `--user`.",
    )


def _driver_libraries_missing(host: Host, graphics: Graphics) -> Finding | None:
    if evidence.trouble(graphics) is not NvmlTrouble.LIBRARY_NOT_FOUND:
        return None
    return problem(
        "driver_libraries_missing",
        "The NVIDIA kernel module is loaded and libnvidia-ml.so.1 is not found: the driver's "
        "libraries are missing here.",
        "Set NVIDIA_DRIVER_CAPABILITIES=compute,utility and start the container with the NVIDIA "
        "Container Toolkit, not with `--device` alone."
        if host.container
        else "Install the libraries of the same driver version (Debian, Ubuntu: "
        "libnvidia-compute, libcuda1).",
    )


# From the hardware up: what lies above a broken floor says nothing of its own.
_RULES: tuple[Callable[[Host, Graphics], Finding | None], ...] = (
    _container_without_gpus,
    _no_driver,
    _driver_mismatch,
    _no_device_nodes,
    _no_permission,
    _driver_libraries_missing,
)
