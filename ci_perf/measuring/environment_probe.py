"""Describe this machine, as far as it can change a number. Run in a child: it may import torch.

`python -P -m ci_perf.measuring.environment_probe FOLDER PARENT DEVICE THREADS DEVICES COMMANDS`;
task.py names the files in FOLDER, PARENT is the id of the process that waits for them.
"""

import contextlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import runpy
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ci_perf.measuring import knobs, user_code, visible_gpus
from ci_perf.model import task
from ci_perf.model.environment import (
    CpuMachine,
    Environment,
    GpuMachine,
    Machine,
    Noted,
    Software,
)
from ci_perf.model.process import Phase
from ci_perf.model.program import digest
from ci_perf.model.task import MachineDescription, TaskFailure
from ci_perf.system import files, linux

# In a RECORD: where pip has installed a package from, and what leads to an editable one.
_ORIGIN = re.compile(r"/direct_url\.json,")
# PEP 610, as pip writes it.
_DIRECT_URL = re.compile(r'"editable": *true')
_EDITABLE = re.compile(r"^__editable__|\.pth,")


class DeviceError(Exception):
    """The device that was asked for is not here."""


def _torch() -> Any:  # noqa: ANN401  the module, or nothing
    """Suites without torch are legal; so is a machine without it."""
    if cpu_build := _cpu_build():
        return cpu_build
    try:
        import torch
    except ImportError:
        return None
    return torch


def _cpu_build() -> SimpleNamespace | None:
    """Return what is asked of torch where it is built for CPUs alone; the import takes a second.

    Its file version.py names the toolkits it is built with, and imports nothing of torch.
    """
    with contextlib.suppress(Exception):  # then the import says what is wrong
        package = importlib.util.find_spec("torch")
        for folder in (package and package.submodule_search_locations) or ():
            names = runpy.run_path(str(Path(folder) / "version.py"))
            if names["cuda"] is None and names["hip"] is None:
                version = SimpleNamespace(cuda=None, hip=None)
                cuda = SimpleNamespace(is_available=lambda: False)
                return SimpleNamespace(__version__=names["__version__"], version=version, cuda=cuda)
    return None


def describe(
    device: str,
    threads: int,
    devices: int = 1,
    *,
    commands: bool = False,
    load: Callable[[], Any] = _torch,
) -> MachineDescription:
    """Resolve "auto" and describe the machine. Raises DeviceError.

    `devices` GPUs are meant, from `device` on; it says nothing about a CPU, which ranks share.
    `commands` may use every GPU that they see. `load` returns the module torch, or `None`.
    """
    torch = load()
    device = _resolve(device, devices, torch)
    hard: Machine
    uuids: tuple[str, ...] = ()
    if device.startswith("cuda"):
        first = int(device.partition(":")[2])
        names = [f"cuda:{first + number}" for number in range(devices)]
        hard = _gpus(names, torch)
        # As the whole host knows them: containers may each count theirs from 0.
        gpus = map(torch.cuda.get_device_properties, names)
        uuids = tuple(uuid for gpu in gpus if (uuid := _identity(gpu)[1]))
        # Without a UUID, which containers would agree on, by its number.
        locks = uuids if len(uuids) == devices else tuple(n.replace(":", "-") for n in names)
    else:
        seen = _find_visible(torch) if commands else []
        times = sorted(Counter(model for model, _ in seen).items())
        hard = CpuMachine(
            cpu_model=linux.cpu_model(),
            logical_cores=os.cpu_count() or 0,
            gpus=", ".join(f"{name} x{count}" if count > 1 else name for name, count in times),
        )
        locks = ("cpu", *(uuid for _, uuid in seen))
    return MachineDescription(
        device=device,
        locks=locks,
        gpus=uuids,
        environment=Environment(
            hard=hard, soft=_software(torch, threads), noted=_note_environment()
        ),
        variables={name: digest(os.fsencode(value)) for name, value in os.environ.items()},
        ci_perf=find_version("ci-perf") or "",
    )


def _find_visible(torch: Any) -> list[tuple[str, str]]:  # noqa: ANN401
    """Return the GPUs that a command may use, as model and lock: by NVML, else by torch.

    Raises DeviceError: it is not sure which.
    """
    gpus = None
    with contextlib.suppress(Exception):  # whatever a driver or its Python module fails by
        import pynvml

        gpus = visible_gpus.list_gpus(pynvml)
    if gpus is not None:
        try:
            return [(gpu.model, gpu.uuid) for gpu in visible_gpus.choose(gpus, os.environ)]
        except ValueError as error:
            raise DeviceError(str(error)) from None
    if torch is None or not torch.cuda.is_available():
        return []
    names = (f"cuda:{number}" for number in range(torch.cuda.device_count()))
    known = map(torch.cuda.get_device_properties, names)
    return [(gpu.name, _identity(gpu)[1] or f"cuda-{n}") for n, gpu in enumerate(known)]


def _resolve(device: str, devices: int, torch: Any) -> str:  # noqa: ANN401
    available = torch is not None and torch.cuda.is_available()
    if device == "cpu" or (device == "auto" and not available):
        return "cpu"
    if not available:
        raise DeviceError(f"--device {device}: expected a CUDA device, found {_obstacle(torch)}")
    first, count = int(device.partition(":")[2] or 0), torch.cuda.device_count()
    if first >= count:
        raise DeviceError(f"--device {device}: expected an index below {count}, found {first}")
    if first + devices > count:
        raise DeviceError(
            f"--device {device}: expected {devices} GPUs from cuda:{first} on, found "
            f"{count - first}; name workloads with a smaller world_size, or measure with "
            "--device cpu"
        )
    return f"cuda:{first}"


