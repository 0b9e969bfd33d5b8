"""What suite.toml says, and the plan that follows from it."""

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from ci_perf.model.base import (
    SCHEMA_VERSION,
    AtLeastOne,
    Bytes,
    Count,
    CpuList,
    Finite,
    Key,
    Name,
    NameOrEmpty,
    PositiveSeconds,
    Scalar,
    Seconds,
    Statistic,
    Struct,
    SuiteName,
    Text,
)
from ci_perf.model.container import Container
from ci_perf.model.metrics import Kind, Metric, OwnKind, Unit, name_own

LARGEST_LIMIT = 10
LARGEST_SIZE = 1e18
Relative = Annotated[float, msgspec.Meta(ge=0, le=LARGEST_LIMIT)]
# A share of the baseline (0.02, "2 %"), a size in the metric's unit ("8 MiB"), or both: the larger
# one applies.
LimitValue = float | str | tuple[float | str, float | str]
# How a workload is started: one process, one per rank by torchrun, one that is forked from another
# that has imported and prepared the workload file, or one that runs a command.
Launch = Literal["process", "torchrun", "fork", "command"]
# A setting of the environment that stays as the user has it.
OWN: Final = "own"
# By which the libraries of a process learn how many threads they may start.
THREAD_VARIABLES = ("MKL_NUM_THREADS", "OMP_NUM_THREADS")
MOST_THREADS = 1024
Threads = Annotated[int, msgspec.Meta(ge=1, le=MOST_THREADS)] | Literal["own"]
# Where a suite belongs, unless --device says otherwise: "auto" is the first GPU, or the CPU.
SuiteDevice = Literal["auto", "cpu", "cuda"]
# A pattern of paths below the root of the repository: "data/**/*.json".
InputPattern = Annotated[
    str,
    msgspec.Meta(
        min_length=1, max_length=500, pattern=r"^(?!/)(?!(.*/)?\.{0,2}(/|$))(?!.*//)[^\\]+(?!\n)$"
    ),
]
# One that looks less often sees nothing of most processes.
SLOWEST_MONITOR_HZ = 0.1


# "48h".
Hours = Annotated[str, msgspec.Meta(pattern=r"^[1-9][0-9]{0,3}h(?!\n)$")]

# The mildest loss that ends with exit code 1. A gain that is only predicted never does.
FailOn = Literal["proven", "likely", "unanswered", "never"]


class Limit(Struct, frozen=True, kw_only=True):
    """The loss of a metric that must not pass unseen.

    The larger of ``relative`` (a share of the baseline) and ``absolute`` (in the metric's unit)
    applies. ``gate = false`` shows the metric and never fails the job. ``require = true``: a row
    without an answer does not end green.
    """

    relative: Relative = 0.0
    absolute: Annotated[float, msgspec.Meta(ge=0, le=LARGEST_SIZE)] = 0.0
    gate: bool = True
    require: bool = False


def find_limit(limits: Mapping[str, Limit], metric: str) -> Limit | None:
    """Return the limit of a metric by its name; one of the user's own may have that of its kind."""
    kind, dot, _ = metric.partition(".")
    return limits.get(metric) or (limits.get(kind) if dot else None)


class LimitChange(Struct, frozen=True, kw_only=True):
    """What a table of suite.toml says of a limit: what is left out stays as it was."""

    limit: LimitValue | msgspec.UnsetType = msgspec.UNSET
    gate: bool | msgspec.UnsetType = msgspec.UNSET
    require: bool | msgspec.UnsetType = msgspec.UNSET

    def of(self, limit: Limit, metric: Metric | None) -> Limit:
        """Return `limit` with what is said here; no metric is a limit that belongs to none.

        Raises ValueError: not a share, nor a size in the metric's unit; or the metric is exact.
        """
        said = {
            name: value
            for name in ("gate", "require")
            if (value := getattr(self, name)) is not msgspec.UNSET
        }
        if self.limit is not msgspec.UNSET:
            said |= _parts(self.limit, metric)
        return msgspec.structs.replace(limit, **said)


