"""What the monitor saw of the machine while one process was timed. ``None`` is "not known"."""

from ci_perf.model.base import Amount, Bytes, Count, Key, Name, Seconds, Struct, Text


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
    memory_clock_mhz: Span | None
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
    ``cpu_s`` and ``involuntary_switches`` are those of the measured process, all its threads.
    ``throttled_s`` is how long the quota of the control group held it back.
    """

    wall_s: Seconds
    cpu_s: Seconds | None
    cpu_pressure: Amount | None
    memory_pressure: Amount | None
    involuntary_switches: Count | None
    throttled_s: Seconds | None


class Evidence(Struct, frozen=True, kw_only=True):
    """Everything the monitor has to say of one process.

    ``host_rss_peak_bytes`` is the sum over all ranks, read at every poll.
    ``overhead_cpu_s`` is the processor time that the monitor itself took meanwhile. ``trouble``
    says why there are no borders, when there are none (the process died before, say); the
    differences are then taken over the whole life of the monitor.
    """

    host: HostEvidence
    gpus: tuple[GpuEvidence, ...]
    host_rss_peak_bytes: Bytes | None
    overhead_cpu_s: Seconds
    trouble: Text = ""
