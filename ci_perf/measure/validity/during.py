"""What the monitor saw, judged: reasons to distrust the numbers of one process. Pure."""

from collections.abc import Iterator

from ci_perf.measure.validity import distrust, preflight
from ci_perf.model.process import Process
from ci_perf.model.validity import Evidence, GpuEvidence, HostEvidence, Reason

# One process of ours leaves a CPU for itself wherever there are two. Several ranks that end a step
# together wake each other up, and wait for a CPU without anybody else's fault.
_CPU_WAIT = preflight.BUSY
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


def reasons(workload: str, evidence: Evidence, world_size: int) -> tuple[Reason, ...]:
    """Return what speaks against the numbers of a process of `world_size` ranks."""
    found = list(_host(evidence.host, world_size))
    for gpu in evidence.gpus:
        found += [
            (code, f"{gpu.uuid}: {detail}") for code, detail in _gpu(gpu, evidence, world_size)
        ]
    if evidence.gpus and evidence.trouble:
        found.append(("unwatched", evidence.trouble))
    return tuple(distrust.reason(code, detail, workload) for code, detail in found)


def incomplete(workload: str, process: Process) -> tuple[Reason, ...]:
    """Return why some instruments show nothing, in one reason; none when all do."""
    absent = dict(process.absent)
    if process.fingerprint.absent:
        absent["fingerprint"] = process.fingerprint.absent
    if not absent:
        return ()
    detail = "; ".join(f"{name}: {why}" for name, why in absent.items())
    return (distrust.reason("incomplete", detail, workload),)


def unwatched(workload: str, why: str) -> Reason:
    """Return the reason for a process on a GPU that has no evidence at all."""
    return distrust.reason("unwatched", why, workload)


def _host(host: HostEvidence, world_size: int) -> Iterator[tuple[str, str]]:
    limit = _CPU_WAIT if world_size == 1 else _CPU_WAIT_OF_RANKS
    if host.cpu_pressure is not None and host.cpu_pressure > limit:
        yield "host_pressure", f"tasks waited for a CPU {host.cpu_pressure:.0%} of the timed region"
    if host.memory_pressure is not None and host.memory_pressure > preflight.MEMORY_BUSY:
        share = f"{host.memory_pressure:.0%}"
        yield "memory_pressure", f"tasks waited for memory {share} of the timed region"
    if host.throttled_s is not None and host.throttled_s > _QUOTA * host.wall_s:
        taken = f"{host.throttled_s:.3g} s of {host.wall_s:.3g} s"
        yield "cgroup_throttled", f"the CPU quota of the control group took {taken}"


def _gpu(gpu: GpuEvidence, evidence: Evidence, world_size: int) -> Iterator[tuple[str, str]]:
    if gpu.lost:
        yield "gpu_lost", gpu.lost
        return
    if not gpu.readings or (gpu.violations_s is None and gpu.event_reasons is None):
        answers = "; ".join(sorted(set(gpu.absent.values()))) or "no reading"
        yield "unwatched", f"nothing is known of its clocks: {answers}"
    yield from _clocks(gpu, evidence.host.wall_s)
    if detail := preflight.foreign_memory(gpu.used_before_bytes):
        yield "foreign_memory", f"before ours had a context: {detail}"
    if gpu.processes is not None and gpu.processes > world_size:
        yield "second_process", f"expected {world_size} compute processes, found {gpu.processes}"
    if gpu.ecc_errors:
        yield "ecc_errors", f"{gpu.ecc_errors} uncorrected memory errors meanwhile"
    if detail := _pcie(gpu):
        yield "pcie_link", detail


def _clocks(gpu: GpuEvidence, wall_s: float) -> Iterator[tuple[str, str]]:
    events, violations = gpu.event_reasons or (), gpu.violations_s or {}
    heat = [name for name in events if name in _HEAT_EVENTS]
    hot_s = violations.get("thermal", 0.0)
    if heat or hot_s > _HEAT * wall_s:
        causes = ", ".join(heat) or "by the counter"
        degrees = f", up to {gpu.temperature_c.high:g} °C" if gpu.temperature_c else ""
        yield "thermal_throttling", f"{hot_s:.3g} s of {wall_s:.3g} s ({causes}){degrees}"
    if hardware := [name for name in events if name in _HARDWARE_EVENTS]:
        yield "hardware_slowdown", ", ".join(hardware)
    held = {name: violations.get(name, 0.0) for name in _HELD_BY}
    if any(seconds > _HELD * wall_s for seconds in held.values()):
        figures = ", ".join(f"{name} {seconds:.3g} s" for name, seconds in held.items() if seconds)
        yield "clocks_held", f"{figures} of {wall_s:.3g} s"


def _pcie(gpu: GpuEvidence) -> str:
    link = gpu.pcie
    if link is None:
        return ""
    if link.width < link.max_width:
        return f"expected {link.max_width} PCIe lanes, found {link.width}"
    if link.generation < link.max_generation:
        return f"expected PCIe generation {link.max_generation}, found {link.generation} under load"
    return ""