# In a table of suite.toml, a limit alone is one that says nothing else.
LimitEntry = LimitChange | LimitValue


# A metric's unit, in the units that people write. A share of a step is a size: it is one already.
SIZES = {
    Unit.SECOND: {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9},
    Unit.BYTE: {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30},
    Unit.JOULE: {"J": 1.0, "mJ": 1e-3, "kJ": 1e3},
}
# As `Key` is spelled in the id of a workload.
_MATRIX_VALUE = re.compile(r"(?<=.)\.([A-Za-z0-9_][A-Za-z0-9_-]*)=")
# What stands before the parameters in a node id of pytest: in groups, all of it and the function.
_TEST = re.compile(r"(.*?::(\w+))\[")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([A-Za-zµ]+)")


def _parts(value: LimitValue, metric: Metric | None) -> dict[str, float]:
    """Return both parts of a limit. Raises ValueError."""
    if metric is not None and metric.kind is Kind.COUNT:
        raise ValueError(
            f"expected no limit, found {value!r}: {metric.title} are exact, and one more is worse; "
            "write only `gate`"
        )
    parts = {"relative": 0.0, "absolute": 0.0}
    for said in value if isinstance(value, tuple) else (value,):
        part = _read_percent(said)
        is_size = isinstance(part, str) or (metric is not None and metric.kind is Kind.SHARE)
        name = "absolute" if is_size else "relative"
        if parts[name]:
            raise ValueError(f"expected one share and one size, found {value!r}")
        parts[name] = _size(part, metric) if isinstance(part, str) else _share(part)
    return parts


def _read_percent(part: float | str) -> float | str:
    """Return "2 %" as the share that it is; any other part as it was."""
    percent = _PERCENT.fullmatch(part) if isinstance(part, str) else None
    return float(percent[1]) / 100 if percent else part


def _share(value: float) -> float:
    if not 0 < value <= 1:
        raise ValueError(
            f"expected a share above 0 and at most 1 (0.02 for 2 %), found {value!r}; "
            "`gate = false` lets any regression pass"
        )
    return value


def _size(text: str, metric: Metric | None) -> float:
    units = SIZES.get(metric.unit, {}) if metric else {}
    spelled = _SIZE.fullmatch(text)
    is_known = spelled is not None and spelled[2] in units
    size = float(spelled[1]) * units[spelled[2]] if spelled and is_known else 0.0
    if not 0 < size <= LARGEST_SIZE:
        known = f"a number above 0 and one of {', '.join(units)}" if units else "a share"
        raise ValueError(f"expected {known}, found {text!r}")
    return size


class Protocol(Struct, frozen=True, kw_only=True):
    """How a workload is measured. The defaults are meant for one GPU; smoke suites scale down.

    The numbers come from the protocols of nvbench, pyperf and torch.utils.benchmark, and from our
    own recordings; docs/measuring.md gives the reasons.
    """

    processes: AtLeastOne = 5
    timeout_s: PositiveSeconds = 600.0
    # "own": as the environment says, like that of a command by default.
    threads: Threads = 1
    seed: Count = 0
    warmup_min_steps: AtLeastOne = 3
    warmup_min_s: Seconds = 0.5
    warmup_max_s: Seconds = 30.0
    # Warm means: the medians of the last two windows of this many steps differ by less than this.
    warmup_window: AtLeastOne = 3
    warmup_tolerance: Relative = 0.01
    block_min_s: Seconds = 0.05
    timed_min_blocks: AtLeastOne = 5
    timed_min_s: Seconds = 0.5
    timed_max_s: Seconds = 20.0
    # What launches of the same code differ by at least: to know one of them better is of no use. A
    # calibration of the machine knows more than this.
    launch_spread: Relative = 0.005
    # Others on the machine make blocks longer, never shorter: on a shared CPU "min" is 2-3 times
    # quieter between launches. It is blind to what slows only some steps.
    statistic: Statistic = "median"
    memory_steps: AtLeastOne = 2
    # The passes that watch the parts of a step, and the skew of ranks.
    phase_steps: AtLeastOne = 3
    fingerprint_steps: Count = 3
    # Readings of the GPU per second, by a process beside ours. 0 turns it off: no evidence then.
    monitor_hz: Annotated[float, msgspec.Meta(ge=0, le=50)] = 5.0
    # What PYTORCH_CUDA_ALLOC_CONF would say, fixed so that two machines agree; or "own".
    allocator: Annotated[str, msgspec.Meta(max_length=200)] = "expandable_segments:False"
    # Address space of a process (RLIMIT_AS); 0 for no limit of ours.
    memory_limit_bytes: Bytes = 0
    # CPUs that the process may use, "0-3,8" as taskset spells it; empty leaves them all.
    cpus: CpuList = ""

    def __post_init__(self) -> None:
        """Refuse a monitor that would hardly ever look."""
        if 0 < self.monitor_hz < SLOWEST_MONITOR_HZ:
            raise ValueError(
                f"expected monitor_hz 0 or at least {SLOWEST_MONITOR_HZ}, found {self.monitor_hz!r}"
            )


