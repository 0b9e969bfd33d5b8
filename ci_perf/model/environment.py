"""What a machine is, in three tiers: hard (another machine), soft (a possible cause), noted."""

from ci_perf.model.base import Bytes, Count, Struct, Text
from ci_perf.model.container import Image


class CpuMachine(Struct, tag_field="device", tag="cpu", frozen=True, kw_only=True):
    """The hard tier of a run on the CPU: any difference makes two runs incomparable."""

    cpu_model: Text
    logical_cores: Count


class GpuMachine(Struct, tag_field="device", tag="cuda", frozen=True, kw_only=True):
    """The hard tier of a run on GPUs: any difference makes two runs incomparable."""

    gpu_model: Text
    gpu_count: Count
    gpu_memory_bytes: Bytes
    mig: bool


Machine = CpuMachine | GpuMachine


class Software(Struct, frozen=True, kw_only=True):
    """The soft tier: comparable, and named in the report's first lines when it differs.

    ``None`` says that the machine does not have the thing (no CUDA in a CPU build of torch).
    """

    python: Text
    torch: Text
    transformers: Text | None
    cuda: Text | None
    cudnn: Text | None
    driver: Text | None
    image: Text | None
    cpu_model: Text
    threads: Count
    kernel: Text


class Noted(Struct, frozen=True, kw_only=True):
    """The third tier: never compared, kept for whoever has to understand a number later."""

    host_hash: Text
    memory_total_bytes: Bytes
    load_average: float
    allocator: Text


class Environment(Struct, frozen=True, kw_only=True):
    """The machine, the software on it, what was noted, and the image of the container, if any."""

    hard: Machine
    soft: Software
    noted: Noted
    image: Image | None = None
