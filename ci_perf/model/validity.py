"""Whether the machine can be trusted: what the monitor saw of it, the verdict, and the canaries."""

from collections.abc import Iterable
from enum import Enum
from typing import Literal

from ci_perf.model.base import (
    Amount,
    Bytes,
    Count,
    Key,
    Name,
    NameOrEmpty,
    PositiveSeconds,
    Seconds,
    Struct,
    Text,
)

# --- what the monitor saw while one process was timed; `None` is "not known"


class Span(Struct, frozen=True, kw_only=True):
    """A reading that was taken several times: the lowest, the mean and the highest."""

    low: Amount
    mean: Amount
    high: Amount


class PcieLink(Struct, frozen=True, kw_only=True):
    """The link between GPU and host, as it was and as both ends could."""

    generation: Count
    width: Count
    max_generation: Count
    max_width: Count


class GpuEvidence(Struct, frozen=True, kw_only=True):
    """One GPU over the timed region; what has a border is the difference of a counter there.

    ``readings`` counts how often it was polled. ``utilization`` is a share (0 to 1) of time in
    which some kernel was resident. ``energy_j`` and ``violations_s`` (seconds lost to each cause
    that held the clocks down) are counters. ``event_reasons`` were active in some reading.
    ``processes`` is the largest number of compute processes seen. ``used_before_bytes`` is the
    memory in use before ours had a context, ``used_peak_bytes`` the most that was seen.
    ``ecc_errors`` are uncorrected ones since the launch. ``absent`` says, per reading that is
    `None`, what the driver answered. ``lost`` is that answer when the GPU went away.
    """

    uuid: Name
    readings: Count
    utilization: Span | None
    sm_clock_mhz: Span | None
    temperature_c: Span | None
    power_w: Span | None
    power_limit_w: Amount | None
    energy_j: Amount | None
    violations_s: dict[Key, Seconds] | None
    event_reasons: tuple[Name, ...] | None
    processes: Count | None
    used_before_bytes: Bytes | None
    used_peak_bytes: Bytes | None
    ecc_errors: Count | None
    pcie: PcieLink | None
    absent: dict[Key, Text]
    lost: Text = ""


class HostEvidence(Struct, frozen=True, kw_only=True):
    """The host over the timed region, by the differences of the kernel's counters at its borders.

    ``cpu_pressure`` and ``memory_pressure`` are shares of the region in which some task waited.
    ``cpu_s`` is that of the measured process, all its threads.
    ``throttled_s`` is how long the quota of the control group held it back.
    """

    wall_s: Seconds
    cpu_s: Seconds | None
    cpu_pressure: Amount | None
    memory_pressure: Amount | None
    throttled_s: Seconds | None


class Evidence(Struct, frozen=True, kw_only=True):
    """Everything the monitor has to say of one process.

    ``host_rss_peak_bytes`` is the sum over all ranks, read at every poll. ``below_bytes`` is what
    the processes below a rank had beside it while it was timed, at most; see `Memory`.
    ``overhead_cpu_s`` is the processor time that the monitor itself took meanwhile. ``trouble``
    says why there are no borders, when there are none (the process died before, say); the
    differences are then taken over the whole life of the monitor.
    """

    host: HostEvidence
    gpus: tuple[GpuEvidence, ...]
    host_rss_peak_bytes: Bytes | None
    below_bytes: Bytes | None = None
    below_by: Literal["", "pss", "rss"] = ""
    below_count: Count = 0
    below_largest_bytes: Bytes = 0
    overhead_cpu_s: Seconds
    trouble: Text = ""


# --- the verdict on the machine


class Status(Enum):
    """How far the machine can be trusted, worst last."""

    VALID = "valid"
    DEGRADED = "degraded"
    INVALID = "invalid"


# A sentence with figures.
_DETAIL_CHARS = 1000


