"""The rules that find reasons to distrust the machine.

Host and GPUs are looked at before we load them ourselves; the monitor's evidence shows what
happened during a process.
"""

import itertools
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ci_perf.model.container import Image
from ci_perf.model.process import Process, has_filled_gpu
from ci_perf.model.suite import Plan
from ci_perf.model.task import GpuState, GpuStates, TaskFailure
from ci_perf.model.validity import (
    Doubt,
    Evidence,
    GpuEvidence,
    HostEvidence,
    Reason,
    find_fatal,
)
from ci_perf.system import linux

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

# One process of ours leaves a CPU for itself wherever there are two. Several ranks that end a step
# together wake each other up, and wait for a CPU without anybody else's fault.
_CPU_WAIT = BUSY
_CPU_WAIT_OF_RANKS = 0.60
# A quota that takes less than this moves no median.
_QUOTA = 0.01
# Heat that held the clocks for less is the counter's own noise at the borders.
_HEAT = 0.001
# Other causes are part of how a board works, as long as they are rare.
_HELD = 0.01

_HEAT_EVENTS = ("hw_thermal_slowdown", "sw_thermal_slowdown")
_HARDWARE_EVENTS = ("hw_power_brake", "hw_slowdown")
# The power cap is normal under load, "reliability" is the highest voltage, "low utilization" is
# our own doing: all three are recorded and mean nothing here.
_HELD_BY = ("board_limit", "sync_boost")


INTERRUPTED = Doubt.INTERRUPTED.reason("the run was interrupted before every process was measured")


def distrust_host(
    *,
    proc: Path = linux.PROC,
    scratch: Path | None = None,
    shared: Path = SHARED,
    min_free_bytes: int = MIN_FREE_BYTES,
    min_shared_bytes: int = MIN_SHARED_BYTES,
) -> tuple[Reason, ...]:
    """Return what speaks against this host; nothing when it is quiet and has room."""
    scratch = scratch or Path(tempfile.gettempdir())
    return (
        *_pressure(proc),
        *distrust_space(scratch, min_free_bytes, _free(scratch)),
        *distrust_space(shared, min_shared_bytes, _free(shared)),
    )


def distrust_moved(how: str) -> Reason:
    """Return the reason for a checkout that somebody has changed meanwhile."""
    return Doubt.CHECKOUT_CHANGED.reason(f"the checkout changed while it was measured: {how}")


def distrust_base(plan: Plan, base: Path) -> Iterator[Reason]:
    """Yield a reason for each command and test if base and head lie on two file systems."""
    if Path(plan.root).stat().st_dev == base.stat().st_dev:
        return
    detail = (
        f"the head lies in {plan.root}, the base in {base}, on another file system: files may take "
        "another time there"
    )
    for workload in plan.workloads:
        if workload.collects or "command" in workload.parameters:
            yield Doubt.OTHER_FILE_SYSTEM.reason(detail, workload.id)


def distrust_space(folder: Path, expected: int, free: int | None) -> tuple[Reason, ...]:
    """Return a reason when fewer than `expected` bytes are free; `None` is a folder that is not."""
    if free is None or free >= expected:
        return ()
    detail = f"{folder}: expected {expected >> 20} MiB free, found {free >> 20} MiB"
    return (Doubt.LOW_DISK.reason(detail),)


def distrust_gpus(states: GpuStates) -> tuple[Reason, ...]:
    """Return what speaks against the GPUs, as gpu_probe.py has seen them."""
    return tuple(itertools.chain.from_iterable(map(_gpu_before, states.gpus)))


def distrust_image(image: Image | None) -> tuple[Reason, ...]:
    """Return what speaks against the image of the container; `None` is that there is none."""
    if image is None or image.is_pinned:
        return ()
    detail = (
        f"{image.reference}: expected an image pinned by its digest, found one that may be another "
        "tomorrow"
    )
    return (Doubt.UNPINNED_IMAGE.reason(detail),)


