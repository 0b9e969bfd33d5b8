"""The metrics that ci-perf knows: unit, direction and what kind of number each is."""

import functools
import hashlib
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Literal, get_args

from ci_perf.model.base import NAME, Struct


class _Choice(Enum):
    """Members are keys of many look-ups: `Enum` would hash their names, in Python."""

    __hash__ = object.__hash__


class Unit(_Choice):
    """The unit a value is stored in; people see it scaled (ms, GiB, %)."""

    SECOND = "s"
    BYTE = "byte"
    COUNT = "count"
    SHARE = "share"
    JOULE = "J"
    WATT = "W"
    MEGAHERTZ = "MHz"
    FLOP = "FLOP"
    FLOP_PER_SECOND = "FLOP/s"
    ITEM_PER_SECOND = "item/s"
    PER_SECOND = "1/s"


class Kind(_Choice):
    """How a metric behaves, which decides how it is judged."""

    TIME = "time"  # noisy between processes: screen and pairs decide
    TAIL = "tail"  # the slowest steps of a process: noisier than their middle
    ONE_OFF = "one_off"  # one value per process (first step): noisy and skewed
    ENERGY = "energy"  # noisy as a time, and its counter is coarse
    HOST_MEMORY = "host_memory"  # nearly deterministic
    COMPILE = "compile"  # noisy, and perhaps one value per session: ranges decide
    SHARE = "share"  # noisy, but from 0 to 1, so that no ratio would mean much: ranges decide
    DEVICE_MEMORY = "device_memory"  # the allocator's own count: exact but for its rounding
    COUNT = "count"  # exact
    RECORD = "record"  # never judged: it explains the others


class Better(_Choice):
    """In which direction a metric improves."""

    LOWER = "lower"
    HIGHER = "higher"


class Metric(Struct, frozen=True, kw_only=True):
    """One quantity. Lower is better unless it says otherwise."""

    name: str
    title: str
    unit: Unit
    kind: Kind
    better: Better = Better.LOWER


STEP_TIME = Metric(name="step_time_s", title="step time", unit=Unit.SECOND, kind=Kind.TIME)
STEP_CPU = Metric(name="step_cpu_s", title="CPU time of a step", unit=Unit.SECOND, kind=Kind.TIME)
SCALING_EFFICIENCY = Metric(
    name="scaling_efficiency",
    title="scaling efficiency",
    unit=Unit.SHARE,
    kind=Kind.TIME,
    better=Better.HIGHER,
)
STEP_P95 = Metric(
    name="step_p95_s", title="95th percentile of steps", unit=Unit.SECOND, kind=Kind.TAIL
)
FIRST_STEP = Metric(name="first_step_s", title="first step", unit=Unit.SECOND, kind=Kind.ONE_OFF)
COMPILE_COLD = Metric(
    name="compile_cold_s", title="cold compile", unit=Unit.SECOND, kind=Kind.COMPILE
)
COMPILE_WARM = Metric(
    name="compile_warm_s", title="warm compile", unit=Unit.SECOND, kind=Kind.COMPILE
)
ENERGY = Metric(name="energy_j", title="energy per item", unit=Unit.JOULE, kind=Kind.ENERGY)
DATA_WAIT = Metric(name="data_wait", title="waiting for data", unit=Unit.SHARE, kind=Kind.SHARE)
H2D = Metric(name="h2d", title="copying to the device", unit=Unit.SHARE, kind=Kind.SHARE)
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
OPERATORS = Metric(name="operators", title="operators per step", unit=Unit.COUNT, kind=Kind.COUNT)
FLOPS = Metric(name="flops", title="FLOPs per step", unit=Unit.FLOP, kind=Kind.COUNT)

KERNELS = Metric(name="kernels", title="kernels per step", unit=Unit.COUNT, kind=Kind.COUNT)
HOST_WAITS = Metric(name="host_waits", title="waits for the GPU", unit=Unit.COUNT, kind=Kind.COUNT)
GRAPH_REPLAYS = Metric(
    name="graph_replays",
    title="CUDA graphs replayed",
    unit=Unit.COUNT,
    kind=Kind.COUNT,
    better=Better.HIGHER,
)
SPILLS = Metric(name="spills", title="spilled registers", unit=Unit.COUNT, kind=Kind.COUNT)

