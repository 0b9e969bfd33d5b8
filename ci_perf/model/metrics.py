"""The metrics that ci-perf knows: unit, direction and what kind of number each is."""

from enum import Enum

from ci_perf.model.base import Struct


class Unit(Enum):
    """The unit a value is stored in; people see it scaled (ms, GiB)."""

    SECOND = "s"
    BYTE = "byte"
    COUNT = "count"


class Kind(Enum):
    """How a metric behaves, which decides how it is judged."""

    TIME = "time"  # noisy between processes: an interval decides
    ONE_OFF = "one_off"  # one value per process (compile, first step): noisy and skewed
    HOST_MEMORY = "host_memory"  # nearly deterministic
    DEVICE_MEMORY = "device_memory"  # the allocator's own count: exact but for its rounding
    COUNT = "count"  # exact


class Metric(Struct, frozen=True, kw_only=True):
    """One quantity. For every one of them lower is better."""

    name: str
    title: str
    unit: Unit
    kind: Kind


STEP_TIME = Metric(name="step_time_s", title="step time", unit=Unit.SECOND, kind=Kind.TIME)
FIRST_STEP = Metric(name="first_step_s", title="first step", unit=Unit.SECOND, kind=Kind.ONE_OFF)
HOST_RSS_PEAK = Metric(
    name="host_rss_peak_bytes", title="peak host memory", unit=Unit.BYTE, kind=Kind.HOST_MEMORY
)
PEAK_ALLOCATED = Metric(
    name="peak_allocated_bytes",
    title="peak allocated",
    unit=Unit.BYTE,
    kind=Kind.DEVICE_MEMORY,
)
PEAK_RESERVED = Metric(
    name="peak_reserved_bytes",
    title="peak reserved",
    unit=Unit.BYTE,
    kind=Kind.DEVICE_MEMORY,
)
GRAPHS = Metric(name="graphs", title="compiled graphs", unit=Unit.COUNT, kind=Kind.COUNT)
GRAPH_BREAKS = Metric(name="graph_breaks", title="graph breaks", unit=Unit.COUNT, kind=Kind.COUNT)
RECOMPILES = Metric(name="recompiles", title="recompiles", unit=Unit.COUNT, kind=Kind.COUNT)

ALL = (
    STEP_TIME,
    FIRST_STEP,
    HOST_RSS_PEAK,
    PEAK_ALLOCATED,
    PEAK_RESERVED,
    GRAPHS,
    GRAPH_BREAKS,
    RECOMPILES,
)
BY_NAME = {metric.name: metric for metric in ALL}
