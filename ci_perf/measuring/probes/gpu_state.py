"""Whether NVML tells of the GPU that torch computes on, in the units that are read."""

import contextlib
import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from ci_perf.measuring import environment_probe
from ci_perf.measuring.monitor.nvml import Gpu, GpuFacts, Readings
from ci_perf.measuring.probes import Bench, CannotTryError
from ci_perf.measuring.probes.steps import product, warm
from ci_perf.model.environment import GpuMachine
from ci_perf.model.metrics import Unit
from ci_perf.model.proof import Figure

_LOAD_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    """What NVML said while the GPU was busy. ``energy_j`` is `None` where nothing counts it."""

    readings: tuple[Readings, ...]
    seconds: float
    energy_j: float | None


def machine(bench: Bench) -> GpuMachine:
    """Describe the GPU as a machine of one. Raises CannotTryError."""
    gpu = bench.torch.cuda.get_device_properties(bench.name)
    return GpuMachine(
        gpu_model=gpu.name,
        gpu_count=1,
        gpu_memory_bytes=gpu.total_memory,
        mig=_identity(bench)[0],
    )


@contextlib.contextmanager
def opened(bench: Bench) -> Iterator[Gpu]:
    """Open in NVML the GPU that torch computes on. Raises CannotTryError where NVML is silent."""
    with bench.gpus([_identity(bench)[1]]) as (gpu,):
        if gpu.facts().uuid is None:
            raise CannotTryError(f"NVML does not tell of this GPU: {gpu.absent['uuid']}")
        yield gpu


def nvml(bench: Bench) -> Iterator[Figure | str]:
    """Compare what torch and NVML say of the GPU, and NVML's power with its energy, under load."""
    of_torch = bench.torch.cuda.get_device_properties(bench.name)
    is_instance, uuid = _identity(bench)
    with opened(bench) as gpu:
        facts = gpu.facts()
        load = _loaded(bench, gpu)
        absent = dict(gpu.absent)
    yield _agrees("uuid", _bare(facts.uuid) == _bare(uuid))
    yield _agrees("name", facts.name == of_torch.name)
    yield _agrees("mig", is_instance == ("MIG" in of_torch.name))
    yield Figure(name="devices", value=bench.torch.cuda.device_count(), unit=Unit.COUNT)
    if facts.total_bytes is not None:
        yield Figure(name="memory_over_torch", value=facts.total_bytes / of_torch.total_memory)
    yield from _power(facts, load)
    yield from _clock(facts, load)
    yield Figure(name="absent", value=len(absent), unit=Unit.COUNT)
    yield from _sentences(load, absent)


def _identity(bench: Bench) -> tuple[bool, str]:
    """Return whether it is a MIG instance, and its UUID. Raises CannotTryError."""
    gpu = bench.torch.cuda.get_device_properties(bench.name)
    uuid = getattr(gpu, "uuid", None)
    if not uuid:
        raise CannotTryError("this torch does not tell the UUID of a GPU; take 2.5 or newer")
    return environment_probe.identify_gpu(str(uuid), gpu.name)


def _bare(uuid: str | None) -> str:
    return (uuid or "").removeprefix("GPU-").removeprefix("MIG-")


def _agrees(what: str, agrees: bool) -> Figure:  # noqa: FBT001  it is the figure itself
    return Figure(name=f"{what}_agrees", value=float(agrees))


def _loaded(bench: Bench, gpu: Gpu) -> _Load:
    """Read a busy GPU for a while. Its power is a mean over the last second, so it is busy before.

    The energy counter is read at both ends, right after a block.
    """
    step = product(bench)
    count = warm(bench, step, _LOAD_S)
    readings = []
    begin, start = gpu.counters().energy_j, bench.clock()
    while bench.clock() - start < _LOAD_S * 1e9:
        bench.device.time_block(step, count)
        readings.append(gpu.readings())
    end, seconds = gpu.counters().energy_j, (bench.clock() - start) / 1e9
    energy_j = None if begin is None or end is None else end - begin
    return _Load(readings=tuple(readings), seconds=seconds, energy_j=energy_j)


def _power(facts: GpuFacts, load: _Load) -> Iterator[Figure]:
    watts = [now.power_w for now in load.readings if now.power_w]
    if not watts:
        return
    power_w = statistics.fmean(watts)
    yield Figure(name="power", value=power_w, unit=Unit.WATT)
    if facts.power_limit_w:
        yield Figure(name="power_over_limit", value=power_w / facts.power_limit_w)
    if load.energy_j is not None:
        yield Figure(name="energy_over_power", value=load.energy_j / load.seconds / power_w)


def _clock(facts: GpuFacts, load: _Load) -> Iterator[Figure]:
    clocks = [now.sm_clock_mhz for now in load.readings if now.sm_clock_mhz]
    if not clocks:
        return
    clock_mhz = statistics.fmean(clocks)
    yield Figure(name="sm_clock", value=clock_mhz, unit=Unit.MEGAHERTZ)
    if facts.sm_clock_max_mhz:
        yield Figure(name="clock_over_max", value=clock_mhz / facts.sm_clock_max_mhz)


def _sentences(load: _Load, absent: dict[str, str]) -> Iterator[str]:
    held = sorted({reason for now in load.readings for reason in now.event_reasons or ()})
    if held:
        yield f"under load the clocks were held by {', '.join(held)}"
    if absent:
        yield f"the driver does not tell {', '.join(sorted(absent))}"
