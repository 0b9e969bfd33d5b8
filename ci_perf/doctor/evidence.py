"""How we know that there is a GPU, and what its driver says. Pure."""

from ci_perf.model.facts import DeviceNode, Graphics, NvmlAnswer, NvmlSilence, NvmlTrouble


def has_gpu(graphics: Graphics) -> bool:
    """Say whether a GPU is there, reachable or not.

    A loaded kernel module alone counts: a container that was given no GPU may see nothing else.
    """
    module = graphics.kernel_module is not None
    return bool(module or is_listed(graphics) or graphics.pci or gpu_nodes(graphics))


def is_listed(graphics: Graphics) -> bool:
    """NVML that lists a GPU has proven the driver, its nodes and our right to open them."""
    return isinstance(graphics.nvml, NvmlAnswer) and bool(graphics.nvml.gpus)


def name(graphics: Graphics) -> str:
    """Name the GPUs, or what shows that there is one."""
    if isinstance(graphics.nvml, NvmlAnswer) and graphics.nvml.gpus:
        return ", ".join(gpu.name for gpu in graphics.nvml.gpus)
    if graphics.pci:
        return "PCI " + ", ".join(graphics.pci)
    if graphics.nodes:
        return ", ".join(node.path for node in graphics.nodes)
    return "its kernel module is loaded"


def gpu_nodes(graphics: Graphics) -> list[DeviceNode]:
    """Return the nodes of GPUs (/dev/nvidia0), without the control nodes."""
    return [node for node in graphics.nodes if node.path.removeprefix("/dev/nvidia").isdigit()]


def trouble(graphics: Graphics) -> NvmlTrouble | None:
    """Return why NVML is silent, ``None`` when it is not."""
    return graphics.nvml.trouble if isinstance(graphics.nvml, NvmlSilence) else None


def driver_cuda(graphics: Graphics) -> str | None:
    """Return the newest CUDA version that the driver runs, where NVML says it."""
    return graphics.nvml.cuda if isinstance(graphics.nvml, NvmlAnswer) else None