# Exact counts of what a step makes the GPU do, by torch's profiler. To start it takes 4 s on an
# H200, as long as the rest of a short launch: so only the first launches of a side have them.
OF_PROFILE = (KERNELS, HOST_WAITS, GRAPH_REPLAYS, SPILLS)
PROFILED_LAUNCHES = 2

# What a process shows of its own start: nothing where it is forked from one that has imported.
OF_START = frozenset({Kind.ONE_OFF, Kind.COMPILE, Kind.HOST_MEMORY})

JUDGED = (
    STEP_TIME,
    STEP_CPU,
    STEP_P95,
    SCALING_EFFICIENCY,
    FIRST_STEP,
    COMPILE_COLD,
    COMPILE_WARM,
    ENERGY,
    DATA_WAIT,
    H2D,
    HOST_RSS_PEAK,
    PEAK_ALLOCATED,
    PEAK_RESERVED,
    GRAPHS,
    GRAPH_BREAKS,
    RECOMPILES,
    OPERATORS,
    FLOPS,
    *OF_PROFILE,
)


def _record(name: str, title: str, unit: Unit, better: Better = Better.LOWER) -> Metric:
    return Metric(name=name, title=title, unit=unit, kind=Kind.RECORD, better=better)


# Of the kind of a step time, so that its centre is the items of a step over the centre of that.
THROUGHPUT = Metric(
    name="items_per_s",
    title="throughput",
    unit=Unit.ITEM_PER_SECOND,
    kind=Kind.TIME,
    better=Better.HIGHER,
)
STEP_P05 = _record("step_p05_s", "5th percentile of steps", Unit.SECOND)
DEVICE_TIME = _record("device_time_s", "device time", Unit.SECOND)
HOST_OVERHEAD = _record("host_overhead", "host overhead", Unit.SHARE)
FLOP_PER_S = _record("flop_per_s", "FLOP/s of a GPU", Unit.FLOP_PER_SECOND, Better.HIGHER)
MFU = _record("mfu", "share of peak FLOP/s", Unit.SHARE, Better.HIGHER)
SM_CLOCK = _record("sm_clock_mhz", "SM clock", Unit.MEGAHERTZ, Better.HIGHER)
POWER = _record("power_w", "power", Unit.WATT)
GPU_UTIL = _record("gpu_util", "GPU utilisation", Unit.SHARE, Better.HIGHER)
PEAK_ACTIVE = _record("peak_active_bytes", "peak active", Unit.BYTE)
ARRIVAL_SKEW = _record("arrival_skew_s", "arrival skew", Unit.SECOND)
TASKS = _record("tasks", "processes and threads", Unit.COUNT)
PROCESS_COUNT = _record("process_count", "processes", Unit.COUNT)
LARGEST_PROCESS = _record("largest_process_bytes", "largest process", Unit.BYTE)
PRINTED_TIMES = _record("printed_times", "printed times", Unit.COUNT)

RECORDED = (
    THROUGHPUT,
    STEP_P05,
    DEVICE_TIME,
    HOST_OVERHEAD,
    FLOP_PER_S,
    MFU,
    SM_CLOCK,
    POWER,
    GPU_UTIL,
    PEAK_ACTIVE,
    ARRIVAL_SKEW,
    TASKS,
    PROCESS_COUNT,
    LARGEST_PROCESS,
    PRINTED_TIMES,
)
ALL = (*JUDGED, *RECORDED)
BY_NAME = {metric.name: metric for metric in ALL}

