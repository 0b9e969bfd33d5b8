"""What a machine is, in three tiers: hard (another machine), soft (a possible cause), noted."""

import msgspec

from ci_perf.model.base import Bytes, Count, NameOrEmpty, Struct, Text
from ci_perf.model.container import Image
from ci_perf.model.program import DigestOrEmpty


class CpuMachine(
    Struct, tag_field="device", tag="cpu", frozen=True, kw_only=True, omit_defaults=True
):
    """The hard tier of a run on the CPU: any difference makes two runs incomparable.

    ``gpus`` are the models that the commands of a suite may use ("NVIDIA H200 x2").
    """

    cpu_model: Text
    logical_cores: Count
    gpus: Text = ""


class GpuMachine(Struct, tag_field="device", tag="cuda", frozen=True, kw_only=True):
    """The hard tier of a run on GPUs: a difference makes two runs incomparable.

    ``gpu_memory_bytes`` is recorded exactly and compared by `is_same`.
    """

    gpu_model: Text
    gpu_count: Count
    gpu_memory_bytes: Bytes
    mig: bool


Machine = CpuMachine | GpuMachine

# Boards of one model differ by some MiB, which drivers and firmware keep for themselves. Another
# amount of memory, or ECC on GDDR memory (1/16), makes a larger difference than this share.
_SAME_MEMORY = 0.02


def is_same(first: Machine, second: Machine) -> bool:
    """Whether two runs on these machines may be compared."""
    return first == with_memory_of(first, second)


def with_memory_of(first: Machine, second: Machine) -> Machine:
    """Return `second`; with the memory of `first`, where these differ by at most 2 %."""
    if not (isinstance(first, GpuMachine) and isinstance(second, GpuMachine)):
        return second
    smaller, larger = sorted((first.gpu_memory_bytes, second.gpu_memory_bytes))
    if larger - smaller > _SAME_MEMORY * larger:
        return second
    return msgspec.structs.replace(second, gpu_memory_bytes=first.gpu_memory_bytes)


class Software(Struct, frozen=True, kw_only=True):
    """The soft tier: comparable, and named in the report's first lines when it differs.

    ``None`` says that the machine does not have the thing (no CUDA in a CPU build of torch).
    ``packages`` is the digest of all installed packages with their files; empty in older records.
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
    packages: DigestOrEmpty = ""


class Noted(Struct, frozen=True, kw_only=True):
    """The third tier: never compared, kept for whoever has to understand a number later."""

    host_hash: NameOrEmpty
    memory_total_bytes: Bytes
    load_average: float
    allocator: Text


class Environment(Struct, frozen=True, kw_only=True):
    """The machine, the software on it, what was noted, and the image of the container, if any."""

    hard: Machine
    soft: Software
    noted: Noted
    image: Image | None = None
