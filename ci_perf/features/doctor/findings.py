"""What is wrong with a machine, and what to do about it: conditions and sentences. Pure."""

import itertools
from collections.abc import Iterator

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
    problem,
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
        *_explain_import(facts.torch),
        *explain_cuda(facts),
        *_explain_programs(facts.programs),
        *explain_host(facts),
    ]


def explain_cuda(facts: MachineFacts) -> Iterator[Finding]:
    """Say that CUDA works, or why it does not: below torch, in torch, or both."""
    torch, graphics = facts.torch, facts.graphics
    lost = [f"{gpu.name}: {gpu.trouble}" for gpu in _list_gpus(graphics) if gpu.trouble]
    if lost:
        yield problem(
            "gpu_lost",
            f"The driver does not answer for a GPU: {'; '.join(lost)}.",
            "Look for Xid errors in the kernel's log (`dmesg`); reset the GPU or restart the host.",
        )
    if isinstance(torch, TorchBuild) and cuda_works(torch):
        yield from _explain_working(torch, graphics)
    elif not has_gpu(graphics):
        where = "container" if facts.host.container else "machine"
        yield _warn(
            "no_gpu",
            f"This {where} shows no NVIDIA GPU: only CPU workloads can be measured.",
            f"If its host has one: {_give_gpus(facts.host)}; on a virtual machine, check that it "
            "is passed through (`lspci -d 10de:`). Otherwise measure on a GPU runner, or with "
            "`--device cpu`.",
        )
    else:
        below = explain_driver(facts)
        yield from below
        # That torch is missing or broken is said elsewhere. What it says on top of a broken driver
        # only repeats it; but a CPU-only build could use no GPU of any kind.
        if isinstance(torch, TorchBuild) and (_is_cpu_only(torch) or not below):
            yield _explain_build(torch, graphics)


def explain_driver(facts: MachineFacts) -> list[Finding]:
    """Name the lowest thing that is broken; nothing where the GPU can be reached."""
    found = () if _list_gpus(facts.graphics) else _explain_driver(facts.host, facts.graphics)
    return [*itertools.islice(found, 1)]


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


def _explain_import(torch: Torch) -> Iterator[Finding]:
    match torch:
        case TorchMissing():
            yield problem(
                "torch_missing",
                "torch is not installed for this Python: nothing can be measured.",
                "`pip install '.[measure]'` in a checkout of ci_perf, in this environment, or run "
                "ci-perf with the Python that has your torch; or measure in containers, whose "
                "image has it: `ci-perf doctor --runner docker` looks further.",
            )
        case TorchBroken():
            yield problem(
                "torch_broken",
                f"torch is installed and cannot be imported: {torch.reason}",
                "Run `python -c 'import torch'` to see the whole error; mostly a half-finished "
                "upgrade: `pip install --force-reinstall torch`.",
            )
        case TorchBuild():
            what = f"torch {torch.version} can be imported: CPU workloads can be measured."
            yield Finding(code="cpu_works", level=Level.OK, what=what)


def _explain_programs(programs: Programs) -> Iterator[Finding]:
    if programs.transformers is None:
        yield _warn(
            "transformers_missing",
            "transformers is not installed: the shipped suites cannot build their models.",
            "`pip install '.[models]'` in a checkout of ci_perf, if you measure the shipped "
            "suites.",
        )
    if not (programs.c_compiler and programs.cxx_compiler):
        yield _warn(
            "compiler_missing",
            "No C or no C++ compiler: torch.compile's inductor backend builds its kernels with "
            "one.",
            "Install gcc and g++ (`apt-get install g++`), or point CC and CXX to your compilers; "
            "eager workloads are not affected.",
        )


