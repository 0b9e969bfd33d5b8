"""Exact evidence of the device: what one step makes a GPU do, as torch's profiler records it."""

import gc
import hashlib
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ci_perf.measuring.device import Device
from ci_perf.measuring.generated_kernels import list_compiled
from ci_perf.model.process import Copies, DeviceWork, KernelCount

_STEP = "ci_perf: one step"
# Calls of the runtime and the driver that return when the device has done its work.
_WAITS = frozenset(
    {
        *("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize"),
        *("cuStreamSynchronize", "cuCtxSynchronize", "cuEventSynchronize"),
    }
)
_REPLAYS = frozenset({"cudaGraphLaunch", "cuGraphLaunch"})
_CALLS = frozenset({"cuda_runtime", "cuda_driver"})
# A step of 100,000 kernels has a trace of this size.
_MOST_BYTES = 200 * 2**20
# What a run file keeps; the digest is of all.
_MOST_KERNELS = 500
_NAME_CHARS = 200
_DIGEST_CHARS = 16


def record_device_work(step: Callable[[], object], device: Device) -> DeviceWork | None:
    """Run one step under torch's profiler, and count what the GPU does; `None` without a GPU.

    Nothing of it is timed. Raises what the step raises.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    activities = torch.profiler.ProfilerActivity
    device.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trace.json"
        with torch.profiler.profile(activities=[activities.CPU, activities.CUDA]) as profiler:
            with torch.profiler.record_function(_STEP):
                step()
            device.synchronize()
        profiler.export_chrome_trace(str(file))
        if file.stat().st_size > _MOST_BYTES:
            return DeviceWork(absent=f"the trace of a step is larger than {_MOST_BYTES >> 20} MiB")
        events = json.loads(file.read_text(encoding="utf-8", errors="replace"))["traceEvents"]
    return count_events(events, spills=_count_spills())


def count_events(events: Iterable[Mapping[str, Any]], spills: int | None = None) -> DeviceWork:
    """Count the work of a step in the events of a trace in Chrome's format.

    Calls count within the step, so that the waits of the profiler do not; what the device does
    belongs to a call by its correlation id.
    """
    complete = [event for event in events if event.get("ph") == "X"]
    marks = (each for each in complete if each.get("cat") == "user_annotation")
    step = next((each for each in marks if each["name"] == _STEP), None)
    begin, end = (step["ts"], step["ts"] + step["dur"]) if step else (-1e300, 1e300)
    calls = [
        event for event in complete if event.get("cat") in _CALLS and begin <= event["ts"] <= end
    ]
    kernels = sorted((event for event in complete if event.get("cat") == "kernel"), key=_order)
    if not kernels:
        return DeviceWork(absent="the profiler saw no kernel of the GPU (is CUPTI refused?)")
    names = Counter(call["name"] for call in calls)
    signatures = [_signature(kernel) for kernel in kernels]
    return DeviceWork(
        kernels=_count_kernels(signatures),
        launched=len(signatures),
        sequence=_digest(signatures),
        host_waits=sum(count for name, count in names.items() if name in _WAITS),
        graph_replays=sum(count for name, count in names.items() if name in _REPLAYS),
        copies=_add_copies(event for event in complete if event.get("cat") == "gpu_memcpy"),
        spills=spills,
    )


def _order(event: Mapping[str, Any]) -> tuple[int, float]:
    """Sort kernels as they were launched; those of one graph as the device ran them."""
    return event["args"].get("correlation", 0), event["ts"]


_Signature = tuple[str, tuple[int, ...], tuple[int, ...], int, int]


def _signature(event: Mapping[str, Any]) -> _Signature:
    """Return the name of a kernel, its grid, block, bytes of shared memory, and its stream."""
    args = event["args"]
    grid, block = tuple(args.get("grid", ())), tuple(args.get("block", ()))
    return event["name"], grid, block, args.get("shared memory", 0), args.get("stream", 0)


def _count_kernels(signatures: Sequence[_Signature]) -> tuple[KernelCount, ...]:
    counts = Counter(signature[:4] for signature in signatures)
    return tuple(
        KernelCount(name=name[:_NAME_CHARS], grid=grid, block=block, shared_bytes=shared, count=n)
        for (name, grid, block, shared), n in counts.most_common(_MOST_KERNELS)
    )


def _digest(signatures: Sequence[_Signature]) -> str:
    """Digest the sequence; streams by the order in which they come, for their ids differ."""
    streams: dict[int, int] = {}
    lines = [
        f"{name} {grid} {block} {shared} {streams.setdefault(stream, len(streams))}"
        for name, grid, block, shared, stream in signatures
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:_DIGEST_CHARS]


def _add_copies(events: Iterable[Mapping[str, Any]]) -> dict[str, Copies]:
    """Add copies by direction: "Memcpy HtoD (Pageable -> Device)" is "HtoD"."""
    added: dict[str, Copies] = {}
    for event in events:
        direction = event["name"].removeprefix("Memcpy ").partition(" ")[0]
        before = added.get(direction, Copies(count=0, bytes=0))
        size = before.bytes + int(event["args"].get("bytes", 0))
        added[direction] = Copies(count=before.count + 1, bytes=size)
    return added


def _count_spills() -> int | None:
    """Add the spilled registers of all kernels that Triton has compiled; `None` without any."""
    compiled = list_compiled(gc.get_objects())
    return sum(spills for _, spills in compiled.values()) if compiled else None
