"""What is wrong with a machine: conditions. What is said of each stands in findings.toml."""

import functools
import itertools
import tomllib
from collections.abc import Iterator
from importlib import resources

from ci_perf.model.facts import (
    DeviceNode,
    Finding,
    Graphics,
    Host,
    InstalledGpu,
    Level,
    MachineFacts,
    NvmlAnswer,
    NvmlError,
    NvmlSilence,
    Programs,
    Torch,
    TorchBroken,
    TorchBuild,
    TorchMissing,
)

MIB = 2**20
# A cold inductor cache, a data set and the results of one suite fit.
MIN_TEMPORARY_MIB = 2048
# Docker's default: a few batches of a data loader with workers fill it.
DEFAULT_CONTAINER_SHM_MIB = 64
# The share of time in which a task waited for a core; an idle machine has less than 1 %.
NOISY_PRESSURE_PERCENT = 10.0
OLDEST_PYTHON = (3, 11)

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


def explain(facts: MachineFacts) -> list[Finding]:
    """Look at what processes of this machine are measured with."""
    return [
        _explain_import(facts.torch),
        *explain_cuda(facts),
        *_explain_programs(facts.programs),
        *explain_host(facts),
    ]


def explain_cuda(facts: MachineFacts) -> Iterator[Finding]:
    """Say that CUDA works, or why it does not: below torch, in torch, or both."""
    torch, graphics = facts.torch, facts.graphics
    lost = [f"{gpu.name}: {gpu.trouble}" for gpu in _list_gpus(graphics) if gpu.trouble]
    if lost:
        yield find("gpu_lost", lost="; ".join(lost))
    if isinstance(torch, TorchBuild) and cuda_works(torch):
        built_for = f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}, untested"
        yield find("cuda_works", count=torch.device_count, built_for=built_for)
        # Without NVML a run cannot tell a slow change from a throttled GPU.
        if isinstance(graphics.nvml, NvmlSilence):
            yield find("nvml_unavailable", detail=graphics.nvml.detail)
    elif not has_gpu(graphics):
        where = "container" if facts.host.container else "machine"
        yield find("no_gpu", where=where, give_gpus=_give_gpus(facts.host))
    else:
        below = explain_driver(facts)
        yield from below
        # That torch is missing or broken is said elsewhere. What it says on top of a broken driver
        # only repeats it; but a CPU-only build could use no GPU of any kind.
        if isinstance(torch, TorchBuild) and (_is_cpu_only(torch) or not below):
            yield _explain_build(torch, graphics)


def explain_driver(facts: MachineFacts) -> list[Finding]:
    """Name the lowest thing that is broken; nothing where the GPU can be reached."""
    if _list_gpus(facts.graphics):
        return []
    return [*itertools.islice(_explain_driver(facts.host, facts.graphics), 1)]


def cuda_works(torch: Torch) -> bool:
    """Say whether torch has just run a kernel on a GPU."""
    return isinstance(torch, TorchBuild) and torch.device_count > 0 and not torch.cuda_error


def is_python_too_old(programs: Programs) -> bool:
    """Say whether nothing can be measured by this Python."""
    return tuple(map(int, programs.python.split(".")[:2])) < OLDEST_PYTHON


def has_gpu(graphics: Graphics) -> bool:
    """Say whether a GPU is there, reachable or not.

    A loaded kernel module alone counts: a container that was given no GPU may see nothing else.
    """
    module = graphics.kernel_module is not None
    return bool(module or _list_gpus(graphics) or graphics.pci or _gpu_nodes(graphics))


def _explain_import(torch: Torch) -> Finding:
    match torch:
        case TorchMissing():
            return find("torch_missing")
        case TorchBroken():
            return find("torch_broken", reason=torch.reason)
        case TorchBuild():
            return find("cpu_works", version=torch.version)


def _explain_programs(programs: Programs) -> Iterator[Finding]:
    if programs.transformers is None:
        yield find("transformers_missing")
    if not (programs.c_compiler and programs.cxx_compiler):
        yield find("compiler_missing")