def explain_host(facts: MachineFacts) -> Iterator[Finding]:
    """Look at what containers on this machine are measured with, too."""
    host, programs = facts.host, facts.programs
    if is_python_too_old(programs):
        yield problem(
            "python_too_old",
            f"Python: expected 3.11 or newer, found {programs.python}.",
            "Create the environment again with Python 3.11 or newer.",
        )
    if not programs.git:
        yield _warn(
            "git_missing",
            "git is not on PATH: a run cannot say which commit it measured.",
            "Install git (`apt-get install git`), in the container too.",
        )
    space, shm = host.temporary, host.shared_memory
    if space and (free := space.free_bytes // MIB) < MIN_TEMPORARY_MIB:
        yield _warn(
            "little_disk",
            f"{space.path} has {free} MiB free: expected at least {MIN_TEMPORARY_MIB} MiB for "
            "compile caches and generated data.",
            "Free some room, or set TMPDIR to a larger disk.",
        )
    if shm and host.container and shm.total_bytes <= DEFAULT_CONTAINER_SHM_MIB * MIB:
        yield _warn(
            "small_shm",
            f"{shm.path} has {shm.total_bytes // MIB} MiB: data loader workers pass their batches "
            'through it and end with "bus error" when it is full.',
            "Start the container with `--shm-size 8g` (or `--ipc host`); in Kubernetes mount an "
            "emptyDir with `medium: Memory` there.",
        )
    if (pressure := host.cpu_pressure_percent or 0) > NOISY_PRESSURE_PERCENT:
        # All decimals that the kernel gives: rounded further, it could read as the limit.
        yield _warn(
            "noisy_machine",
            f"In {round(pressure, 2):g} % of the last 10 s some task waited for a core (expected "
            "at most 10 %): other programs disturb the measurement.",
            "Find them with `top`; run one CI job at a time on this machine.",
        )
    if host.cpu_quota is not None and host.cpu_quota < host.usable_cores:
        yield _warn(
            "cpu_quota",
            f"The CPU quota is {host.cpu_quota:g} of {host.usable_cores} cores: the kernel stops "
            "the container for tens of milliseconds when it is used up.",
            "Give the container cores of its own (`--cpuset-cpus 0-3`) instead of a quota "
            "(`--cpus`, a CPU limit).",
        )


def _explain_working(torch: TorchBuild, graphics: Graphics) -> Iterator[Finding]:
    built_for = f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}, untested"
    yield Finding(
        code="cuda_works",
        level=Level.OK,
        what=f"torch ran a kernel on a GPU ({torch.device_count} visible, {built_for}): GPU "
        "workloads can be measured.",
    )
    # Without NVML a run cannot tell a slow change from a throttled GPU.
    if isinstance(graphics.nvml, NvmlSilence):
        yield _warn(
            "nvml_unavailable",
            f"NVML cannot be asked ({graphics.nvml.detail}): clocks and throttling stay unseen.",
            "`pip install nvidia-ml-py`; in a container, set "
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
        )


def _explain_driver(host: Host, graphics: Graphics) -> Iterator[Finding]:
    """From the hardware up: what lies above a broken floor says nothing of its own."""
    gpus, nodes = _gpu_names(graphics), graphics.nodes
    trouble = graphics.nvml.trouble if isinstance(graphics.nvml, NvmlSilence) else None
    if host.container and not nodes:
        yield problem(
            "container_without_gpus",
            f"The host has an NVIDIA GPU ({gpus}) and this {host.container} container was started "
            "without it.",
            f"To give it one, {_give_gpus(host)}. The host needs the NVIDIA Container Toolkit, and "
            "`nvidia-smi` must work there first.",
        )
    is_loaded = graphics.kernel_module is not None or bool(nodes)
    if not is_loaded or trouble is NvmlError.DRIVER_NOT_LOADED:
        nouveau = " (nouveau holds it)" if graphics.nouveau else ""
        yield problem(
            "no_driver",
            f"There is an NVIDIA GPU ({gpus}){nouveau} and no NVIDIA driver is loaded.",
            "Install the driver and reboot (Ubuntu: `sudo ubuntu-drivers install --gpgpu`; others: "
            "your distribution's nvidia-driver package); then `nvidia-smi` must list the GPU.",
        )
    if trouble is NvmlError.VERSION_MISMATCH:
        yield problem(
            "driver_mismatch",
            "The NVIDIA libraries and the loaded kernel module "
            f"({graphics.kernel_module or 'unknown'}) are of different versions: the driver was "
            "updated while it ran.",
            "Reboot the machine; in a container, start it again.",
        )
    wanted = (*([] if _gpu_nodes(graphics) else ["/dev/nvidia0"]), *_CONTROL_NODES)
    if missing := [path for path in wanted if path not in {node.path for node in nodes}]:
        yield problem(
            "no_device_nodes",
            "The NVIDIA driver is loaded and of its device files "
            f"{', '.join(missing)} are missing.",
            "On a host, create them with `sudo nvidia-modprobe -c 0 -u`, and enable "
            "nvidia-persistenced so that they are there after a reboot. For a container, "
            f"{_give_gpus(host)}.",
        )
    refused = [node.path for node in nodes if not node.usable]
    # One GPU of several may belong to somebody else; the control nodes are needed for all.
    is_open = any(node.usable for node in _gpu_nodes(graphics))
    is_closed = not is_open or not {*refused}.isdisjoint(_CONTROL_NODES)
    if is_closed or trouble is NvmlError.NO_PERMISSION:
        yield problem(
            "no_permission",
            f"This user may not open {', '.join(refused) or 'the GPU'}.",
            "See `ls -l /dev/nvidia*`: add the runner's user to the group that owns them (`sudo "
            "usermod -aG video USER`, then log in again); in a container also check its device "
            "rules and `--user`.",
        )
    if trouble is NvmlError.LIBRARY_NOT_FOUND:
        yield problem(
            "driver_libraries_missing",
            "The NVIDIA kernel module is loaded and libnvidia-ml.so.1 is not found: the driver's "
            "libraries are missing here.",
            "On a host, install the libraries of the same driver version (Debian, Ubuntu: "
            "libnvidia-compute, libcuda1). For a container, set "
            "NVIDIA_DRIVER_CAPABILITIES=compute,utility, and start it with the NVIDIA Container "
            "Toolkit, not with `--device` alone.",
        )


