"""Whether CUDA works here and, if not, the lowest thing that is broken. Pure.

From the bus up: the device files and libraries of the driver, then the build of torch.
"""

from collections.abc import Callable, Iterable

from ci_perf.model.facts import (
    DeviceNode,
    Finding,
    Graphics,
    Host,
    Level,
    MachineFacts,
    Nvml,
    NvmlAnswer,
    NvmlError,
    NvmlSilence,
    Torch,
    TorchBuild,
    problem,
)

_CONTROL_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm")

# How each kind of container is given its GPUs.
_GIVE_GPUS_DOCKER = (
    "start it with `docker run --gpus all ...` (in a workflow: `container: {options: --gpus all}`)"
)
_GIVE_GPUS = {
    "podman": "start it with `podman run --device nvidia.com/gpu=all ...`",
    "kubernetes": "ask for one in the pod: `resources: {limits: {nvidia.com/gpu: 1}}`",
    "apptainer": "start it with `apptainer run --nv ...`",
    "lxc": "pass the devices through: `lxc config device add NAME gpu gpu`",
}


def cuda_works(torch: Torch) -> bool:
    """Say whether torch has just run a kernel on a GPU."""
    return isinstance(torch, TorchBuild) and torch.device_count > 0 and not torch.cuda_error


def explain(facts: MachineFacts) -> list[Finding]:
    """Say that CUDA works, or why it does not: below torch, in torch, or both."""
    if isinstance(facts.torch, TorchBuild) and cuda_works(facts.torch):
        return [_works(facts.torch), *_clocks_unseen(facts.graphics.nvml)]
    if not has_gpu(facts.graphics):
        return [_no_gpu(facts)]
    below = explain_driver(facts.host, facts.graphics)
    return [finding for finding in (below, _above(facts, below)) if finding]


def _above(facts: MachineFacts, below: Finding | None) -> Finding | None:
    if not isinstance(facts.torch, TorchBuild):
        return None  # that torch is missing or broken is said elsewhere
    if _is_cpu_only(facts.torch):
        return _cpu_only(facts.torch, facts.graphics)
    # What torch says on top of a broken driver only repeats it.
    return None if below else _explain_torch_build(facts.torch, facts.graphics)


def _works(torch: TorchBuild) -> Finding:
    built_for = f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}, untested"
    return Finding(
        code="cuda_works",
        level=Level.OK,
        what=f"torch ran a kernel on a GPU ({torch.device_count} visible, {built_for}): "
        "GPU workloads can be measured.",
    )


def _clocks_unseen(nvml: Nvml) -> Iterable[Finding]:
    """Without NVML a run cannot tell a slow change from a throttled GPU."""
    if isinstance(nvml, NvmlAnswer):
        return
    yield Finding(
        code="nvml_unavailable",
        level=Level.WARNING,
        what=f"NVML cannot be asked ({nvml.detail}): clocks and throttling stay unseen.",
        next_step="`pip install nvidia-ml-py`."
        if nvml.trouble is NvmlError.NOT_INSTALLED
        else "In a container, set NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
    )


def _no_gpu(facts: MachineFacts) -> Finding:
    where = "container" if facts.host.container else "machine"
    hint = (
        f"If the host has one, {_how_to_give_gpus(facts.host)}."
        if facts.host.container
        else "On a virtual machine, check that the GPU is passed through (`lspci -d 10de:`)."
    )
    return Finding(
        code="no_gpu",
        level=Level.WARNING,
        what=f"This {where} shows no NVIDIA GPU: only CPU workloads can be measured.",
        next_step=f"{hint} Otherwise measure on a GPU runner, or with `--device cpu`.",
    )


def explain_driver(host: Host, graphics: Graphics) -> Finding | None:
    """Name the lowest thing that is broken, ``None`` when the GPU can be reached."""
    if _is_listed(graphics):
        return None
    return next((finding for rule in _DRIVER_RULES if (finding := rule(host, graphics))), None)


def _container_without_gpus(host: Host, graphics: Graphics) -> Finding | None:
    if not host.container or graphics.nodes:
        return None
    return problem(
        "container_without_gpus",
        f"The host has an NVIDIA GPU ({_gpu_names(graphics)}) and this "
        f"{host.container} container was started without it.",
        f"To give it one, {_how_to_give_gpus(host)}. The host needs the NVIDIA Container "
        "Toolkit, and `nvidia-smi` must work there first.",
    )