def _pressure(proc: Path) -> tuple[Reason, ...]:
    cpu, memory = linux.cpu_pressure(proc), linux.memory_pressure(proc)
    reasons = []
    if cpu is not None and cpu > BUSY:
        detail = f"tasks waited for a CPU {cpu:.0%} of the 10 s before the run"
        reasons.append(Doubt.HOST_PRESSURE.reason(detail))
    if memory is not None and memory > MEMORY_BUSY:
        detail = f"tasks waited for memory {memory:.0%} of the 10 s before the run"
        reasons.append(Doubt.MEMORY_PRESSURE.reason(detail))
    return tuple(reasons)


def _free(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return None


def _gpu_before(state: GpuState) -> tuple[Reason, ...]:
    if state.lost:
        return (Doubt.GPU_LOST.reason(f"{state.uuid}: before the run: {state.lost}"),)
    details = {
        Doubt.GPU_BUSY: _busy(state),
        Doubt.FOREIGN_MEMORY: foreign_memory(state.used_bytes),
        Doubt.SECOND_PROCESS: f"{state.processes} compute processes" if state.processes else "",
        Doubt.ECC_ERRORS: _ecc_before(state),
        Doubt.MIG_MODE: _mig(state),
        Doubt.PCIE_LINK: _pcie_before(state),
        Doubt.POWER_LIMITED: _power(state),
    }
    return tuple(
        doubt.reason(f"{state.uuid}: before the run: {detail}")
        for doubt, detail in details.items()
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
    return f"expected an idle GPU, found {state.utilization:.0%} utilization"


def _ecc_before(state: GpuState) -> str:
    if state.ecc_errors:
        return f"{state.ecc_errors} uncorrected memory errors since the driver was loaded"
    return "memory rows wait to be replaced" if state.rows_broken else ""


def _mig(state: GpuState) -> str:
    """Say when a whole GPU is cut into instances: what it reports is the sum of them."""
    if not state.mig or state.uuid.startswith("MIG-"):
        return ""
    return "expected a whole GPU, found one with MIG enabled"


def _pcie_before(state: GpuState) -> str:
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


def distrust_process(workload: str, evidence: Evidence, world_size: int) -> tuple[Reason, ...]:
    """Return what speaks against the numbers of a process of `world_size` ranks."""
    details = list(_host_during(evidence.host, world_size))
    for gpu in evidence.gpus:
        details += [
            (doubt, f"{gpu.uuid}: {detail}")
            for doubt, detail in _gpu_during(gpu, evidence, world_size)
        ]
    if evidence.gpus and evidence.trouble:
        details.append((Doubt.UNWATCHED, evidence.trouble))
    return tuple(doubt.reason(detail, workload) for doubt, detail in details)


def distrust_failure(workload: str, failure: TaskFailure, world_size: int) -> tuple[Reason, ...]:
    """Return what the machine did that ends a process. A GPU that is lost is lost for the run."""
    if failure.evidence is None:
        return ()
    reasons = distrust_process(workload, failure.evidence, world_size)
    return tuple(
        msgspec.structs.replace(each, workload="") if each.doubt is Doubt.GPU_LOST else each
        for each in find_fatal(reasons, workload, has_filled_gpu=has_filled_gpu(failure.exhausted))
    )


def find_lost_gpus(states: GpuStates) -> tuple[Reason, ...]:
    """Return that GPUs are lost, as they are seen after a process has failed."""
    return tuple(
        Doubt.GPU_LOST.reason(f"{state.uuid}: after a failed process: {state.lost}")
        for state in states.gpus
        if state.lost
    )


def report_incomplete(workload: str, process: Process) -> tuple[Reason, ...]:
    """Return why some instruments show nothing, in one reason; none when all do."""
    absent = dict(process.absent)
    if process.fingerprint.absent:
        absent["fingerprint"] = process.fingerprint.absent
    if not absent:
        return ()
    detail = "; ".join(f"{name}: {why}" for name, why in absent.items())
    return (Doubt.INCOMPLETE.reason(detail, workload),)


def report_unwatched(workload: str, why: str) -> Reason:
    """Return the reason for a process on a GPU that has no evidence at all."""
    return Doubt.UNWATCHED.reason(why, workload)


def _host_during(host: HostEvidence, world_size: int) -> Iterator[tuple[Doubt, str]]:
    limit = _CPU_WAIT if world_size == 1 else _CPU_WAIT_OF_RANKS
    if host.cpu_pressure is not None and host.cpu_pressure > limit:
        yield (
            Doubt.HOST_PRESSURE,
            f"tasks waited for a CPU {host.cpu_pressure:.0%} of the timed region",
        )
    if host.memory_pressure is not None and host.memory_pressure > MEMORY_BUSY:
        share = f"{host.memory_pressure:.0%}"
        yield Doubt.MEMORY_PRESSURE, f"tasks waited for memory {share} of the timed region"
    if host.throttled_s is not None and host.throttled_s > _QUOTA * host.wall_s:
        taken = f"{host.throttled_s:.3g} s of {host.wall_s:.3g} s"
        yield Doubt.CGROUP_THROTTLED, f"the CPU quota of the control group took {taken}"


def _gpu_during(
    gpu: GpuEvidence, evidence: Evidence, world_size: int
) -> Iterator[tuple[Doubt, str]]:
    if gpu.lost:
        yield Doubt.GPU_LOST, gpu.lost
        return
    if not gpu.readings or (gpu.violations_s is None and gpu.event_reasons is None):
        answers = "; ".join(sorted(set(gpu.absent.values()))) or "no reading"
        yield Doubt.UNWATCHED, f"nothing is known of its clocks: {answers}"
    yield from _clocks(gpu, evidence.host.wall_s)
    if detail := foreign_memory(gpu.used_before_bytes):
        yield Doubt.FOREIGN_MEMORY, f"before ours had a context: {detail}"
    if gpu.processes is not None and gpu.processes > world_size:
        yield (
            Doubt.SECOND_PROCESS,
            f"expected {world_size} compute processes, found {gpu.processes}",
        )
    if gpu.ecc_errors:
        yield Doubt.ECC_ERRORS, f"{gpu.ecc_errors} uncorrected memory errors meanwhile"
    if detail := _pcie_during(gpu):
        yield Doubt.PCIE_LINK, detail


def _clocks(gpu: GpuEvidence, wall_s: float) -> Iterator[tuple[Doubt, str]]:
    events, violations = gpu.event_reasons or (), gpu.violations_s or {}
    heat = [name for name in events if name in _HEAT_EVENTS]
    hot_s = violations.get("thermal", 0.0)
    if heat or hot_s > _HEAT * wall_s:
        causes = ", ".join(heat) or "by the counter"
        degrees = f", up to {gpu.temperature_c.high:g} °C" if gpu.temperature_c else ""
        yield Doubt.THERMAL_THROTTLING, f"{hot_s:.3g} s of {wall_s:.3g} s ({causes}){degrees}"
    # nvml.h: a board that is too hot, or is told to brake, raises "hw_slowdown", too.
    slowed = [name for name in events if name in _HARDWARE_EVENTS]
    if hardware := [name for name in slowed if name == "hw_power_brake" or not heat]:
        yield Doubt.HARDWARE_SLOWDOWN, ", ".join(hardware)
    held = {name: violations.get(name, 0.0) for name in _HELD_BY}
    if any(seconds > _HELD * wall_s for seconds in held.values()):
        figures = ", ".join(f"{name} {seconds:.3g} s" for name, seconds in held.items() if seconds)
        yield Doubt.CLOCKS_HELD, f"{figures} of {wall_s:.3g} s"


def _pcie_during(gpu: GpuEvidence) -> str:
    link = gpu.pcie
    if link is None:
        return ""
    if link.width < link.max_width:
        return f"expected {link.max_width} PCIe lanes, found {link.width}"
    if link.generation < link.max_generation:
        return f"expected PCIe generation {link.max_generation}, found {link.generation} under load"
    return ""