def explain_host(facts: MachineFacts) -> Iterator[Finding]:
    """Look at what containers on this machine are measured with, too."""
    host, programs = facts.host, facts.programs
    if is_python_too_old(programs):
        yield find("python_too_old", found=programs.python)
    if not programs.git:
        yield find("git_missing")
    space, shm = host.temporary, host.shared_memory
    if space and (free := space.free_bytes // MIB) < MIN_TEMPORARY_MIB:
        yield find("little_disk", path=space.path, free=free, least=MIN_TEMPORARY_MIB)
    if shm and host.container and shm.total_bytes <= DEFAULT_CONTAINER_SHM_MIB * MIB:
        yield find("small_shm", path=shm.path, total=shm.total_bytes // MIB)
    if (pressure := host.cpu_pressure_percent or 0) > NOISY_PRESSURE_PERCENT:
        # All decimals that the kernel gives: rounded further, it could read as the limit.
        yield find("noisy_machine", percent=f"{round(pressure, 2):g}")
    if host.cpu_quota is not None and host.cpu_quota < host.usable_cores:
        yield find("cpu_quota", quota=host.cpu_quota, cores=host.usable_cores)


def _explain_driver(host: Host, graphics: Graphics) -> Iterator[Finding]:
    """From the hardware up: what lies above a broken floor says nothing of its own."""
    gpus, nodes, give_gpus = _gpu_names(graphics), graphics.nodes, _give_gpus(host)
    trouble = graphics.nvml.trouble if isinstance(graphics.nvml, NvmlSilence) else None
    if host.container and not nodes:
        yield find(
            "container_without_gpus", gpus=gpus, container=host.container, give_gpus=give_gpus
        )
    is_loaded = graphics.kernel_module is not None or bool(nodes)
    if not is_loaded or trouble is NvmlError.DRIVER_NOT_LOADED:
        nouveau = " (nouveau holds it)" if graphics.nouveau else ""
        yield find("no_driver", gpus=gpus, nouveau=nouveau)
    if trouble is NvmlError.VERSION_MISMATCH:
        yield find("driver_mismatch", module=graphics.kernel_module or "unknown")
    wanted = (*([] if _gpu_nodes(graphics) else ["/dev/nvidia0"]), *_CONTROL_NODES)
    if missing := [path for path in wanted if path not in {node.path for node in nodes}]:
        yield find("no_device_nodes", missing=", ".join(missing), give_gpus=give_gpus)
    refused = [node.path for node in nodes if not node.usable]
    # One GPU of several may belong to somebody else; the control nodes are needed for all.
    is_open = any(node.usable for node in _gpu_nodes(graphics))
    is_closed = not is_open or not {*refused}.isdisjoint(_CONTROL_NODES)
    if is_closed or trouble is NvmlError.NO_PERMISSION:
        yield find("no_permission", refused=", ".join(refused) or "the GPU")
    if trouble is NvmlError.LIBRARY_NOT_FOUND:
        yield find("driver_libraries_missing")


def _explain_build(torch: TorchBuild, graphics: Graphics) -> Finding:
    """Name the most particular cause for which this torch cannot use a GPU."""
    gpus, error, visible = _gpu_names(graphics), torch.cuda_error, graphics.visible_devices
    nvml = graphics.nvml if isinstance(graphics.nvml, NvmlAnswer) else None
    runs = nvml.cuda if nvml else None
    newest = f"CUDA {runs}" if runs else "the CUDA that nvidia-smi shows"
    if _is_cpu_only(torch):
        return find("cpu_only_torch", gpus=gpus, version=torch.version, newest=newest)
    # CUDA stops reading CUDA_VISIBLE_DEVICES at the first entry that names no GPU.
    names_none = (visible or "").partition(",")[0].strip() in ("", "-1", "NoDevFiles")
    is_blind = names_none or "No CUDA GPUs are available" in error
    if visible is not None and is_blind:
        return find("devices_hidden", visible=visible)
    # CUDA runs on every driver of its own major version or a newer one.
    majors = [int(version.partition(".")[0]) for version in (runs, torch.cuda) if version]
    is_older = len(majors) == 2 and majors[0] < majors[1]
    if torch.cuda and (is_older or "driver on your system is too old" in error):
        driver = f" {nvml.driver}" if nvml and nvml.driver else ""
        said = {"version": torch.version, "cuda": torch.cuda, "driver": driver, "newest": newest}
        return find("driver_too_old", **said)
    if "no kernel image" in error:
        return find("gpu_unsupported", version=torch.version, gpus=gpus)
    no_words = "it sees no device, and gives no reason"
    return find("cuda_init_error", gpus=gpus, error=error or no_words)


def find(code: str, **values: object) -> Finding:
    """Make a finding, of which findings.toml has the words; each of `values` has a place there."""
    words = _read_words()[code]
    return Finding(
        code=code,
        level=Level(words["level"]),
        what=words["what"].format(**values),
        next_step=words.get("next", "").format(**values),
    )


@functools.cache
def _read_words() -> dict[str, dict[str, str]]:
    text = resources.files(__package__).joinpath("findings.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _give_gpus(host: Host) -> str:
    return _GIVE_GPUS.get(host.container or "", _GIVE_GPUS_DOCKER)


def _is_cpu_only(torch: TorchBuild) -> bool:
    return torch.cuda is None and torch.hip is None


def _list_gpus(graphics: Graphics) -> tuple[InstalledGpu, ...]:
    """NVML that lists a GPU has proven the driver, its nodes and our right to open them."""
    return graphics.nvml.gpus if isinstance(graphics.nvml, NvmlAnswer) else ()


def _gpu_names(graphics: Graphics) -> str:
    """Name the GPUs, or what shows that there is one."""
    if gpus := _list_gpus(graphics):
        return ", ".join(gpu.name for gpu in gpus)
    if graphics.pci:
        return "PCI " + ", ".join(graphics.pci)
    return ", ".join(node.path for node in graphics.nodes) or "its kernel module is loaded"


def _gpu_nodes(graphics: Graphics) -> list[DeviceNode]:
    """Return the nodes of GPUs (/dev/nvidia0), without the control nodes."""
    return [node for node in graphics.nodes if node.path.removeprefix("/dev/nvidia").isdigit()]