def _no_driver(_host: Host, graphics: Graphics) -> Finding | None:
    loaded = graphics.kernel_module is not None or bool(graphics.nodes)
    if loaded and _nvml_error(graphics) is not NvmlError.DRIVER_NOT_LOADED:
        return None
    holder = " (nouveau holds it)" if graphics.nouveau else ""
    return problem(
        "no_driver",
        f"There is an NVIDIA GPU ({_gpu_names(graphics)}){holder} and no NVIDIA driver is loaded.",
        "Install the driver and reboot (Ubuntu: `sudo ubuntu-drivers install --gpgpu`; others: "
        "your distribution's nvidia-driver package); then `nvidia-smi` must list the GPU.",
    )


def _driver_mismatch(_host: Host, graphics: Graphics) -> Finding | None:
    if _nvml_error(graphics) is not NvmlError.VERSION_MISMATCH:
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
    if not _gpu_nodes(graphics):
        missing.insert(0, "/dev/nvidia0")
    if not missing:
        return None
    return problem(
        "no_device_nodes",
        f"The NVIDIA driver is loaded and {', '.join(missing)} "
        f"{'is' if len(missing) == 1 else 'are'} missing.",
        f"To give the container all of them, {_how_to_give_gpus(host)}."
        if host.container
        else "Create them with `sudo nvidia-modprobe -c 0 -u`, and enable "
        "nvidia-persistenced so that they are there after a reboot.",
    )


def _no_permission(_host: Host, graphics: Graphics) -> Finding | None:
    refused = [node.path for node in graphics.nodes if not node.usable]
    # One GPU of several may belong to somebody else; the control nodes are needed for all.
    control = any(path in _CONTROL_NODES for path in refused)
    every_gpu = not any(node.usable for node in _gpu_nodes(graphics))
    if not (control or every_gpu or _nvml_error(graphics) is NvmlError.NO_PERMISSION):
        return None
    return problem(
        "no_permission",
        f"This user may not open {', '.join(refused) or 'the GPU'}.",
        "See `ls -l /dev/nvidia*`: add the runner's user to the group that owns them (`sudo "
        "usermod -aG video USER`, then log in again); in a container also check its device rules "
        "and `--user`.",
    )


def _driver_libraries_missing(host: Host, graphics: Graphics) -> Finding | None:
    if _nvml_error(graphics) is not NvmlError.LIBRARY_NOT_FOUND:
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
_DRIVER_RULES: tuple[Callable[[Host, Graphics], Finding | None], ...] = (
    _container_without_gpus,
    _no_driver,
    _driver_mismatch,
    _no_device_nodes,
    _no_permission,
    _driver_libraries_missing,
)


def _explain_torch_build(torch: TorchBuild, graphics: Graphics) -> Finding:
    """Name the most particular cause; the last rule always has an answer."""
    findings = (rule(torch, graphics) for rule in _TORCH_RULES)
    return next(filter(None, findings), _init_error(torch, graphics))


def _is_cpu_only(torch: TorchBuild) -> bool:
    """Say whether this build could use no GPU of any kind."""
    return torch.cuda is None and torch.hip is None


def _cpu_only(torch: TorchBuild, graphics: Graphics) -> Finding:
    """Say that there is a GPU which this torch was not built for."""
    return problem(
        "cpu_only_torch",
        f"There is an NVIDIA GPU ({_gpu_names(graphics)}) and torch {torch.version} is a "
        "CPU-only build.",
        "Install a CUDA build: remove torch, then follow the selector on "
        "https://pytorch.org/get-started/locally/ for a CUDA version of at most "
        f"{_driver_cuda(graphics) or 'what nvidia-smi shows'}.",
    )


def _devices_hidden(torch: TorchBuild, graphics: Graphics) -> Finding | None:
    """CUDA stops reading CUDA_VISIBLE_DEVICES at the first entry that names no GPU."""
    visible = graphics.visible_devices
    if visible is None:
        return None
    names_none = visible.partition(",")[0].strip() in ("", "-1", "NoDevFiles")
    if not names_none and "No CUDA GPUs are available" not in torch.cuda_error:
        return None
    return problem(
        "devices_hidden",
        f"CUDA_VISIBLE_DEVICES={visible!r} hides every GPU: its first entry names none of them.",
        "Unset it, or set it to a GPU that exists: `nvidia-smi -L` lists numbers and UUIDs.",
    )


