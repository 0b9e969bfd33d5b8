"""Ask NVML about one GPU, found by its UUID. What the driver lacks is absent, with a reason.

Used in child processes only: a driver that has lost its GPU can hang its caller. Nothing
here raises, whatever the driver does.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")

# nvmlReturn_t: "GPU is lost", and "GPU requires restart", from which only a reset leads back.
_LOST = (15, 16)

# "invalid argument", "not supported", "function not found", "argument version mismatch".
_UNKNOWN_FORM = (2, 3, 13, 25)

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
        utilization = self._number("utilization", 100, _utilization)
        return Readings(
            utilization=None if utilization is None else utilization / 100,
            sm_clock_mhz=self._number(
                "sm_clock_mhz", _MAX_MHZ, lambda n, h: n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM)
            ),
            temperature_c=self._number(
                "temperature_c",
                _MAX_CELSIUS,
                lambda n, h: n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU),
            ),
            power_w=self._thousandths(
                "power_w", _MAX_WATTS, lambda n, h: n.nvmlDeviceGetPowerUsage(h)
            ),
            used_bytes=self._memory("used_bytes")[0],
            event_reasons=self._event_reasons(),
            processes=self._number("processes", _MAX_COUNT, _processes),
            pcie_generation=self._number(
                "pcie", 100, lambda n, h: n.nvmlDeviceGetCurrPcieLinkGeneration(h)
            ),
            pcie_width=self._number("pcie", 100, lambda n, h: n.nvmlDeviceGetCurrPcieLinkWidth(h)),
        )

    def counters(self) -> Counters:
        """Read what only grows."""
        violations = {name: self._violation(name, policy) for name, policy in _POLICIES.items()}
        return Counters(
            energy_j=self._thousandths(
                "energy_j", 2**53, lambda n, h: n.nvmlDeviceGetTotalEnergyConsumption(h)
            ),
            violations_s={name: s for name, s in violations.items() if s is not None},
            ecc_errors=self._number("ecc_errors", 2**63, _ecc_errors),
        )

    def facts(self) -> GpuFacts:
        """Read what stays."""
        rows = self._ask("rows_broken", lambda n, h: n.nvmlDeviceGetRemappedRows(h))
        return GpuFacts(
            name=self._ask("name", lambda n, h: str(n.nvmlDeviceGetName(h))),
            uuid=self._ask("uuid", lambda n, h: str(n.nvmlDeviceGetUUID(h))),
            total_bytes=self._memory("total_bytes")[1],
            mig=self._ask("mig", lambda n, h: n.nvmlDeviceGetMigMode(h)[0] == 1),
            ecc=self._ask("ecc", lambda n, h: n.nvmlDeviceGetEccMode(h)[0] == 1),
            rows_broken=None if rows is None else bool(rows[2] or rows[3]),
            power_limit_w=self._thousandths(
                "power_limit_w", _MAX_WATTS, lambda n, h: n.nvmlDeviceGetEnforcedPowerLimit(h)
            ),
            power_default_w=self._thousandths(
                "power_default_w",
                _MAX_WATTS,
                lambda n, h: n.nvmlDeviceGetPowerManagementDefaultLimit(h),
            ),
            pcie_max_generation=self._number(
                "pcie_max", 100, lambda n, h: n.nvmlDeviceGetMaxPcieLinkGeneration(h)
            ),
            pcie_max_width=self._number(
                "pcie_max", 100, lambda n, h: n.nvmlDeviceGetMaxPcieLinkWidth(h)
            ),
            sm_clock_max_mhz=self._number(
                "sm_clock_max_mhz",
                _MAX_MHZ,
                lambda n, h: n.nvmlDeviceGetMaxClockInfo(h, n.NVML_CLOCK_SM),
            ),
        )

    def _ask(self, name: str, question: Callable[[Any, Any], T]) -> T | None:
        """Return the driver's answer, or `None` and the reason in `absent`."""
        if self._silent or self.lost:
            self.absent[name] = self._silent or self.lost
            return None
        try:
            return question(self._nvml, self._handle)
        except self._nvml.NVMLError as error:
            self.absent[name] = str(error)
            if error.value in _LOST:
                self.lost = str(error)
        except UnicodeDecodeError:  # of a name
            self.absent[name] = "expected UTF-8, found other bytes"
        return None

    def _number(self, name: str, most: int, question: Callable[[Any, Any], int]) -> int | None:
        """Return a number; an impossible one is absent."""
        number = self._ask(name, question)
        if number is None or 0 <= number <= most:
            return number
        self.absent[name] = f"expected at most {most}, found {number}"
        return None

    def _thousandths(
        self, name: str, most: int, question: Callable[[Any, Any], int]
    ) -> float | None:
        number = self._number(name, most * 1000, question)
        return None if number is None else number / 1000

    def _violation(self, name: str, policy: int) -> float | None:
        held_ns = self._number(
            f"violations_{name}",
            2**63,
            lambda n, h: n.nvmlDeviceGetViolationStatus(h, policy).violationTime,
        )
        return None if held_ns is None else held_ns / 1e9

    def _memory(self, name: str) -> tuple[int | None, int | None]:
        """Return what is used and what there is."""
        memory = self._ask(name, _memory_info)
        if memory is None:
            return None, None
        if memory.used > memory.total:
            self.absent[name] = f"expected at most {memory.total} bytes in use, found {memory.used}"
            return None, None
        return int(memory.used), int(memory.total)

    def _event_reasons(self) -> tuple[str, ...] | None:
        """Name the reasons of the moment; drivers before R535 know the question by another name."""
        bits = self._ask(
            "event_reasons", lambda n, h: _either(n, _EVENTS_NOW, _EVENTS_BEFORE_R535)(h)
        )
        if bits is None:
            return None
        return tuple(name for bit, name in _EVENT_REASONS.items() if bits & bit)


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


