"""Whether this host and its GPUs can be trusted, asked before we load them ourselves."""

import shutil
import tempfile
from pathlib import Path

from ci_perf.measure.validity import distrust
from ci_perf.model.container import Image
from ci_perf.model.task import GpuState, GpuStates
from ci_perf.model.validity import Reason
from ci_perf.system import host

# With more than this share of time lost to other programs before we start, times are doubtful.
BUSY = 0.20
# Memory is short when anybody waits for it at all; this is beyond a stray page.
MEMORY_BUSY = 0.05
# A worker's files and torch's caches need some room.
MIN_FREE_BYTES = 200 * 2**20
# Loader workers hand over batches there, and die when it is full. Docker gives 64 MiB.
MIN_SHARED_BYTES = 32 * 2**20
# A desktop, or a CUDA context that does nothing, fits; a program with a model does not.
FOREIGN_BYTES = 2**30
# A GPU that nobody uses shows 0; a desktop that redraws its clock shows a few per cent.
GPU_BUSY = 0.10
# The limit that the board came with, but for rounding.
POWER_LIMITED = 0.99

SHARED = Path("/dev/shm")  # noqa: S108  the place itself is meant, nothing is written there

INTERRUPTED = distrust.reason(
    "interrupted", "the run was interrupted before every process was measured"
)


def check(
    *, proc: Path = host.PROC, scratch: Path | None = None, shared: Path = SHARED
) -> tuple[Reason, ...]:
    """Return what speaks against this host; nothing when it is quiet and has room."""
    scratch = scratch or Path(tempfile.gettempdir())
    return (
        *_pressure(proc),
        *room(scratch, MIN_FREE_BYTES, _free(scratch)),
        *room(shared, MIN_SHARED_BYTES, _free(shared)),
    )


def room(folder: Path, expected: int, free: int | None) -> tuple[Reason, ...]:
    """Return a reason when fewer than `expected` bytes are free; `None` is a folder that is not."""
    if free is None or free >= expected:
        return ()
    detail = f"{folder}: expected {expected >> 20} MiB free, found {free >> 20} MiB"
    return (distrust.reason("low_disk", detail),)


def gpus(states: GpuStates) -> tuple[Reason, ...]:
    """Return what speaks against the GPUs, as gpu_preflight.py found them."""
    return tuple(reason for state in states.gpus for reason in _gpu(state))


def image(found: Image | None) -> tuple[Reason, ...]:
    """Return what speaks against the image of the container; `None` is that there is none."""
    if found is None or found.is_pinned:
        return ()
    detail = (
        f"{found.reference}: expected an image pinned by its digest, found one that may be another "
        "tomorrow"
    )
    return (distrust.reason("unpinned_image", detail),)


def _pressure(proc: Path) -> tuple[Reason, ...]:
    cpu, memory = host.cpu_pressure(proc), host.memory_pressure(proc)
    found = []
    if cpu is not None and cpu > BUSY:
        detail = f"tasks waited for a CPU {cpu:.0%} of the 10 s before the run"
        found.append(distrust.reason("host_pressure", detail))
    if memory is not None and memory > MEMORY_BUSY:
        detail = f"tasks waited for memory {memory:.0%} of the 10 s before the run"
        found.append(distrust.reason("memory_pressure", detail))
    return tuple(found)


def _free(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _gpu(state: GpuState) -> tuple[Reason, ...]:
    if state.lost:
        return (distrust.reason("gpu_lost", f"{state.uuid}: before the run: {state.lost}"),)
    found = {
        "gpu_busy": _busy(state),
        "foreign_memory": foreign_memory(state.used_bytes),
        "second_process": f"{state.processes} compute processes" if state.processes else "",
        "ecc_errors": _ecc(state),
        "mig_mode": _mig(state),
        "pcie_link": _pcie(state),
        "power_limited": _power(state),
    }
    return tuple(
        distrust.reason(code, f"{state.uuid}: before the run: {detail}")
        for code, detail in found.items()
        if detail
    )


def foreign_memory(used_bytes: int | None) -> str:
    """Say how much memory others use, when that is more than a desktop would."""
    if used_bytes is None or used_bytes <= FOREIGN_BYTES:
        return ""
    return f"expected at most {FOREIGN_BYTES >> 20} MiB in use, found {used_bytes >> 20} MiB"


def _busy(state: GpuState) -> str:
    if state.utilization is None or state.utilization <= GPU_BUSY:
        return ""
    return f"expected nobody at work, found {state.utilization:.0%} utilization"


def _ecc(state: GpuState) -> str:
    if state.ecc_errors:
        return f"{state.ecc_errors} uncorrected memory errors since the driver was loaded"
    return "memory rows wait to be replaced" if state.rows_broken else ""


def _mig(state: GpuState) -> str:
    """Say when a whole GPU is cut into instances: what it reports is the sum of them."""
    if not state.mig or state.uuid.startswith("MIG-"):
        return ""
    return "expected a whole GPU, found one with MIG enabled"


def _pcie(state: GpuState) -> str:
    """Only the width: the link goes to a lower generation when the GPU rests."""
    if state.pcie_width is None or state.pcie_max_width is None:
        return ""
    if state.pcie_width >= state.pcie_max_width:
        return ""
    return f"expected {state.pcie_max_width} PCIe lanes, found {state.pcie_width}"


def _power(state: GpuState) -> str:
    limit, default = state.power_limit_w, state.power_default_w
    if limit is None or default is None or limit >= default * POWER_LIMITED:
        return ""
    return f"expected the default limit of {default:g} W, found {limit:g} W"