class Doubt(Enum):
    """Every reason to distrust the machine; docs/machine.md explains each with cause and cure.

    ``ends_on``: other programs cause it on this device, and it ends with them. ``is_busy``: they
    use the CPUs or the memory while we measure.
    """

    INTERRUPTED = "interrupted", Status.INVALID
    CANARY_FAILED = "canary_failed", Status.DEGRADED
    MACHINE_MOVED = "machine_moved", Status.DEGRADED
    # It moved, and as the suite has it, that silences nothing.
    MACHINE_MOVED_NO_GATE = "machine_moved_no_gate", Status.DEGRADED
    CHECKOUT_CHANGED = "checkout_changed", Status.INVALID
    LOW_DISK = "low_disk", Status.INVALID
    HOST_PRESSURE = "host_pressure", Status.DEGRADED, "cpu", True
    MEMORY_PRESSURE = "memory_pressure", Status.DEGRADED, "cpu", True
    CGROUP_THROTTLED = "cgroup_throttled", Status.DEGRADED, "", True
    GPU_LOST = "gpu_lost", Status.INVALID
    GPU_BUSY = "gpu_busy", Status.INVALID, "gpu"
    FOREIGN_MEMORY = "foreign_memory", Status.INVALID, "gpu"
    SECOND_PROCESS = "second_process", Status.INVALID, "gpu"
    ECC_ERRORS = "ecc_errors", Status.INVALID
    THERMAL_THROTTLING = "thermal_throttling", Status.INVALID
    HARDWARE_SLOWDOWN = "hardware_slowdown", Status.INVALID
    CLOCKS_HELD = "clocks_held", Status.DEGRADED
    POWER_LIMITED = "power_limited", Status.DEGRADED
    PCIE_LINK = "pcie_link", Status.DEGRADED
    MIG_MODE = "mig_mode", Status.DEGRADED
    UNWATCHED = "unwatched", Status.DEGRADED
    INCOMPLETE = "incomplete", Status.DEGRADED
    # A command or test that reads and writes files has another disk on each side.
    OTHER_FILE_SYSTEM = "other_file_system", Status.DEGRADED
    UNPINNED_IMAGE = "unpinned_image", Status.DEGRADED

    def __init__(
        self,
        code: str,
        status: Status,
        ends_on: Literal["", "cpu", "gpu"] = "",
        is_busy: bool = False,  # noqa: FBT001, FBT002  a member is a tuple
    ) -> None:
        self.code, self.status, self.ends_on, self.is_busy = code, status, ends_on, is_busy

    def reason(self, detail: str, workload: str = "") -> "Reason":
        """Make a reason; `workload` is the one during which it was seen."""
        detail = detail[:_DETAIL_CHARS]
        return Reason(code=self.code, status=self.status, detail=detail, workload=workload)


_BY_CODE = {doubt.code: doubt for doubt in Doubt}


class Reason(Struct, frozen=True, kw_only=True):
    """Why a run is not simply valid: a code that docs/machine.md explains, and the figures.

    ``workload`` is the one during which it happened; empty when the whole run is meant.
    """

    code: Name
    status: Status
    detail: Text
    workload: NameOrEmpty = ""

    @property
    def doubt(self) -> Doubt | None:
        """What is known of the code; `None` for one of another version."""
        return _BY_CODE.get(self.code)

    def concerns(self, workload: str) -> bool:
        """Whether it was seen during `workload`, or holds for the whole run."""
        return self.workload in {"", workload}


class Validity(Struct, frozen=True, kw_only=True):
    """The verdict on the machine, which comes before the verdict on the code.

    ``status`` is that of the worst reason; without reasons it is valid.
    """

    status: Status
    reasons: tuple[Reason, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a verdict without a reason, and a reason without its verdict."""
        worst = worst_of(self.reasons)
        if self.status is not worst:
            raise ValueError(
                f"expected status {worst.value!r}, which follows from the reasons, "
                f"found {self.status.value!r}"
            )

    @property
    def is_run_invalid(self) -> bool:
        """Whether the numbers of the whole run are worth nothing, not only those of a workload."""
        return self.against("") is not None

    def against(self, workload: str) -> Reason | None:
        """Return the first reason that makes the numbers of `workload` worth nothing."""
        for reason in self.reasons:
            if reason.status is Status.INVALID and reason.concerns(workload):
                return reason
        return None


# What ends a process whatever its code does, and what leaves it too little memory.
_ENDS_PROCESSES = {Doubt.GPU_LOST, Doubt.ECC_ERRORS}
_TAKES_MEMORY = {Doubt.SECOND_PROCESS, Doubt.FOREIGN_MEMORY}


def find_fatal(
    reasons: Iterable[Reason], workload: str, *, has_filled_gpu: bool
) -> tuple[Reason, ...]:
    """Return the reasons for which the machine, and not its code, made a process fail.

    ``has_filled_gpu``: it ran out of the memory of its GPU.
    """
    fatal = _ENDS_PROCESSES | (_TAKES_MEMORY if has_filled_gpu else set())
    return tuple(each for each in reasons if each.doubt in fatal and each.concerns(workload))


class Canary(Struct, frozen=True, kw_only=True):
    """A fixed program that no pull request can change: when it moved, the machine moved."""

    name: Name
    position: Literal["before", "between", "after"]
    median_s: PositiveSeconds


def worst_of(reasons: tuple[Reason, ...]) -> Status:
    """Let the worst reason decide; without any, all is well."""
    order = list(Status)
    return max((reason.status for reason in reasons), key=order.index, default=Status.VALID)


def distinct(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Keep one reason per workload and code: the worst one, and the first of equal ones."""
    order = list(Status)
    kept: dict[tuple[str, str], Reason] = {}
    for reason in reasons:
        known = kept.setdefault((reason.workload, reason.code), reason)
        if order.index(reason.status) > order.index(known.status):
            kept[reason.workload, reason.code] = reason
    return tuple(kept.values())


def validity_of(reasons: tuple[Reason, ...]) -> Validity:
    """Make the verdict that follows from `reasons`."""
    return Validity(status=worst_of(reasons), reasons=reasons)
