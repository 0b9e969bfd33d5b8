"""Ask NVML about one GPU, found by its UUID. What the driver lacks is absent, with a reason.

Used in child processes only: a driver that has lost its GPU can hang its caller. Nothing
here raises, whatever the driver does.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

# nvmlReturn_t: "GPU is lost", and "GPU requires restart", from which only a reset leads back.
_LOST = (15, 16)

# How drivers before R535, R510 and the second version of the structure know a question, and how
# they refuse the newer one: "function not found"; a structure also by "invalid argument", "not
# supported" and "argument version mismatch". The older memory counts as used what the driver keeps.
_OLDER_FORM = {
    "CurrentClocksEventReasons": ("CurrentClocksThrottleReasons", {13}),
    "ComputeRunningProcesses_v3": ("ComputeRunningProcesses_v2", {13}),
    "MemoryInfo": ("MemoryInfo", {2, 3, 13, 25}),
}
# nvml.h: nvmlClockType_t, nvmlTemperatureSensors_t, nvmlMemoryErrorType_t and
# nvmlEccCounterType_t, nvmlMemory_v2.
_CLOCK_SM, _SENSOR_GPU, _UNCORRECTED_SINCE, _MEMORY_V2 = 1, 0, (1, 0), 0x2000028

# Larger is not a reading: drivers answer with all bits set when a sensor is silent, and with
# noise for a moment after a reset. No board comes near these bounds.
_MAX_MHZ = 100_000
_MAX_CELSIUS = 200
_MAX_WATTS = 20_000
_MAX_COUNT = 1_000_000

# nvmlPerfPolicyType_t: what held the clocks down, each with a counter of nanoseconds.
_POLICIES = {
    "power": 0,
    "thermal": 1,
    "sync_boost": 2,
    "board_limit": 3,
    "low_utilization": 4,
    "reliability": 5,
}

# nvmlClocksEventReason*: why the clocks are what they are at the moment.
_EVENT_REASONS = {
    0x1: "gpu_idle",
    0x2: "applications_clocks",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake",
    0x100: "display_clocks",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """What can be read at any moment. ``utilization`` is a share; `None` is absent."""

    utilization: float | None
    sm_clock_mhz: int | None
    temperature_c: int | None
    power_w: float | None
    used_bytes: int | None
    event_reasons: tuple[str, ...] | None
    processes: int | None
    pcie_generation: int | None
    pcie_width: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """What only grows while the driver is loaded; two of them make a difference."""

    energy_j: float | None
    violations_s: dict[str, float]
    ecc_errors: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """What does not change while we measure, as far as anybody knows.

    ``rows_broken`` is whether memory rows wait to be replaced, or could not be.
    """

    name: str | None
    uuid: str | None
    total_bytes: int | None
    mig: bool | None
    ecc: bool | None
    rows_broken: bool | None
    power_limit_w: float | None
    power_default_w: float | None
    pcie_max_generation: int | None
    pcie_max_width: int | None
    sm_clock_max_mhz: int | None


class Gpu:
    """A GPU that can be asked. ``absent`` has the reason for each answer that was none.

    ``lost`` says what the driver answered when the GPU went away; from then on nothing is asked.
    """

    def __init__(
        self,
        uuid: str,
        library: Any,  # noqa: ANN401  pynvml is untyped
        handle: Any,  # noqa: ANN401  and so is what it gives
        silent: str = "",
    ) -> None:
        """Ask `handle` through pynvml, unless `silent` says why that is of no use."""
        self.uuid = uuid
        self.absent: dict[str, str] = {}
        self.lost = ""
        self._nvml = library
        self._handle = handle
        self._silent = silent

    def readings(self) -> Readings:
        """Read what changes from moment to moment."""
        percent = self._number("utilization", 100, "UtilizationRates", read=lambda each: each.gpu)
        bits = self._ask("event_reasons", "CurrentClocksEventReasons")
        return Readings(
            utilization=None if percent is None else percent / 100,
            sm_clock_mhz=self._number("sm_clock_mhz", _MAX_MHZ, "ClockInfo", _CLOCK_SM),
            temperature_c=self._number("temperature_c", _MAX_CELSIUS, "Temperature", _SENSOR_GPU),
            power_w=self._thousandths("power_w", _MAX_WATTS, "PowerUsage"),
            used_bytes=self._memory("used_bytes")[0],
            event_reasons=None
            if bits is None
            else tuple(name for bit, name in _EVENT_REASONS.items() if bits & bit),
            # Whose they are a container is not told.
            processes=self._number("processes", _MAX_COUNT, "ComputeRunningProcesses_v3", read=len),
            pcie_generation=self._number("pcie", 100, "CurrPcieLinkGeneration"),
            pcie_width=self._number("pcie", 100, "CurrPcieLinkWidth"),
        )

    def counters(self) -> Counters:
        """Read what only grows. ECC errors are the uncorrected ones since the driver was loaded."""
        violations_ns = {
            name: self._number(
                f"violations_{name}",
                2**63,
                "ViolationStatus",
                policy,
                read=lambda each: each.violationTime,
            )
            for name, policy in _POLICIES.items()
        }
        return Counters(
            energy_j=self._thousandths("energy_j", 2**53, "TotalEnergyConsumption"),
            violations_s={name: ns / 1e9 for name, ns in violations_ns.items() if ns is not None},
            ecc_errors=self._number("ecc_errors", 2**63, "TotalEccErrors", *_UNCORRECTED_SINCE),
        )

    def facts(self) -> GpuFacts:
        """Read what stays."""
        rows = self._ask("rows_broken", "RemappedRows")
        return GpuFacts(
            name=self._ask("name", "Name", read=str),
            uuid=self._ask("uuid", "UUID", read=str),
            total_bytes=self._memory("total_bytes")[1],
            mig=self._ask("mig", "MigMode", read=lambda modes: modes[0] == 1),
            ecc=self._ask("ecc", "EccMode", read=lambda modes: modes[0] == 1),
            rows_broken=None if rows is None else bool(rows[2] or rows[3]),
            power_limit_w=self._thousandths("power_limit_w", _MAX_WATTS, "EnforcedPowerLimit"),
            power_default_w=self._thousandths(
                "power_default_w", _MAX_WATTS, "PowerManagementDefaultLimit"
            ),
            pcie_max_generation=self._number("pcie_max", 100, "MaxPcieLinkGeneration"),
            pcie_max_width=self._number("pcie_max", 100, "MaxPcieLinkWidth"),
            sm_clock_max_mhz=self._number("sm_clock_max_mhz", _MAX_MHZ, "MaxClockInfo", _CLOCK_SM),
        )

    def _ask(
        self,
        name: str,
        question: str,
        *arguments: int,
        read: Callable[[Any], Any] = lambda answer: answer,
    ) -> Any:  # noqa: ANN401  pynvml is untyped
        """Return the answer of nvmlDeviceGet`question`, or `None` and the reason in `absent`."""
        if self._silent or self.lost:
            self.absent[name] = self._silent or self.lost
            return None
        try:
            return read(self._call(question, arguments))
        except self._nvml.NVMLError as error:
            self.absent[name] = str(error)
            if error.value in _LOST:
                self.lost = str(error)
        except UnicodeDecodeError:  # of a name
            self.absent[name] = "expected UTF-8, found other bytes"
        return None

    def _call(self, question: str, arguments: Sequence[int]) -> Any:  # noqa: ANN401
        """Ask in the newest form; a driver that does not know it, in the older one."""
        try:
            return getattr(self._nvml, f"nvmlDeviceGet{question}")(self._handle, *arguments)
        except self._nvml.NVMLError as error:
            older, refusals = _OLDER_FORM.get(question, ("", set()))
            if error.value not in refusals:
                raise
            return getattr(self._nvml, f"nvmlDeviceGet{older}")(self._handle)

    def _number(
        self,
        name: str,
        most: int,
        question: str,
        *arguments: int,
        read: Callable[[Any], int] = int,
    ) -> int | None:
        """Return a number; an impossible one is absent."""
        number: int | None = self._ask(name, question, *arguments, read=read)
        if number is None or 0 <= number <= most:
            return number
        self.absent[name] = f"expected at most {most}, found {number}"
        return None

    def _thousandths(self, name: str, most: int, question: str) -> float | None:
        number = self._number(name, most * 1000, question)
        return None if number is None else number / 1000

    def _memory(self, name: str) -> tuple[int | None, int | None]:
        """Return what is used and what there is."""
        memory = self._ask(name, "MemoryInfo", _MEMORY_V2)
        if memory is None:
            return None, None
        if memory.used > memory.total:
            self.absent[name] = f"expected at most {memory.total} bytes in use, found {memory.used}"
            return None, None
        return int(memory.used), int(memory.total)


@contextlib.contextmanager
def open_gpus(uuids: Sequence[str]) -> Iterator[tuple[Gpu, ...]]:
    """Open each GPU, in this order. One that cannot be opened answers nothing and says why."""
    if not uuids:
        yield ()
        return
    try:
        import pynvml
    except ImportError as error:
        yield tuple(Gpu(uuid, None, None, f"no nvidia-ml-py: {error}") for uuid in uuids)
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        yield tuple(Gpu(uuid, pynvml, None, str(error)) for uuid in uuids)
        return
    try:
        yield tuple(_open(pynvml, uuid) for uuid in uuids)
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _open(library: Any, uuid: str) -> Gpu:  # noqa: ANN401  the module
    """Find a GPU, or a MIG instance; torch leaves out the prefix that NVML asks for."""
    bare = uuid.removeprefix("GPU-").removeprefix("MIG-")
    answer = ""
    for name in dict.fromkeys((uuid, f"GPU-{bare}", f"MIG-{bare}")):
        try:
            return Gpu(uuid, library, library.nvmlDeviceGetHandleByUUID(name))
        except library.NVMLError as error:
            answer = answer or str(error)
            if error.value in _LOST:
                gpu = Gpu(uuid, library, None, str(error))
                gpu.lost = str(error)
                return gpu
    return Gpu(uuid, library, None, f"{uuid}: {answer}")