# A run of a command is a step: nothing warms up, and a few of them are a launch. It runs as it is.
COMMAND_PROTOCOL: dict[str, Scalar] = {
    "threads": OWN,
    "allocator": OWN,
    "timeout_s": 3600.0,
    "block_min_s": 0.0,
    "timed_min_blocks": 1,
    "timed_min_s": 1.0,
    "timed_max_s": 5.0,
    "fingerprint_steps": 1,
}


class Setup(Struct, frozen=True, kw_only=True):
    """What makes a checkout ready to be launched: run once per side when base and head take turns.

    ``command`` goes to a shell in the root of the checkout, and may take ``timeout_s``.
    """

    command: Text = ""
    timeout_s: PositiveSeconds = 1800.0


class Tiers(Struct, frozen=True, kw_only=True):
    """Soft environment facts that this team treats as hard: `hard = ["torch", "driver"]`."""

    hard: tuple[str, ...] = ()


class Entry(Struct, frozen=True, kw_only=True):
    """One line of a suite: a workload file with parameters, spread over a matrix.

    ``name`` begins the ids of its workloads; empty means the name of the file. ``launch`` says how
    it is started; the parameter ``world_size`` then says in how many ranks, or on how many devices.
    ``inputs`` are files that it depends on although a recording does not show it. ``owner`` is who
    is told of a loss, as "@org/perf".
    """

    workload: Name
    name: NameOrEmpty = ""
    owner: Text = ""
    parameters: dict[Key, Scalar] = {}
    # An empty list would make no workload at all, and nobody would see it go.
    matrix: dict[Key, Annotated[tuple[Scalar, ...], msgspec.Meta(min_length=1)]] = {}
    launch: Literal["process", "torchrun"] = "process"
    inputs: tuple[InputPattern, ...] = ()
    limits: dict[str, LimitEntry] = {}
    protocol: dict[str, Scalar] = {}


# What a command prints, as a format: its metrics are regular expressions.
READS_TEXT = "regex"


def parse_metric(metric: str) -> tuple[re.Pattern[str] | None, float]:
    """Return the pattern of "step_ms=iter .*time ([0-9.]+)ms", and its unit in seconds.

    An empty text has none. Raises ValueError: no such form, unit or pattern.
    """
    if not metric:
        return None, 1.0
    name, equals, text = metric.partition("=")
    unit = name.rpartition("_")[2]
    if not equals or unit not in SIZES[Unit.SECOND]:
        raise ValueError(f"expected NAME_s=REGEX, NAME_ms=REGEX or NAME_us=REGEX, found {metric!r}")
    return parse_pattern(text), SIZES[Unit.SECOND][unit]