def _obstacle(torch: Any) -> str:  # noqa: ANN401
    """Say why there is no CUDA device, as far as torch alone can tell, and what to do."""
    if torch is None:
        return f"no torch; install a build with CUDA, which {user_code.SELECTOR} names"
    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return (
            f"torch {torch.__version__}, which is built without CUDA; {user_code.INSTALL_CUDA}, "
            "or measure with --device cpu"
        )
    return "none; `ci-perf doctor` says why"


def _gpus(names: list[str], torch: Any) -> GpuMachine:  # noqa: ANN401
    """Describe GPUs of one kind. Raises DeviceError: ranks would wait for the slower kind."""
    gpus = [torch.cuda.get_device_properties(name) for name in names]
    kinds = sorted({(gpu.name, gpu.total_memory) for gpu in gpus})
    if len({name for name, _ in kinds}) > 1:
        raise DeviceError(
            f"{names[0]} to {names[-1]}: expected GPUs of one model, found "
            f"{' and '.join(name for name, _ in kinds)}; CUDA_VISIBLE_DEVICES chooses among them"
        )
    return GpuMachine(
        gpu_model=gpus[0].name,
        gpu_count=len(names),
        # The smallest sets how large a batch may be.
        gpu_memory_bytes=min(memory for _, memory in kinds),
        mig=any(_identity(gpu)[0] for gpu in gpus),
    )


def _identity(properties: Any) -> tuple[bool, str | None]:  # noqa: ANN401
    """Return whether it is a MIG instance, and its UUID, which older versions of torch lack."""
    uuid = getattr(properties, "uuid", None)
    if not uuid:
        return "MIG" in properties.name, None
    return identify_gpu(str(uuid), properties.name)


def identify_gpu(uuid: str, model: str) -> tuple[bool, str]:
    """Return whether a GPU is a MIG instance, and its UUID with the prefix that NVML asks for.

    `uuid` is torch's, without a prefix. Where NVML cannot be asked, the name of the model decides.
    """
    with contextlib.suppress(Exception):  # whatever a driver or its Python module fails by
        import pynvml

        pynvml.nvmlInit()
        try:
            return _ask_nvml(pynvml, uuid)
        finally:
            pynvml.nvmlShutdown()
    is_instance = "MIG" in model
    return is_instance, f"{'MIG' if is_instance else 'GPU'}-{uuid}"


def _ask_nvml(library: Any, uuid: str) -> tuple[bool, str]:  # noqa: ANN401  the module
    """Ask NVML. Raises NVMLError where it knows neither an instance nor a GPU of this UUID."""
    with contextlib.suppress(library.NVMLError_NotFound, library.NVMLError_InvalidArgument):
        library.nvmlDeviceGetHandleByUUID(f"MIG-{uuid}")
        return True, f"MIG-{uuid}"
    whole = library.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
    if not visible_gpus.is_divided(library, whole):
        return False, f"GPU-{uuid}"
    parts = visible_gpus.list_instances(library, whole)
    instances = [str(library.nvmlDeviceGetUUID(part)) for part in parts]
    names = tuple(filter(None, os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")))
    named = [instance for instance in instances if instance.startswith(names)]
    likely = named or instances
    return True, likely[0] if len(likely) == 1 else f"GPU-{uuid}"


def _software(torch: Any, threads: int) -> Software:  # noqa: ANN401
    cuda = torch.version.cuda if torch is not None else None
    cudnn = torch.backends.cudnn.version() if cuda else None
    return Software(
        python=platform.python_version(),
        torch=str(torch.__version__) if torch is not None else "none",
        transformers=find_version("transformers"),
        cuda=cuda,
        cudnn=str(cudnn) if cudnn else None,
        driver=_driver(),
        image=linux.short(os.environ["CI_PERF_IMAGE"]) if "CI_PERF_IMAGE" in os.environ else None,
        cpu_model=linux.cpu_model(),
        threads=threads,
        kernel=platform.release(),
        packages=packages(importlib.metadata.distributions()),
    )


def packages(installed: Iterable[importlib.metadata.Distribution]) -> str:
    """Return the digest of all packages: name, version, and the list of files with their hashes."""
    lines = [
        f"{package.metadata['Name']} {package.version} {digest(_record(package).encode())}"
        for package in installed
    ]
    return digest("\n".join(sorted(lines)).encode())


def _record(package: importlib.metadata.Distribution) -> str:
    """Return the list of files, but for those that only say from which folder it was installed."""
    is_editable = _DIRECT_URL.search(package.read_text("direct_url.json") or "") is not None
    return "\n".join(
        line
        for line in (package.read_text("RECORD") or "").splitlines()
        if not _ORIGIN.search(line) and not (is_editable and _EDITABLE.search(line))
    )


def find_version(package: str) -> str | None:
    """Return the version of an installed package, which is not imported."""
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


def _note_environment() -> Noted:
    return Noted(
        host_hash=linux.name_hash(),
        memory_total_bytes=linux.memory_total_bytes(),
        load_average=os.getloadavg()[0],
        allocator=linux.short(
            os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
        ),
    )


def main(folder: Path, device: str, threads: int, devices: int, *, commands: bool) -> None:
    """Write the description, or the reason why there is none."""
    try:
        files.write(folder / task.RESULT, describe(device, threads, devices, commands=commands))
    except DeviceError as error:
        failure = TaskFailure(phase=Phase.LAUNCH, reason=str(error))
        files.write(folder / task.FAILURE, failure)


if __name__ == "__main__":
    linux.end_with_parent(int(sys.argv[2]))
    where, _, name, threads, devices, commands = sys.argv[1:]
    main(Path(where), name, int(threads), int(devices), commands=commands == "commands")
    knobs.end_process(0)