def _explain_build(torch: TorchBuild, graphics: Graphics) -> Finding:
    """Name the most particular cause for which this torch cannot use a GPU."""
    gpus, error, visible = _gpu_names(graphics), torch.cuda_error, graphics.visible_devices
    nvml = graphics.nvml if isinstance(graphics.nvml, NvmlAnswer) else None
    runs = nvml.cuda if nvml else None
    newest = f"CUDA {runs}" if runs else "the CUDA that nvidia-smi shows"
    if _is_cpu_only(torch):
        return problem(
            "cpu_only_torch",
            f"There is an NVIDIA GPU ({gpus}) and torch {torch.version} is a CPU-only build.",
            "Install a CUDA build: remove torch, then follow the selector on "
            f"https://pytorch.org/get-started/locally/ for {newest} or older.",
        )
    # CUDA stops reading CUDA_VISIBLE_DEVICES at the first entry that names no GPU.
    names_none = (visible or "").partition(",")[0].strip() in ("", "-1", "NoDevFiles")
    is_blind = names_none or "No CUDA GPUs are available" in error
    if visible is not None and is_blind:
        return problem(
            "devices_hidden",
            f"CUDA_VISIBLE_DEVICES={visible!r} hides every GPU: its first entry names none of "
            "them.",
            "Unset it, or set it to a GPU that exists: `nvidia-smi -L` lists numbers and UUIDs.",
        )
    # CUDA runs on every driver of its own major version or a newer one.
    majors = [int(version.partition(".")[0]) for version in (runs, torch.cuda) if version]
    is_older = len(majors) == 2 and majors[0] < majors[1]
    if torch.cuda and (is_older or "driver on your system is too old" in error):
        driver = f" {nvml.driver}" if nvml and nvml.driver else ""
        return problem(
            "driver_too_old",
            f"torch {torch.version} was built for CUDA {torch.cuda}; the driver{driver} runs at "
            f"most {newest}.",
            f"Update the NVIDIA driver to one for CUDA {torch.cuda}, or install a torch that was "
            f"built for {newest} or older.",
        )
    if "no kernel image" in error:
        return problem(
            "gpu_unsupported",
            f"torch {torch.version} holds no kernels for this GPU ({gpus}).",
            "Install another build of torch: compare `torch.cuda.get_arch_list()` with the GPU's "
            "compute capability.",
        )
    return problem(
        "cuda_init_error",
        f"The driver is there and torch cannot use the GPU ({gpus}): "
        f"{error or 'it sees no device, and gives no reason'}",
        "Look at `nvidia-smi` and `sudo dmesg | grep -i xid`: another process may hold the GPU "
        "exclusively, its memory may be full, or it needs a reset or reboot.",
    )


def _warn(code: str, what: str, next_step: str) -> Finding:
    return Finding(code=code, level=Level.WARNING, what=what, next_step=next_step)


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
