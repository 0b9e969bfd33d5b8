"""What this machine is, as far as it can change a number. Run in a child: it imports torch.

`python -P -m ci_perf.measure.surroundings FOLDER PARENT DEVICE THREADS`; the files in FOLDER are
named in task.py, PARENT is the id of the process that waits for them.
"""

import contextlib
import hashlib
import importlib.metadata
import os
import platform
import socket
import sys
from pathlib import Path
from typing import Any

from ci_perf import files
from ci_perf.measure import host, linux, task
from ci_perf.measure.task import Surroundings, Trouble
from ci_perf.model.environment import (
    CpuMachine,
    Environment,
    GpuMachine,
    Machine,
    Noted,
    Software,
)
from ci_perf.model.run import Phase


class DeviceError(Exception):
    """The device that was asked for is not here."""


def describe(device: str, threads: int) -> Surroundings:
    """Resolve "auto" and describe the machine. Raises DeviceError."""
    torch = _torch()
    device = _resolve(device, torch)
    hard: Machine
    if device.startswith("cuda"):
        hard = _gpu(device, torch)
        lock = _gpu_name(device, torch)
    else:
        hard = CpuMachine(cpu_model=host.cpu_model(), logical_cores=os.cpu_count() or 0)
        lock = "cpu"
    return Surroundings(
        device=device,
        locks=(lock,),
        environment=Environment(hard=hard, soft=_software(torch, threads), noted=_noted()),
    )


def _torch() -> Any:  # noqa: ANN401  the module, or nothing
    """Suites without torch are legal; so is a machine without it."""
    try:
        import torch
    except ImportError:
        return None
    return torch


def _resolve(device: str, torch: Any) -> str:  # noqa: ANN401
    available = torch is not None and torch.cuda.is_available()
    if device == "auto":
        return "cuda:0" if available else "cpu"
    if device == "cpu":
        return device
    if not available:
        raise DeviceError(
            f"--device {device}: expected a CUDA device, found none; `ci-perf doctor` says why"
        )
    index = int(device.partition(":")[2] or 0)
    if index >= torch.cuda.device_count():
        raise DeviceError(
            f"--device {device}: expected an index below {torch.cuda.device_count()}, found {index}"
        )
    return f"cuda:{index}"


def _gpu(device: str, torch: Any) -> GpuMachine:  # noqa: ANN401
    properties = torch.cuda.get_device_properties(device)
    return GpuMachine(
        gpu_model=properties.name,
        gpu_count=1,
        gpu_memory_bytes=properties.total_memory,
        mig="MIG" in properties.name,
    )


def _gpu_name(device: str, torch: Any) -> str:  # noqa: ANN401
    """Name a GPU as the whole host knows it: containers may each count theirs from 0."""
    uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
    return f"GPU-{uuid}" if uuid else device.replace(":", "-")


def _software(torch: Any, threads: int) -> Software:  # noqa: ANN401
    cuda = torch.version.cuda if torch is not None else None
    cudnn = torch.backends.cudnn.version() if cuda else None
    return Software(
        python=platform.python_version(),
        torch=str(torch.__version__) if torch is not None else "none",
        transformers=_version("transformers"),
        cuda=cuda,
        cudnn=str(cudnn) if cudnn else None,
        driver=_driver(),
        image=host.short(os.environ["CI_PERF_IMAGE"]) if "CI_PERF_IMAGE" in os.environ else None,
        cpu_model=host.cpu_model(),
        threads=threads,
        kernel=platform.release(),
    )


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _driver() -> str | None:
    """Ask NVML for the driver's version; `None` where there is no driver."""
    with contextlib.suppress(Exception):  # every NVML failure means: no driver to name
        import pynvml

        pynvml.nvmlInit()
        try:
            return str(pynvml.nvmlSystemGetDriverVersion())
        finally:
            pynvml.nvmlShutdown()
    return None


def _noted() -> Noted:
    return Noted(
        # Enough to tell two hosts apart; the name itself is nobody's business.
        host_hash=hashlib.sha256(socket.gethostname().encode()).hexdigest()[:12],
        memory_total_bytes=host.memory_total_bytes(),
        load_average=os.getloadavg()[0],
        allocator=host.short(os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")),
    )


def main(folder: Path, device: str, threads: int) -> None:
    """Write the description, or the reason why there is none."""
    try:
        files.write(folder / task.RESULT, describe(device, threads))
    except DeviceError as error:
        trouble = Trouble(phase=Phase.LAUNCH, reason=str(error))
        files.write(folder / task.TROUBLE, trouble)


if __name__ == "__main__":
    linux.end_with_parent(int(sys.argv[2]))
    main(Path(sys.argv[1]), sys.argv[3], int(sys.argv[4]))
