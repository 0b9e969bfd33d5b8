"""Whether the GPU's memory is what torch's allocator says, also when there is none left."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from ci_perf.measuring.probes import Bench, CannotTryError, elsewhere
from ci_perf.measuring.probes.steps import median_s, product, warm
from ci_perf.measuring.profiling.memory_snapshot import MOST_ENTRIES, write
from ci_perf.model.metrics import Unit
from ci_perf.model.process import DeviceMemory
from ci_perf.model.proof import Figure

_MIB = 2**20
# Too large for the allocator's small blocks, so that it asks CUDA for each.
_KNOWN = (64 * _MIB, 32 * _MIB)
_PIECE = 2**30
_ASYNC = "backend:cudaMallocAsync"


def allocator(bench: Bench) -> Iterator[Figure | str]:
    """Hold allocations of known size against the peaks, and ask another allocator for its own."""
    before, after = _known_allocations(bench)
    known = sum(_KNOWN)
    for name in ("allocated", "active", "reserved"):
        field = f"peak_{name}_bytes"
        rise = _count(after, field) - _count(before, field)
        yield Figure(name=name, value=rise / known)
    yield Figure(name="retries", value=_count(after, "alloc_retries"), unit=Unit.COUNT)
    yield Figure(name="out_of_memory", value=_count(after, "out_of_memory"), unit=Unit.COUNT)
    yield from _async_zeros(bench)


def async_peaks(bench: Bench) -> Iterator[Figure]:
    """Count the peaks that are 0 after allocations, in a process with the other allocator."""
    backend = bench.torch.cuda.get_allocator_backend()
    if backend != "cudaMallocAsync":
        raise CannotTryError(f"{_ASYNC} was asked for, and torch uses {backend}")
    _, after = _known_allocations(bench)
    peaks = (after.peak_allocated_bytes, after.peak_reserved_bytes, after.peak_active_bytes)
    yield Figure(name="async_zeros", value=peaks.count(0), unit=Unit.COUNT)
    yield Figure(name="async_absent", value=peaks.count(None), unit=Unit.COUNT)


def _known_allocations(bench: Bench) -> tuple[DeviceMemory, DeviceMemory]:
    """Return what the device says before and after allocations that live at once."""
    bench.torch.cuda.empty_cache()
    bench.device.reset_peaks()
    (before,) = bench.device.memory()
    tensors = [_empty(bench, size) for size in _KNOWN]
    del tensors
    (after,) = bench.device.memory()
    return before, after


def _empty(bench: Bench, size: int) -> object:
    return bench.torch.empty(size, dtype=bench.torch.uint8, device=bench.name)


def _count(memory: DeviceMemory, field: str) -> int:
    """Return a count. Raises CannotTryError where the allocator does not keep it."""
    value: int | None = getattr(memory, field)
    if value is None:
        raise CannotTryError(f"the allocator does not count {field}: it is not torch's own")
    return value


def _async_zeros(bench: Bench) -> Iterator[Figure | str]:
    """Ask a further process: which allocator there is, is settled when torch is imported."""
    answer = elsewhere.probed(
        bench, "async_peaks", PYTORCH_CUDA_ALLOC_CONF=_ASYNC, PYTORCH_ALLOC_CONF=_ASYNC
    )
    yield from answer.figures
    if answer.not_tried:
        yield f"the other allocator was not asked: {answer.not_tried}"


def out_of_memory(bench: Bench) -> Iterator[Figure]:
    """Take all memory, and run steps of before again."""
    cuda = bench.torch.cuda
    step = product(bench)
    count = warm(bench, step)
    before_s = median_s(bench, step, count)
    bench.device.reset_peaks()
    allocated, (free, _) = cuda.memory_allocated(bench.name), cuda.mem_get_info(bench.name)
    yield Figure(name="raised", value=_exhausted(bench), unit=Unit.COUNT)
    (memory,) = bench.device.memory()
    yield Figure(name="counted", value=_count(memory, "out_of_memory"), unit=Unit.COUNT)
    cuda.empty_cache()
    left = cuda.memory_allocated(bench.name) - allocated
    yield Figure(name="left", value=left, unit=Unit.BYTE)
    yield Figure(name="free_over_before", value=cuda.mem_get_info(bench.name)[0] / free)
    yield Figure(name="after_over_before", value=median_s(bench, step, count) / before_s)


def _exhausted(bench: Bench) -> int:
    """Allocate until torch refuses, and let go of it; return how often it did: once."""
    cuda = bench.torch.cuda
    pieces = cuda.mem_get_info(bench.name)[1] // _PIECE + 1
    kept = []
    try:
        for _ in range(pieces):
            kept.append(_empty(bench, _PIECE))  # noqa: PERF401  it is to raise midway
    except cuda.OutOfMemoryError:
        return 1
    return 0


def memory_snapshot(bench: Bench) -> Iterator[Figure]:
    """Record an allocation of known size, and look for it in the snapshot that is written."""
    memory = bench.torch.cuda.memory
    memory._record_memory_history(  # noqa: SLF001  torch has no public name for it
        "all", context="alloc", stacks="python", max_entries=MOST_ENTRIES
    )
    try:
        _empty(bench, _KNOWN[0])
        seen = memory._snapshot()  # noqa: SLF001
    finally:
        memory._record_memory_history(None)  # noqa: SLF001
    entries = [entry for device in seen["device_traces"] for entry in device]
    known = [entry for entry in entries if entry["size"] == _KNOWN[0]]
    yield Figure(name="entries", value=len(entries), unit=Unit.COUNT)
    allocations = sum(entry["action"] == "alloc" for entry in known)
    yield Figure(name="known_allocations", value=allocations, unit=Unit.COUNT)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "snapshot.pickle"
        why = write(seen, target, folder)
        if why:
            raise CannotTryError(why)
        yield Figure(name="snapshot", value=target.stat().st_size, unit=Unit.BYTE)
