"""The facts of a machine, and the findings that doctor/ makes of them."""

from enum import Enum

from ci_perf.model.base import Bytes, Count, Name, Struct, Text
from ci_perf.model.container import EngineName


class InstalledGpu(Struct, frozen=True, kw_only=True):
    """One GPU as NVML names it; ``trouble`` is the driver's answer where it has lost it."""

    name: Text
    memory_bytes: Bytes | None
    trouble: Text = ""


class NvmlAnswer(Struct, frozen=True, tag_field="state", tag="answered", kw_only=True):
    """NVML could be asked. ``cuda`` is the newest CUDA that this driver can run ("12.4")."""

    driver: Text | None
    cuda: Text | None
    gpus: tuple[InstalledGpu, ...]


class NvmlError(Enum):
    """Why NVML did not answer."""

    NOT_INSTALLED = "not_installed"  # the Python package nvidia-ml-py
    LIBRARY_NOT_FOUND = "library_not_found"  # libnvidia-ml.so.1, a part of the driver
    DRIVER_NOT_LOADED = "driver_not_loaded"
    NO_PERMISSION = "no_permission"
    VERSION_MISMATCH = "version_mismatch"  # library and kernel module of different drivers
    OTHER = "other"


class NvmlSilence(Struct, frozen=True, tag_field="state", tag="silent", kw_only=True):
    """NVML could not be asked."""

    trouble: NvmlError
    detail: Text


Nvml = NvmlAnswer | NvmlSilence


class TorchBuild(Struct, frozen=True, tag_field="state", tag="imported", kw_only=True):
    """A torch that can be imported.

    ``cuda`` and ``hip`` are what it was built for: both ``None`` in a CPU-only build.
    ``cuda_error`` is what it said when asked to run one kernel; empty when that worked, or when
    there was nothing to ask for.
    """

    version: Text
    cuda: Text | None
    hip: Text | None
    device_count: Count
    cuda_error: Text


class TorchMissing(Struct, frozen=True, tag_field="state", tag="missing", kw_only=True):
    """No torch is installed for this Python."""


class TorchBroken(Struct, frozen=True, tag_field="state", tag="broken", kw_only=True):
    """A torch is installed, and importing it fails."""

    reason: Text


Torch = TorchBuild | TorchMissing | TorchBroken


class DeviceNode(Struct, frozen=True, kw_only=True):
    """A file such as /dev/nvidia0, and whether this user could open it."""

    path: Text
    usable: bool


class Space(Struct, frozen=True, kw_only=True):
    """Free space in a folder."""

    path: Text
    total_bytes: Bytes
    free_bytes: Bytes


class Host(Struct, frozen=True, kw_only=True):
    """The machine without its GPUs. ``None`` where the system does not say.

    ``container`` names the kind ("docker", "kubernetes"); ``cpu_quota`` is the number of cores
    that a container may use per scheduling period; ``cpu_pressure_percent`` is the share of the
    last 10 s in which some task waited for a core.
    """

    system: Text
    container: Text | None
    cpu_model: Text | None
    logical_cores: Count
    usable_cores: Count
    cpu_quota: float | None
    cpu_pressure_percent: float | None
    memory_bytes: Bytes | None
    temporary: Space | None
    shared_memory: Space | None


class Graphics(Struct, frozen=True, kw_only=True):
    """What the system shows of NVIDIA GPUs.

    ``pci`` are the addresses of GPUs on the bus (a container sees the host's too);
    ``kernel_module`` is the version line of a loaded NVIDIA driver; ``visible_devices`` is
    CUDA_VISIBLE_DEVICES, ``None`` when it is not set.
    """

    pci: tuple[Text, ...]
    kernel_module: Text | None
    nouveau: bool
    nodes: tuple[DeviceNode, ...]
    visible_devices: Text | None
    nvml: Nvml


class Programs(Struct, frozen=True, kw_only=True):
    """What is installed beside torch."""

    python: Text
    transformers: Text | None
    git: bool
    c_compiler: bool
    cxx_compiler: bool


class Level(Enum):
    """How much a finding matters, worst first: the order of declaration is the sort order."""

    PROBLEM = "problem"
    WARNING = "warning"
    OK = "ok"


class Finding(Struct, frozen=True, kw_only=True):
    """What was found, and what to do about it; ``next_step`` is empty when all is well."""

    code: Name
    level: Level
    what: Text
    next_step: Text = ""


class Containers(Struct, frozen=True, kw_only=True):
    """What came of a container from an image. ``version`` is empty where no engine answers.

    ``problem`` says why no container could be started, ``gpu_problem`` why none with GPUs.
    """

    engine: EngineName
    version: Text
    image: Text
    problem: Finding | None = None
    gpu_problem: Finding | None = None


class MachineFacts(Struct, frozen=True, kw_only=True):
    """All facts that `ci-perf doctor` judges.

    With ``containers``, ``torch`` is that of the image: missing where there is no such image.
    """

    host: Host
    graphics: Graphics
    torch: Torch
    programs: Programs
    containers: Containers | None = None


class DeepOutcome(Enum):
    """What came of a check."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


class DeepCheck(Struct, frozen=True, kw_only=True):
    """Something that a measurement relies on, tried: its figures, or why it was skipped."""

    name: Name
    outcome: DeepOutcome
    what: Text
    next_step: Text = ""


def problem(code: str, what: str, next_step: str) -> Finding:
    """Make a finding of the worst level."""
    return Finding(code=code, level=Level.PROBLEM, what=what, next_step=next_step)