def parse_pattern(text: str, where: str = "") -> re.Pattern[str]:
    """Return a regular expression with one group, the number. Raises ValueError, with `where`."""
    place = f"{where}: " if where else ""
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise ValueError(f"{place}expected a regular expression, found {text!r}: {error}") from None
    if pattern.groups != 1:
        raise ValueError(f"{place}expected one group, which is the number, found {text!r}")
    return pattern


def check_reads(reads: str, command: str) -> None:
    """Raise ValueError: nothing tells where the numbers of a command are."""
    name, colon, file = reads.partition(":")
    if colon and (name == READS_TEXT or not file or file.startswith("/") or ".." in file):
        raise ValueError(f"reads: expected FORMAT:FILE with a file below the root, found {reads!r}")
    if reads and not colon and name != READS_TEXT and "{output}" not in command:
        raise ValueError(
            f"reads: expected {{output}} in the command, or {name}:FILE for a file that it writes, "
            "found neither"
        )


class OwnMetric(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A metric of the user's own, of what a command writes.

    ``find`` says where: the name that the format knows, or a regular expression with one group;
    without it, the metric's own name. ``unit`` is that of the number where the format does not know
    it, by default the end of the name ("ttft_ms"), else that of the kind. The kind "validity" is no
    metric: a number outside of ``at_least`` and ``at_most`` fails the launch. So does one that is
    not found, unless it is ``optional``.
    """

    kind: OwnKind | Literal["validity"]
    find: Text = ""
    unit: Literal["", "s", "ms", "us", "ns", "B", "KiB", "MiB", "GiB"] = ""
    optional: bool = False
    at_least: Finite | None = None
    at_most: Finite | None = None
    limit: LimitValue | msgspec.UnsetType = msgspec.UNSET
    gate: bool | msgspec.UnsetType = msgspec.UNSET
    require: bool | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        """Refuse what would say nothing."""
        has_bounds = self.at_least is not None or self.at_most is not None
        if has_bounds is not (self.kind == "validity"):
            raise ValueError(
                "expected at_most or at_least beside kind = 'validity', and nowhere else"
            )


class CommandEntry(Struct, frozen=True, kw_only=True):
    """One command of a suite, such as the load client of a server, spread over a matrix.

    ``metric`` and ``skip`` say which times count that it prints, as of `ci-perf check`; ``require``
    is a pattern without which a run counts as failed. ``reads`` is "FORMAT" of what it writes to
    "{output}", or "FORMAT:FILE"; ``metrics`` are those that are taken of that, by name. ``server``
    is started once a launch, and is ready when the URL ``ready`` answers, within ``ready_s``. In
    each of them "{port}" is a free port and "{output}" a file of the run, whose text counts as
    printed; so are "{KEY}" of the matrix.
    """

    name: Name
    owner: Text = ""
    command: Annotated[Text, msgspec.Meta(min_length=1)]
    metric: Text = ""
    skip: Count = 0
    require: Text = ""
    reads: Text = ""
    metrics: dict[Key, OwnMetric] = {}
    server: Text = ""
    ready: Text = ""
    ready_s: PositiveSeconds = 300.0
    matrix: dict[Key, Annotated[tuple[Scalar, ...], msgspec.Meta(min_length=1)]] = {}
    inputs: tuple[InputPattern, ...] = ()
    limits: dict[str, LimitEntry] = {}
    protocol: dict[str, Scalar] = {}

    def __post_init__(self) -> None:
        """Refuse patterns that cannot be read, before anything is launched."""
        parse_metric(self.metric)
        try:
            re.compile(self.require)
        except re.error as error:
            raise ValueError(
                f"require: expected a regular expression, found {self.require!r}: {error}"
            ) from None
        check_reads(self.reads, self.command)
        if self.ready and not self.ready.startswith(("http://", "https://")):
            raise ValueError(f"ready: expected a URL of http or https, found {self.ready!r}")
        if self.metrics and not self.reads:
            raise ValueError("metrics: expected `reads` to say what they are read from, found none")
        if self.reads == READS_TEXT:
            for name, metric in self.metrics.items():
                parse_pattern(metric.find, f"metrics.{name}.find")

    def to_entry(self) -> Entry:
        """Return the entry of a workload that runs the command."""
        texts = {"command": self.command, "metric": self.metric, "require": self.require}
        texts |= {"reads": self.reads, "metrics": self._spell_metrics()}
        texts |= {"server": self.server, "ready": self.ready}
        numbers: dict[str, Scalar] = {"skip": self.skip} if self.skip else {}
        numbers |= {"ready_s": self.ready_s} if self.server else {}
        return Entry(
            workload=self.name,
            name=self.name,
            parameters={**{key: text for key, text in texts.items() if text}, **numbers},
            matrix=self.matrix,
            inputs=self.inputs,
            limits={**self.limits, **self._limits()},
            protocol={**COMMAND_PROTOCOL, **self.protocol},
        )

    def _spell_metrics(self) -> str:
        """Spell what is measured, without the limits, as a parameter: other metrics, other work."""
        plain = {
            name: msgspec.structs.replace(
                metric, limit=msgspec.UNSET, gate=msgspec.UNSET, require=msgspec.UNSET
            )
            for name, metric in self.metrics.items()
        }
        return msgspec.json.encode(plain, order="sorted").decode() if plain else ""

    def _limits(self) -> dict[str, LimitEntry]:
        return {
            name_own(metric.kind, name): LimitChange(
                limit=metric.limit, gate=metric.gate, require=metric.require
            )
            for name, metric in self.metrics.items()
            if metric.kind != "validity"
        }


# A call of microseconds needs no long block, and a launch that is forked costs little: many short
# ones say more than few long ones. A monitor of its own would cost more than the launch.
TESTS_PROTOCOL: dict[str, Scalar] = {
    "allocator": OWN,
    "warmup_min_s": 0.05,
    "block_min_s": 0.005,
    "timed_min_s": 0.1,
    "timed_max_s": 5.0,
    "monitor_hz": 0,
}


class PytestEntry(Struct, frozen=True, kw_only=True):
    """Tests of pytest that measure something: each is a workload.

    ``paths`` are files, folders and node ids below the root; ``keyword`` and ``marker`` leave those
    that the options -k and -m of pytest leave.
    """

    paths: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
    keyword: Text = ""
    marker: Text = ""
    inputs: tuple[InputPattern, ...] = ()
    protocol: dict[str, Scalar] = {}


class SuiteSpec(Struct, frozen=True, kw_only=True):
    """A named suite.

    ``device`` is where it belongs. ``canaries`` says whether fixed programs watch the machine
    meanwhile. ``fail_on`` is the mildest finding that fails a job. ``fresh`` is how long
    `ci-perf screen` believes that a machine is still as its newest session was. ``owner`` is who is
    told of a loss of a workload that names none.
    """

    description: Text = ""
    owner: Text = ""
    device: SuiteDevice = "auto"
    canaries: bool = True
    fail_on: FailOn = "proven"
    fresh: Hours = "48h"
    limits: dict[str, LimitEntry] = {}
    protocol: dict[str, Scalar] = {}
    workloads: tuple[Entry, ...] = ()
    commands: tuple[CommandEntry, ...] = ()
    pytest: tuple[PytestEntry, ...] = ()

    def find_owner(self, workload: str) -> str | None:
        """Return who is told of a loss of a workload: the owner of its entry, else of the suite."""
        owners = {each.name: each.owner for each in self.commands}
        owners |= {each.name or each.workload: each.owner for each in self.workloads}
        names = [
            name
            for name, owner in owners.items()
            if owner and (workload == name or workload.startswith(f"{name}."))
        ]
        return owners.get(max(names, key=len, default=""), self.owner) or None


class SuiteFile(Struct, frozen=True, kw_only=True):
    """The whole of suite.toml. Inner tables override outer ones, key by key."""

    schema_version: int = SCHEMA_VERSION
    limits: dict[str, LimitEntry] = {}
    protocol: dict[str, Scalar] = {}
    environment: Tiers = Tiers()
    setup: Setup = Setup()
    # Folders of the checkout that go on sys.path before what is installed: `src`, say.
    python_path: tuple[Text, ...] = ()
    # Files of the repository on which every workload depends: a change of one is measured.
    inputs: tuple[InputPattern, ...] = ()
    container: Container = Container()
    suites: dict[Name, SuiteSpec]


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of a suite: for each of its workloads, and for one that is no longer in it.

    ``trimmed``: by the machine's calibration, a mean of pairs leaves out the outermost ones.
    """

    default: dict[str, Limit]
    workloads: dict[str, dict[str, Limit]] = {}
    trimmed: bool = False

    def of(self, workload: str) -> dict[str, Limit]:
        """Return the limit of each metric of this workload, by metric name."""
        return self.workloads.get(workload, self.default)

    def gate_only(self, workload: str, limits: Mapping[str, Limit]) -> dict[str, Limit]:
        """Return the limits of a workload under which these alone gate."""
        return {
            name: msgspec.structs.replace(limit, gate=name in limits)
            for name, limit in {**self.of(workload), **limits}.items()
        }


class PlannedWorkload(Struct, frozen=True, kw_only=True):
    """One workload, ready to be launched: everything resolved, nothing imported.

    ``own_statistic`` says that suite.toml sets the statistic of the protocol: the calibration of
    the machine then leaves it alone. ``inputs`` are patterns of files that it depends on.
    ``collects`` are words for the `prepare` of its file, where launches are forked: unless that
    ``has_threads``, which would be missing.
    """

    id: Name
    file: Text
    description: Text
    parameters: dict[str, Scalar]
    protocol: Protocol
    launch: Launch = "process"
    world_size: AtLeastOne = 1
    inputs: tuple[InputPattern, ...] = ()
    collects: tuple[Text, ...] = ()
    has_threads: bool = False
    own_statistic: bool = False


class Plan(Struct, frozen=True, kw_only=True):
    """What one session will measure. ``selection`` is empty when the whole suite is meant.

    ``commands`` says that the suite has some, selected or not: they may use any GPU. ``tests`` are
    to be collected once the checkout is ready: a workload for each of them. ``left_out`` says by
    node id why a test that was collected is none.
    """

    suite: SuiteName
    root: Text
    selection: tuple[str, ...]
    tiers: Tiers
    limits: Limits
    device: SuiteDevice
    canaries: bool
    fail_on: FailOn = "proven"
    fresh: Hours = "48h"
    setup: Setup = Setup()
    python_path: tuple[Text, ...] = ()
    container: Container = Container()
    workloads: tuple[PlannedWorkload, ...]
    commands: bool = False
    tests: tuple[PlannedWorkload, ...] = ()
    left_out: dict[str, str] = {}


def find_node(launch: Launch, parameters: Mapping[str, Scalar]) -> str:
    """Return the node id of a workload that is a test of pytest; empty for any other workload."""
    return str(parameters.get("node", "")) if launch == "fork" else ""


def find_family(workload: str, parameters: Mapping[str, Scalar]) -> tuple[str, str]:
    """Return what a workload shares with itself at other parameters: the begin of its id, a source.

    "matmul.size=256" has ("matmul", ""), and the test "f.py::test_add[128]", whose id is
    "f.test_add.128", ("f.test_add", "f.py::test_add"). Both are empty where there is no parameter.
    """
    test, name = _TEST.match(str(parameters.get("node", ""))), workload.rpartition(".")[0]
    if test and name.rpartition(".")[2] == test[2]:
        return name, test[1]
    values = _MATRIX_VALUE.finditer(workload)
    first = next((value for value in values if value[1] in parameters), None)
    return (workload[: first.start()], "") if first else ("", "")


def is_selected(workload: str, selection: tuple[str, ...]) -> bool:
    """Whether this id was asked for: by itself, or by the name before its matrix values."""
    return not selection or any(
        workload == name or workload.startswith(f"{name}.") for name in selection
    )
