"""Turn the readings of one GPU into the evidence about it."""

import dataclasses
from collections import Counter
from dataclasses import dataclass

import msgspec

from ci_perf.measuring.monitor import nvml
from ci_perf.measuring.monitor.nvml import Counters, Readings
from ci_perf.model.validity import GpuEvidence, PcieLink, Span

# No board draws more; a larger difference of the energy counter is the counter's own jump.
_MAX_WATTS = 20_000
# Counters are brought up to date now and then, and may hand in late what belongs to before.
_LAG_S = 1.0

# The longest answer of a driver that is kept.
_MAX_CHARS = 500

# By which other names the driver was asked for what evidence may lack.
_ASKED_AS = {
    "violations_s": ("violations_power",),
    "used_before_bytes": ("used_bytes",),
    "used_peak_bytes": ("used_bytes",),
    "pcie": ("pcie_max",),
}


@dataclass
class _Gauge:
    """The lowest, the mean and the highest of what was read; absent readings do not count."""

    readings: int = 0
    low: float = float("inf")
    total: float = 0.0
    high: float = 0.0

    def add(self, value: float | None) -> None:
        if value is None:
            return
        self.readings += 1
        self.low = min(self.low, value)
        self.total += value
        self.high = max(self.high, value)

    def highest(self) -> int | None:
        return int(self.high) if self.readings else None

    def span(self) -> Span | None:
        if not self.readings:
            return None
        return Span(low=self.low, mean=self.total / self.readings, high=self.high)


# Of these the lowest, the mean and the highest reading are kept.
_GAUGED = (
    *("utilization", "sm_clock_mhz", "temperature_c", "power_w"),
    *("pcie_generation", "pcie_width"),
)
# nvml.h: "may be also reported during PState or clock change".
_SLOWDOWN_READINGS = 2


class _Region:
    """What was read over the timed region."""

    def __init__(self) -> None:
        self.readings = 0
        self.event_reasons: Counter[str] | None = None
        self.gauges = {name: _Gauge() for name in _GAUGED}

    def add(self, readings: Readings) -> None:
        self.readings += any(value is not None for value in dataclasses.astuple(readings))
        for name, gauge in self.gauges.items():
            gauge.add(getattr(readings, name))
        if readings.event_reasons is not None:
            self.event_reasons = (self.event_reasons or Counter()) + Counter(readings.event_reasons)

    def reasons(self) -> tuple[str, ...] | None:
        """Return what was active; a slowdown in one reading may be a change of the P-state."""
        if self.event_reasons is None:
            return None
        least = {"hw_slowdown": _SLOWDOWN_READINGS}
        counts = self.event_reasons.items()
        return tuple(sorted(name for name, count in counts if count >= least.get(name, 1)))


class _Differences:
    """Differences of counters. One that goes back or leaps is refused, with the reason."""

    def __init__(self) -> None:
        self.refused: dict[str, str] = {}

    def of(
        self, name: str, before: float | None, after: float | None, most: float = float("inf")
    ) -> float | None:
        if before is None or after is None:
            return None
        if 0 <= after - before <= most:
            return after - before
        self.refused[name] = f"the counter went from {before:g} to {after:g}"
        return None


class GpuWatch:
    """Watches one GPU. The first reading is taken when it is made, before the worker has a context.

    Until `begin` everything counts; from then on only what lies between `begin` and `end`.
    """

    def __init__(self, gpu: nvml.Gpu) -> None:
        self._gpu = gpu
        self._facts = gpu.facts()
        self._launched = self._begun = gpu.counters()
        self._ended: Counters | None = None
        self._region = _Region()
        self._used = _Gauge()
        self._processes = _Gauge()
        self._too_late = ""
        self.poll(timing=True)
        self._used_before = self._used.highest()

    def came_too_late(self, why: str) -> None:
        """Forget the memory in use before the worker had a context: it may have had one already."""
        self._used_before = None
        self._too_late = why

    def poll(self, *, timing: bool) -> None:
        """Read what changes from moment to moment."""
        readings = self._gpu.readings()
        self._used.add(readings.used_bytes)
        self._processes.add(readings.processes)
        if timing:
            self._region.add(readings)

    def begin(self) -> None:
        """Start the timed region anew."""
        self._region = _Region()
        self.poll(timing=True)
        self._begun = self._gpu.counters()

    def end(self) -> None:
        """End the timed region here; again, when a slower rank says so later."""
        self._ended = self._gpu.counters()
        self.poll(timing=True)

    def evidence(self, wall_s: float) -> GpuEvidence:
        """Say what was seen, over a region of `wall_s` seconds."""
        ended = self._ended or self._gpu.counters()
        differences = _Differences()
        region = self._region
        ecc = differences.of("ecc_errors", self._launched.ecc_errors, ended.ecc_errors)
        evidence = GpuEvidence(
            uuid=self._gpu.uuid,
            readings=region.readings,
            utilization=region.gauges["utilization"].span(),
            sm_clock_mhz=region.gauges["sm_clock_mhz"].span(),
            temperature_c=region.gauges["temperature_c"].span(),
            power_w=region.gauges["power_w"].span(),
            power_limit_w=self._facts.power_limit_w,
            energy_j=differences.of(
                "energy_j",
                self._begun.energy_j,
                ended.energy_j,
                most=_MAX_WATTS * (wall_s + _LAG_S),
            ),
            violations_s=self._violations(ended, wall_s, differences),
            event_reasons=region.reasons(),
            processes=self._processes.highest(),
            used_before_bytes=self._used_before,
            used_peak_bytes=self._used.highest(),
            ecc_errors=None if ecc is None else int(ecc),
            pcie=self._pcie(),
            absent={},
            lost=self._gpu.lost[:_MAX_CHARS],
        )
        return msgspec.structs.replace(evidence, absent=self._absent(evidence, differences.refused))

    def _violations(
        self, ended: Counters, wall_s: float, differences: "_Differences"
    ) -> dict[str, float] | None:
        seconds = {
            name: differences.of(
                f"violations_{name}",
                before,
                ended.violations_s.get(name),
                most=wall_s + _LAG_S,
            )
            for name, before in self._begun.violations_s.items()
        }
        return {name: s for name, s in seconds.items() if s is not None} or None

    def _absent(self, evidence: GpuEvidence, refused: dict[str, str]) -> dict[str, str]:
        """Say for everything that is absent what the driver answered."""
        answers = self._gpu.absent | refused
        absent = {k: v for k, v in answers.items() if k.startswith("violations_")}
        for name in GpuEvidence.__struct_fields__:
            if getattr(evidence, name) is None:
                keys = (name, *_ASKED_AS.get(name, ()))
                said = next((answers[key] for key in keys if key in answers), "never read")
                absent[name] = said
        if self._too_late:
            absent["used_before_bytes"] = self._too_late
        return {name: reason[:_MAX_CHARS] for name, reason in absent.items()}

    def _pcie(self) -> PcieLink | None:
        """Return the link at its fastest, for it slows down at rest, and at its narrowest."""
        gauges = self._region.gauges
        generation, width = gauges["pcie_generation"], gauges["pcie_width"]
        most = (self._facts.pcie_max_generation, self._facts.pcie_max_width)
        if not generation.readings or not width.readings or most[0] is None or most[1] is None:
            return None
        return PcieLink(
            generation=int(generation.high),
            width=int(width.low),
            max_generation=most[0],
            max_width=most[1],
        )
