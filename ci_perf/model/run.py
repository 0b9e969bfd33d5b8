"""What one sitting measured: run.json."""

from enum import Enum
from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import (
    SCHEMA_VERSION,
    AtLeastOne,
    Bytes,
    Count,
    Finite,
    Items,
    Name,
    PositiveSeconds,
    Scalar,
    Seconds,
    Statistic,
    Struct,
    SuiteName,
    Text,
)
from ci_perf.model.environment import Environment
from ci_perf.model.suite import Protocol


class Tool(Struct, frozen=True, kw_only=True):
    """What wrote the file."""

    name: Literal["ci-perf"] = "ci-perf"
    version: Text


class Source(Struct, frozen=True, kw_only=True):
    """The code that was measured. ``commit`` is "unknown" outside a git repository."""

    commit: Text
    branch: Text
    dirty: bool


class Status(Enum):
    """How far the machine can be trusted, worst last."""

    VALID = "valid"
    DEGRADED = "degraded"
    INVALID = "invalid"


class Reason(Struct, frozen=True, kw_only=True):
    """Why a run is not simply valid: a code that docs/measuring.md explains, and the figures."""

    code: Name
    status: Status
    detail: Text


class Validity(Struct, frozen=True, kw_only=True):
    """The verdict on the machine, which comes before the verdict on the code.

    ``status`` is that of the worst reason; without reasons it is valid.
    """

    status: Status
    reasons: tuple[Reason, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a verdict without a reason, and a reason without its verdict."""
        order = list(Status)
        found = (reason.status for reason in self.reasons)
        worst = max(found, key=order.index, default=Status.VALID)
        if self.status is not worst:
            raise ValueError(
                f"expected status {worst.value!r}, which follows from the reasons, "
                f"found {self.status.value!r}"
            )


class Canary(Struct, frozen=True, kw_only=True):
    """A fixed program that no pull request can change: when it moved, the machine moved."""

    name: Name
    position: Literal["before", "between", "after"]
    median_s: PositiveSeconds


class Phase(Enum):
    """Where in its life a process was."""

    LAUNCH = "launch"
    IMPORT = "import"
    BUILD = "build"
    FIRST_STEP = "first_step"
    WARMUP = "warmup"
    TIMED = "timed"
    MEMORY = "memory"
    TEARDOWN = "teardown"


class PhaseTimes(Struct, frozen=True, kw_only=True):
    """How long each phase took, timed apart."""

    import_s: Seconds
    build_s: Seconds
    first_step_s: PositiveSeconds
    warmup_s: Seconds
    timed_s: Seconds
    memory_s: Seconds


class Warmup(Struct, frozen=True, kw_only=True):
    """How the warm-up went: ``stable``, or ``cap`` when it never settled."""

    steps: Count
    stopped: Literal["stable", "cap"]


class Timed(Struct, frozen=True, kw_only=True):
    """The timed region. ``block_s`` are seconds per *step*, one value per block.

    ``statistic`` names the block that speaks for the process.
    """

    steps_per_block: AtLeastOne
    stopped: Literal["quiet", "settled", "cap"]
    statistic: Statistic
    block_s: Annotated[tuple[PositiveSeconds, ...], msgspec.Meta(min_length=1, max_length=100_000)]


class DeviceMemory(Struct, frozen=True, kw_only=True):
    """Counters of torch's CUDA allocator over the memory pass."""

    peak_allocated_bytes: Bytes
    peak_reserved_bytes: Bytes
    alloc_retries: Count


class Memory(Struct, frozen=True, kw_only=True):
    """Peaks. ``device`` is ``None`` on a CPU: absent is not zero."""

    host_rss_peak_bytes: AtLeastOne
    device: DeviceMemory | None


class CompileCounts(Struct, frozen=True, kw_only=True):
    """What torch.compile did in this process: exact counts."""

    graphs: Count
    graph_breaks: Count
    recompiles: Count


class Process(Struct, frozen=True, kw_only=True):
    """One launch: the unit of judgement. ``losses`` are those of the first steps."""

    index: Count
    phases: PhaseTimes
    warmup: Warmup
    timed: Timed
    memory: Memory
    compiles: CompileCounts
    losses: tuple[Finite, ...]


class WorkerResult(Struct, frozen=True, kw_only=True):
    """What a child process hands to its parent."""

    items_per_step: Items
    item_unit: Name
    process: Process


class Measured(Struct, frozen=True, kw_only=True):
    """A workload that has numbers."""

    workload: Name
    description: Text
    parameters: dict[str, Scalar]
    protocol: Protocol
    items_per_step: Items
    item_unit: Name
    processes: Annotated[tuple[Process, ...], msgspec.Meta(min_length=1)]


class Failed(Struct, frozen=True, kw_only=True):
    """A workload that has none, and why. ``processes`` are those that finished before it failed."""

    workload: Name
    description: Text
    parameters: dict[str, Scalar]
    phase: Phase
    reason: Text
    output: Text
    processes: tuple[Process, ...] = ()


class Run(Struct, tag_field="type", tag="run", frozen=True, kw_only=True):
    """One sitting of the machine: the whole of run.json."""

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    id: Name
    started_at: Text
    duration_s: Seconds
    source: Source
    suite: SuiteName
    selection: tuple[str, ...]
    environment: Environment
    validity: Validity
    canaries: tuple[Canary, ...] = ()
    measured: tuple[Measured, ...]
    failed: tuple[Failed, ...]

    def __post_init__(self) -> None:
        """Refuse a workload that appears twice: nobody could say which of them is judged."""
        seen: set[str] = set()
        names = [one.workload for one in self.measured] + [one.workload for one in self.failed]
        for name in names:
            if name in seen:
                raise ValueError(f"workload {name!r} appears twice")
            seen.add(name)
