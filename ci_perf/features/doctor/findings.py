"""What is wrong with a machine, and what to do about it: tables of conditions. Pure.

A rule has a condition, a sentence and a next step; {words} in them are those of `_words`.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ci_perf.model.facts import (
    DeviceNode,
    Finding,
    Graphics,
    Level,
    MachineFacts,
    NvmlAnswer,
    NvmlError,
    NvmlSilence,
    Torch,
    TorchBroken,
    TorchBuild,
    TorchMissing,
)

MIB = 2**20
GIB = 2**30
# A cold inductor cache, a data set and the results of one suite fit.
MIN_TEMPORARY_BYTES = 2 * GIB
# Docker's default: a few batches of a data loader with workers fill it.
DEFAULT_CONTAINER_SHM_BYTES = 64 * MIB
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


class _Rule(NamedTuple):
    """A finding: when it applies, its sentence and its next step."""

    code: str
    applies: Callable[[MachineFacts], bool]
    what: str
    next_step: str
    level: Level = Level.PROBLEM


def explain(facts: MachineFacts) -> list[Finding]:
    """Look at what processes of this machine are measured with."""
    return [
        *_all(_TORCH_RULES, facts),
        *explain_cuda(facts),
        *_all(_PROGRAM_RULES, facts),
        *explain_host(facts),
    ]


def explain_host(facts: MachineFacts) -> list[Finding]:
    """Look at what containers on this machine are measured with, too."""
    return _all(_HOST_RULES, facts)


def explain_cuda(facts: MachineFacts) -> list[Finding]:
    """Say that CUDA works, or why it does not: below torch, in torch, or both."""
    return [*_all([_LOST_RULE], facts), *_explain_torch(facts)]


def _explain_torch(facts: MachineFacts) -> list[Finding]:
    torch = facts.torch
    if cuda_works(torch):
        return _all(_WORKING_RULES, facts)
    if not has_gpu(facts.graphics):
        return _all([_NO_GPU], facts)
    below = explain_driver(facts)
    if not isinstance(torch, TorchBuild):
        return below  # that torch is missing or broken is said elsewhere
    if torch.cuda is None and torch.hip is None:  # this build could use no GPU of any kind
        return below + _all([_CPU_ONLY], facts)
    # What torch says on top of a broken driver only repeats it.
    return below or _all(_BUILD_RULES, facts)[:1]


def explain_driver(facts: MachineFacts) -> list[Finding]:
    """Name the lowest thing that is broken; nothing where the GPU can be reached."""
    return [] if _is_listed(facts.graphics) else _all(_DRIVER_RULES, facts)[:1]


def cuda_works(torch: Torch) -> bool:
    """Say whether torch has just run a kernel on a GPU."""
    return isinstance(torch, TorchBuild) and torch.device_count > 0 and not torch.cuda_error


def is_python_too_old(facts: MachineFacts) -> bool:
    """Say whether nothing can be measured by this Python."""
    return tuple(map(int, facts.programs.python.split(".")[:2])) < OLDEST_PYTHON


def _all(rules: Sequence[_Rule], facts: MachineFacts) -> list[Finding]:
    words = _words(facts)
    return [
        Finding(
            code=rule.code,
            level=rule.level,
            what=rule.what.format_map(words),
            next_step=rule.next_step.format_map(words),
        )
        for rule in rules
        if rule.applies(facts)
    ]


def _words(facts: MachineFacts) -> dict[str, object]:
    host, graphics = facts.host, facts.graphics
    torch = facts.torch if isinstance(facts.torch, TorchBuild) else None
    driver = graphics.nvml.driver if isinstance(graphics.nvml, NvmlAnswer) else None
    cuda = _driver_cuda(graphics)
    return {
        "python": facts.programs.python,
        "broken": facts.torch.reason if isinstance(facts.torch, TorchBroken) else "",
        "temporary": host.temporary and host.temporary.path,
        "free_gib": host.temporary and host.temporary.free_bytes / GIB,
        "shm": host.shared_memory and host.shared_memory.path,
        "shm_mib": host.shared_memory and host.shared_memory.total_bytes // MIB,
        # All decimals that the kernel gives: rounded further, it could read as the limit.
        "pressure": round(host.cpu_pressure_percent or 0, 2),
        "quota": host.cpu_quota,
        "cores": host.usable_cores,
        "container": host.container,
        "where": "container" if host.container else "machine",
        "gpus": _gpu_names(graphics),
        "lost": "; ".join(_lost_gpus(graphics)),
        "nouveau": " (nouveau holds it)" if graphics.nouveau else "",
        "give_gpus": _GIVE_GPUS.get(host.container or "", _GIVE_GPUS_DOCKER),
        "nvml": graphics.nvml.detail if isinstance(graphics.nvml, NvmlSilence) else "",
        "missing": ", ".join(_find_missing_nodes(graphics)),
        "refused": ", ".join(_find_refused_nodes(graphics)) or "the GPU",
        "module": graphics.kernel_module or "unknown",
        "visible": graphics.visible_devices,
        "driver": f" {driver}" if driver else "",
        "newest": f"CUDA {cuda}" if cuda else "the CUDA that nvidia-smi shows",
        "torch": torch and torch.version,
        "devices": torch and torch.device_count,
        "built_for": torch
        and (f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}, untested"),
        "wanted_cuda": torch and torch.cuda,
        "error": _error(facts) or "it sees no device, and gives no reason",
    }


def _error(facts: MachineFacts) -> str:
    return facts.torch.cuda_error if isinstance(facts.torch, TorchBuild) else ""


def _nvml_error(facts: MachineFacts) -> NvmlError | None:
    """Return why NVML is silent, `None` when it is not."""
    nvml = facts.graphics.nvml
    return nvml.trouble if isinstance(nvml, NvmlSilence) else None


def _find_missing_nodes(graphics: Graphics) -> list[str]:
    present = {node.path for node in graphics.nodes}
    gpu = [] if _gpu_nodes(graphics) else ["/dev/nvidia0"]
    return gpu + [path for path in _CONTROL_NODES if path not in present]


def _find_refused_nodes(graphics: Graphics) -> list[str]:
    return [node.path for node in graphics.nodes if not node.usable]


def _has_little_disk(facts: MachineFacts) -> bool:
    temporary = facts.host.temporary
    return temporary is not None and temporary.free_bytes < MIN_TEMPORARY_BYTES


def _has_small_shm(facts: MachineFacts) -> bool:
    shm = facts.host.shared_memory
    is_small = shm is not None and shm.total_bytes <= DEFAULT_CONTAINER_SHM_BYTES
    return bool(facts.host.container) and is_small


def _is_driver_absent(facts: MachineFacts) -> bool:
    is_loaded = facts.graphics.kernel_module is not None or bool(facts.graphics.nodes)
    return not is_loaded or _nvml_error(facts) is NvmlError.DRIVER_NOT_LOADED


def _is_closed(facts: MachineFacts) -> bool:
    """One GPU of several may belong to somebody else; the control nodes are needed for all."""
    if any(path in _CONTROL_NODES for path in _find_refused_nodes(facts.graphics)):
        return True
    has_gpu = any(node.usable for node in _gpu_nodes(facts.graphics))
    return not has_gpu or _nvml_error(facts) is NvmlError.NO_PERMISSION


def _is_hidden(facts: MachineFacts) -> bool:
    """CUDA stops reading CUDA_VISIBLE_DEVICES at the first entry that names no GPU."""
    visible = facts.graphics.visible_devices
    if visible is None:
        return False
    names_none = visible.partition(",")[0].strip() in ("", "-1", "NoDevFiles")
    return names_none or "No CUDA GPUs are available" in _error(facts)


def _is_driver_too_old(facts: MachineFacts) -> bool:
    """CUDA runs on every driver of its own major version or a newer one."""
    wanted = facts.torch.cuda if isinstance(facts.torch, TorchBuild) else None
    has = _driver_cuda(facts.graphics)
    if wanted and has and int(has.partition(".")[0]) < int(wanted.partition(".")[0]):
        return True
    return bool(wanted) and "driver on your system is too old" in _error(facts)


_TORCH_RULES = (
    _Rule(
        "torch_missing",
        lambda f: isinstance(f.torch, TorchMissing),
        "torch is not installed for this Python: nothing can be measured.",
        "`pip install '.[measure]'` in a checkout of ci_perf, in this environment, or run ci-perf "
        "with the Python that has your torch; or measure in containers, whose image has it: "
        "`ci-perf doctor --runner docker` looks further.",
    ),
    _Rule(
        "torch_broken",
        lambda f: isinstance(f.torch, TorchBroken),
        "torch is installed and cannot be imported: {broken}",
        "Run `python -c 'import torch'` to see the whole error; mostly a half-finished upgrade: "
        "`pip install --force-reinstall torch`.",
    ),
    _Rule(
        "cpu_works",
        lambda f: isinstance(f.torch, TorchBuild),
        "torch {torch} can be imported: CPU workloads can be measured.",
        "",
        Level.OK,
    ),
)

_PROGRAM_RULES = (
    _Rule(
        "transformers_missing",
        lambda f: f.programs.transformers is None,
        "transformers is not installed: the shipped suites cannot build their models.",
        "`pip install '.[models]'` in a checkout of ci_perf, if you measure the shipped suites.",
        Level.WARNING,
    ),
    _Rule(
        "compiler_missing",
        lambda f: not (f.programs.c_compiler and f.programs.cxx_compiler),
        "No C or no C++ compiler: torch.compile's inductor backend builds its kernels with one.",
        "Install gcc and g++ (`apt-get install g++`), or point CC and CXX to your compilers; eager "
        "workloads are not affected.",
        Level.WARNING,
    ),
)

_HOST_RULES = (
    _Rule(
        "python_too_old",
        is_python_too_old,
        "Python: expected 3.11 or newer, found {python}.",
        "Create the environment again with Python 3.11 or newer.",
    ),
    _Rule(
        "git_missing",
        lambda f: not f.programs.git,
        "git is not on PATH: a run cannot say which commit it measured.",
        "Install git (`apt-get install git`), in the container too.",
        Level.WARNING,
    ),
    _Rule(
        "little_disk",
        _has_little_disk,
        "{temporary} has {free_gib:.1f} GiB free: expected at least 2 GiB for compile caches and "
        "generated data.",
        "Free some room, or set TMPDIR to a larger disk.",
        Level.WARNING,
    ),
    _Rule(
        "small_shm",
        _has_small_shm,
        "{shm} has {shm_mib} MiB: data loader workers pass their batches through it and end with "
        '"bus error" when it is full.',
        "Start the container with `--shm-size 8g` (or `--ipc host`); in Kubernetes mount an "
        "emptyDir with `medium: Memory` there.",
        Level.WARNING,
    ),
    _Rule(
        "noisy_machine",
        lambda f: (f.host.cpu_pressure_percent or 0) > NOISY_PRESSURE_PERCENT,
        "In {pressure:g} % of the last 10 s some task waited for a core (expected at most 10 %): "
        "other programs disturb the measurement.",
        "Find them with `top`; run one CI job at a time on this machine.",
        Level.WARNING,
    ),
    _Rule(
        "cpu_quota",
        lambda f: f.host.cpu_quota is not None and f.host.cpu_quota < f.host.usable_cores,
        "A quota of {quota:g} cores on {cores}: the kernel stops the container for tens of "
        "milliseconds when it is used up.",
        "Give the container cores of its own (`--cpuset-cpus 0-3`) instead of a quota (`--cpus`, a "
        "CPU limit).",
        Level.WARNING,
    ),
)

_LOST_RULE = _Rule(
    "gpu_lost",
    lambda f: bool(_lost_gpus(f.graphics)),
    "The driver does not answer for a GPU: {lost}.",
    "Look for Xid errors in the kernel's log (`dmesg`); reset the GPU or restart the host.",
)

_WORKING_RULES = (
    _Rule(
        "cuda_works",
        lambda _: True,
        "torch ran a kernel on a GPU ({devices} visible, {built_for}): GPU workloads can be "
        "measured.",
        "",
        Level.OK,
    ),
    # Without NVML a run cannot tell a slow change from a throttled GPU.
    _Rule(
        "nvml_unavailable",
        lambda f: isinstance(f.graphics.nvml, NvmlSilence),
        "NVML cannot be asked ({nvml}): clocks and throttling stay unseen.",
        "`pip install nvidia-ml-py`; in a container, set "
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
        Level.WARNING,
    ),
)

_NO_GPU = _Rule(
    "no_gpu",
    lambda _: True,
    "This {where} shows no NVIDIA GPU: only CPU workloads can be measured.",
    "If its host has one: {give_gpus}; on a virtual machine, check that it is passed through "
    "(`lspci -d 10de:`). Otherwise measure on a GPU runner, or with `--device cpu`.",
    Level.WARNING,
)

# From the hardware up: what lies above a broken floor says nothing of its own.
_DRIVER_RULES = (
    _Rule(
        "container_without_gpus",
        lambda f: bool(f.host.container) and not f.graphics.nodes,
        "The host has an NVIDIA GPU ({gpus}) and this {container} container was started "
        "without it.",
        "To give it one, {give_gpus}. The host needs the NVIDIA Container Toolkit, and "
        "`nvidia-smi` must work there first.",
    ),
    _Rule(
        "no_driver",
        _is_driver_absent,
        "There is an NVIDIA GPU ({gpus}){nouveau} and no NVIDIA driver is loaded.",
        "Install the driver and reboot (Ubuntu: `sudo ubuntu-drivers install --gpgpu`; others: "
        "your distribution's nvidia-driver package); then `nvidia-smi` must list the GPU.",
    ),
    _Rule(
        "driver_mismatch",
        lambda f: _nvml_error(f) is NvmlError.VERSION_MISMATCH,
        "The NVIDIA libraries and the loaded kernel module ({module}) are of different "
        "versions: the driver was updated while it ran.",
        "Reboot the machine; in a container, start it again.",
    ),
    _Rule(
        "no_device_nodes",
        lambda f: bool(_find_missing_nodes(f.graphics)),
        "The NVIDIA driver is loaded and of its device files {missing} are missing.",
        "On a host, create them with `sudo nvidia-modprobe -c 0 -u`, and enable "
        "nvidia-persistenced so that they are there after a reboot. For a container, "
        "{give_gpus}.",
    ),
    _Rule(
        "no_permission",
        _is_closed,
        "This user may not open {refused}.",
        "See `ls -l /dev/nvidia*`: add the runner's user to the group that owns them (`sudo "
        "usermod -aG video USER`, then log in again); in a container also check its device rules "
        "and `--user`.",
    ),
    _Rule(
        "driver_libraries_missing",
        lambda f: _nvml_error(f) is NvmlError.LIBRARY_NOT_FOUND,
        "The NVIDIA kernel module is loaded and libnvidia-ml.so.1 is not found: the driver's "
        "libraries are missing here.",
        "On a host, install the libraries of the same driver version (Debian, Ubuntu: "
        "libnvidia-compute, libcuda1). For a container, set "
        "NVIDIA_DRIVER_CAPABILITIES=compute,utility, and start it with the NVIDIA Container "
        "Toolkit, not with `--device` alone.",
    ),
)

_CPU_ONLY = _Rule(
    "cpu_only_torch",
    lambda _: True,
    "There is an NVIDIA GPU ({gpus}) and torch {torch} is a CPU-only build.",
    "Install a CUDA build: remove torch, then follow the selector on "
    "https://pytorch.org/get-started/locally/ for {newest} or older.",
)

# The most particular cause first; the last one always applies.
_BUILD_RULES = (
    _Rule(
        "devices_hidden",
        _is_hidden,
        "CUDA_VISIBLE_DEVICES={visible!r} hides every GPU: its first entry names none of them.",
        "Unset it, or set it to a GPU that exists: `nvidia-smi -L` lists numbers and UUIDs.",
    ),
    _Rule(
        "driver_too_old",
        _is_driver_too_old,
        "torch {torch} was built for CUDA {wanted_cuda}; the driver{driver} runs at most {newest}.",
        "Update the NVIDIA driver to one for CUDA {wanted_cuda}, or install a torch that was "
        "built for {newest} or older.",
    ),
    _Rule(
        "gpu_unsupported",
        lambda f: "no kernel image" in _error(f),
        "torch {torch} holds no kernels for this GPU ({gpus}).",
        "Install another build of torch: compare `torch.cuda.get_arch_list()` with the GPU's "
        "compute capability.",
    ),
    _Rule(
        "cuda_init_error",
        lambda _: True,
        "The driver is there and torch cannot use the GPU ({gpus}): {error}",
        "Look at `nvidia-smi` and `sudo dmesg | grep -i xid`: another process may hold the GPU "
        "exclusively, its memory may be full, or it needs a reset or reboot.",
    ),
)


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


def _lost_gpus(graphics: Graphics) -> list[str]:
    gpus = graphics.nvml.gpus if isinstance(graphics.nvml, NvmlAnswer) else ()
    return [f"{gpu.name}: {gpu.trouble}" for gpu in gpus if gpu.trouble]


def _gpu_nodes(graphics: Graphics) -> list[DeviceNode]:
    """Return the nodes of GPUs (/dev/nvidia0), without the control nodes."""
    return [node for node in graphics.nodes if node.path.removeprefix("/dev/nvidia").isdigit()]


def _driver_cuda(graphics: Graphics) -> str | None:
    """Return the newest CUDA version that the driver runs, where NVML says it."""
    return graphics.nvml.cuda if isinstance(graphics.nvml, NvmlAnswer) else None