# What a metric of the user's own may be: a time or a tail of times (s), a rate (higher is better),
# bytes, an exact count of which less is better, or an exact score of which more is.
OwnKind = Literal["time", "tail", "rate", "bytes", "count", "score"]
OWN_KINDS: tuple[OwnKind, ...] = get_args(OwnKind)
_OWN: dict[str, tuple[Unit, Kind, Better]] = {
    "time": (Unit.SECOND, Kind.TIME, Better.LOWER),
    "tail": (Unit.SECOND, Kind.TAIL, Better.LOWER),
    "rate": (Unit.PER_SECOND, Kind.TIME, Better.HIGHER),
    "bytes": (Unit.BYTE, Kind.HOST_MEMORY, Better.LOWER),
    "count": (Unit.COUNT, Kind.COUNT, Better.LOWER),
    "score": (Unit.COUNT, Kind.COUNT, Better.HIGHER),
}


# With its kind ("score."), it is a Name, which has at most 200 characters.
_MOST_CHARS = 194
_DIGEST_CHARS = 8
_FOREIGN = re.compile(r"[^A-Za-z0-9_.=+-]")
_OWN_NAME = re.compile(rf"({'|'.join(_OWN)})\.({NAME})")


def name_own(kind: OwnKind, name: str) -> str:
    """Return what an own metric is called wherever it is kept: "time.median_ttft_ms"."""
    return f"{kind}.{name}"


def clean_name(text: str) -> str:
    """Return the name that a metric has here for a text of any tool: others become `_`.

    A long one, such as a command line, ends in a digest.
    """
    name = _FOREIGN.sub("_", text)
    if len(name) <= _MOST_CHARS:
        return name
    end = hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:_DIGEST_CHARS]
    return f"{name[: _MOST_CHARS - 1 - _DIGEST_CHARS]}-{end}"


@functools.lru_cache(maxsize=10_000)
def find_metric(name: str) -> Metric | None:
    """Return the metric of this name, one of ours or of the user's own; `None`: there is none."""
    own = _OWN_NAME.fullmatch(name)
    if own is None:
        return BY_NAME.get(name)
    unit, behaviour, better = _OWN[own[1]]
    return Metric(name=name, title=own[2], unit=unit, kind=behaviour, better=better)


def metric_of(name: str) -> Metric:
    """Return the metric of this name. Raises KeyError: there is none."""
    if (metric := find_metric(name)) is None:
        raise KeyError(name)
    return metric


def find_own(names: Iterable[str]) -> tuple[Metric, ...]:
    """Return the user's own metrics among these names, each once, in order."""
    own = dict.fromkeys(name for name in names if "." in name)
    return tuple(metric for name in sorted(own) if (metric := find_metric(name)))


def check_own(name: str, value: float) -> None:
    """Raise ValueError: not the name of an own metric, or a number that says nothing.

    Nothing takes no time and no memory: a zero is what a benchmark writes that measured nothing.
    """
    metric = find_metric(name) if "." in name else None
    if metric is None:
        kinds = ", ".join(OWN_KINDS)
        raise ValueError(f"expected a name like 'time.ttft', of {kinds}, found {name!r}")
    if len(metric.title) > _MOST_CHARS:
        found = f"{len(metric.title)} in '{metric.title[:40]}…'"
        raise ValueError(f"expected a name of at most {_MOST_CHARS} characters, found {found}")
    least = 0 if metric.kind is Kind.COUNT else 1e-12
    if not least <= value <= 1e18:
        expected = "a number above 0, up to 1e18" if least else "a number from 0 to 1e18"
        raise ValueError(f"{name}: expected {expected}, found {value:g}")


def round_own(numbers: Mapping[str, float]) -> dict[str, float]:
    """Return own metrics; an exact one that is no whole number has the digits of a baseline."""
    exact = {metric.name for metric in find_own(numbers) if metric.kind is Kind.COUNT}
    return {
        name: float(f"{value:.6g}" if name in exact and value % 1 else value)
        for name, value in numbers.items()
    }


# Limits that belong to no metric: how far the numerics, and the canaries, may move.
FINGERPRINT, CANARY = "fingerprint", "canary"
SPECIAL_LIMITS = frozenset({FINGERPRINT, CANARY})
# Everything that suite.toml may set a limit for, beside each metric of the user's own: a kind of
# these is for all of its metrics.
LIMITED = (*(metric.name for metric in JUDGED), *sorted(SPECIAL_LIMITS), *OWN_KINDS)