def _driver_too_old(torch: TorchBuild, graphics: Graphics) -> Finding | None:
    """CUDA runs on every driver of its own major version or a newer one."""
    wanted, has = torch.cuda, _driver_cuda(graphics)
    if wanted is None:
        return None
    by_version = has is not None and _major(has) < _major(wanted)
    if not by_version and "driver on your system is too old" not in torch.cuda_error:
        return None
    return problem(
        "driver_too_old",
        f"torch {torch.version} was built for CUDA {wanted}; the driver"
        f"{_driver_name(graphics)} runs at most {f'CUDA {has}' if has else 'an older one'}.",
        f"Update the NVIDIA driver to one for CUDA {wanted}, or install a torch that was built "
        f"for {f'CUDA {has} or older' if has else 'the CUDA that nvidia-smi shows'}.",
    )


def _gpu_unsupported(torch: TorchBuild, graphics: Graphics) -> Finding | None:
    if "no kernel image" not in torch.cuda_error:
        return None
    return problem(
        "gpu_unsupported",
        f"torch {torch.version} holds no kernels for this GPU ({_gpu_names(graphics)}).",
        "Install another build of torch: compare `torch.cuda.get_arch_list()` with the GPU's "
        "compute capability.",
    )


def _init_error(torch: TorchBuild, graphics: Graphics) -> Finding:
    error = torch.cuda_error or "it sees no device, and gives no reason"
    return problem(
        "cuda_init_error",
        f"The driver is there and torch cannot use the GPU ({_gpu_names(graphics)}): {error}",
        "Look at `nvidia-smi` and `sudo dmesg | grep -i xid`: another process may hold the GPU "
        "exclusively, its memory may be full, or it needs a reset or reboot.",
    )


def _driver_name(graphics: Graphics) -> str:
    known = isinstance(graphics.nvml, NvmlAnswer) and graphics.nvml.driver
    return f" {known}" if known else ""


def _major(version: str) -> int:
    return int(version.partition(".")[0])


_TORCH_RULES: tuple[Callable[[TorchBuild, Graphics], Finding | None], ...] = (
    _devices_hidden,
    _driver_too_old,
    _gpu_unsupported,
)


def _how_to_give_gpus(host: Host) -> str:
    """Say how this container gets a GPU, as the middle of a sentence."""
    return _GIVE_GPUS.get(host.container or "", _GIVE_GPUS_DOCKER)


def has_gpu(graphics: Graphics) -> bool:
    """Say whether a GPU is there, reachable or not.

    A loaded kernel module alone counts: a container that was given no GPU may see nothing else.
    """
    module = graphics.kernel_module is not None
    return bool(module or _is_listed(graphics) or graphics.pci or _gpu_nodes(graphics))


def _is_listed(graphics: Graphics) -> bool:
    """NVML that lists a GPU has proven the driver, its nodes and our right to open them."""
    return isinstance(graphics.nvml, NvmlAnswer) and bool(graphics.nvml.gpus)


def _gpu_names(graphics: Graphics) -> str:
    """Name the GPUs, or what shows that there is one."""
    if isinstance(graphics.nvml, NvmlAnswer) and graphics.nvml.gpus:
        return ", ".join(gpu.name for gpu in graphics.nvml.gpus)
    if graphics.pci:
        return "PCI " + ", ".join(graphics.pci)
    if graphics.nodes:
        return ", ".join(node.path for node in graphics.nodes)
    return "its kernel module is loaded"


def _gpu_nodes(graphics: Graphics) -> list[DeviceNode]:
    """Return the nodes of GPUs (/dev/nvidia0), without the control nodes."""
    return [node for node in graphics.nodes if node.path.removeprefix("/dev/nvidia").isdigit()]


def _nvml_error(graphics: Graphics) -> NvmlError | None:
    """Return why NVML is silent, ``None`` when it is not."""
    return graphics.nvml.trouble if isinstance(graphics.nvml, NvmlSilence) else None


def _driver_cuda(graphics: Graphics) -> str | None:
    """Return the newest CUDA version that the driver runs, where NVML says it."""
    return graphics.nvml.cuda if isinstance(graphics.nvml, NvmlAnswer) else None