_EVENTS_NOW = "nvmlDeviceGetCurrentClocksEventReasons"
_EVENTS_BEFORE_R535 = "nvmlDeviceGetCurrentClocksThrottleReasons"
_PROCESSES_NOW = "nvmlDeviceGetComputeRunningProcesses_v3"
_PROCESSES_BEFORE_R510 = "nvmlDeviceGetComputeRunningProcesses_v2"


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


def _either(library: Any, now: str, before: str) -> Callable[..., Any]:  # noqa: ANN401
    """Return the function by the name that the driver's library knows it by."""

    def call(*arguments: object) -> object:
        try:
            return getattr(library, now)(*arguments)
        except library.NVMLError_FunctionNotFound:
            return getattr(library, before)(*arguments)

    return call


def _memory_info(library: Any, handle: Any) -> Any:  # noqa: ANN401
    """Ask by the newer form; the older one counts as used what the driver keeps for itself."""
    try:
        return library.nvmlDeviceGetMemoryInfo(handle, version=library.nvmlMemory_v2)
    except library.NVMLError as error:
        if error.value not in _UNKNOWN_FORM:
            raise
        return library.nvmlDeviceGetMemoryInfo(handle)


def _utilization(library: Any, handle: Any) -> int:  # noqa: ANN401
    return int(library.nvmlDeviceGetUtilizationRates(handle).gpu)


def _processes(library: Any, handle: Any) -> int:  # noqa: ANN401
    """Count compute processes. Whose they are a container is not told."""
    return len(_either(library, _PROCESSES_NOW, _PROCESSES_BEFORE_R510)(handle))


def _ecc_errors(library: Any, handle: Any) -> int:  # noqa: ANN401
    """Count uncorrected errors since the driver was loaded."""
    return int(
        library.nvmlDeviceGetTotalEccErrors(
            handle, library.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, library.NVML_VOLATILE_ECC
        )
    )
