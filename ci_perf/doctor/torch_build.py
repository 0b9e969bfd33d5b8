"""Why torch cannot use a GPU that the driver can reach. Pure."""

from collections.abc import Callable

from ci_perf.doctor import evidence
from ci_perf.doctor.finding import Finding, problem
from ci_perf.model.facts import Graphics, NvmlAnswer, TorchBuild


def explain(torch: TorchBuild, graphics: Graphics) -> Finding:
    """Name the most particular cause; the last rule always has an answer."""
    found = (rule(torch, graphics) for rule in _RULES)
    return next(filter(None, found), _init_error(torch, graphics))


def is_cpu_only(torch: TorchBuild) -> bool:
    """Say whether this build could use no GPU of any kind."""
    return torch.cuda is None and torch.hip is None


def cpu_only(torch: TorchBuild, graphics: Graphics) -> Finding:
    """Say that there is a GPU which this torch was not built for."""
    return problem(
        "cpu_only_torch",
        f"There is an NVIDIA GPU ({evidence.name(graphics)}) and torch {torch.version} is a "
        "CPU-only build.",
        "Install a CUDA build: remove torch, then follow the selector on "
        "https://pytorch.org/get-started/locally/ for a CUDA version of at most "
        f"{evidence.driver_cuda(graphics) or 'what nvidia-smi shows'}.",
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
    wanted, has = torch.cuda, evidence.driver_cuda(graphics)
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
        f"torch {torch.version} holds no kernels for this GPU ({evidence.name(graphics)}).",
        "Install another build of torch: compare `torch.cuda.get_arch_list()` with the GPU's "
        "compute capability.",
    )


def _init_error(torch: TorchBuild, graphics: Graphics) -> Finding:
    error = torch.cuda_error or "it sees no device, and gives no reason"
    return problem(
        "cuda_init_error",
        f"The driver is there and torch cannot use the GPU ({evidence.name(graphics)}): {error}",
        "Look at `nvidia-smi` and `sudo dmesg | grep -i xid`: another process may hold the GPU "
        "exclusively, its memory may be full, or it needs a reset or reboot.",
    )


def _driver_name(graphics: Graphics) -> str:
    known = isinstance(graphics.nvml, NvmlAnswer) and graphics.nvml.driver
    return f" {known}" if known else ""


def _major(version: str) -> int:
    return int(version.partition(".")[0])


_RULES: tuple[Callable[[TorchBuild, Graphics], Finding | None], ...] = (
    _devices_hidden,
    _driver_too_old,
    _gpu_unsupported,
)
