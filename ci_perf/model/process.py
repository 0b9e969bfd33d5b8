"""What one process measured, the unit of judgement; and the profile of a workload."""

from enum import Enum
from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import (
    Amount,
    AtLeastOne,
    Bytes,
    Count,
    Finite,
    Items,
    Key,
    Name,
    PositiveSeconds,
    Scalar,
    Seconds,
    Source,
    Statistic,
    Struct,
    Text,
)
from ci_perf.model.metrics import check_own
from ci_perf.model.program import Program
from ci_perf.model.validity import Evidence

# How the reason of a failure begins when the process was stopped at its time limit.
NO_RESULT_IN_TIME = "no result within the time limit"


class Phase(Enum):
    """Where in its life a process was."""

    LAUNCH = "launch"
    IMPORT = "import"
    BUILD = "build"
    FIRST_STEP = "first_step"
    FINGERPRINT = "fingerprint"
    WARMUP = "warmup"
    TIMED = "timed"
    MEMORY = "memory"
    COUNTERS = "counters"
    TEARDOWN = "teardown"


class PhaseTimes(Struct, frozen=True, kw_only=True):
    """How long each phase took, timed apart."""

    import_s: Seconds
    build_s: Seconds
    first_step_s: PositiveSeconds
    fingerprint_s: Seconds
    warmup_s: Seconds
    timed_s: Seconds
    memory_s: Seconds
    counters_s: Seconds


class Warmup(Struct, frozen=True, kw_only=True):
    """How the warm-up went: ``stable``, or ``cap`` when it never settled."""

    steps: Count
    stopped: Literal["stable", "cap"]


Samples = Annotated[tuple[PositiveSeconds, ...], msgspec.Meta(min_length=1, max_length=100_000)]


class Quantiles(Struct, frozen=True, kw_only=True):
    """The single steps of the timed region: how uneven they are within a process."""

    p05: PositiveSeconds
    p50: PositiveSeconds
    p95: PositiveSeconds


# Why no more blocks were timed: another launch would tell more; there was no time left; of a
# resident pair, the partner had no time left.
Stop = Literal["enough", "cap", "partner"]


class Timed(Struct, frozen=True, kw_only=True):
    """The timed region. All are seconds per *step*, one value per block.

    ``block_s`` is by the host's clock, from before the first step until the device has finished
    the last one. ``device_s`` is how long the device was at it, by events around each step, and
    ``issue_s`` how long the host took to queue the first step of the block on an idle device; both
    are `None` on a CPU. ``cpu_s`` is the CPU time of the process and all below it; `None` on CUDA,
    where nobody knows it, and in files of earlier versions. ``tasks`` counts the threads of all of
    them after the last block, where CPU time is known. ``statistic`` names the block that speaks
    for the process.
    """

    steps_per_block: AtLeastOne
    stopped: Stop
    statistic: Statistic
    block_s: Samples
    device_s: Samples | None
    issue_s: Samples | None
    cpu_s: Samples | None = None
    tasks: Count | None = None
    steps: Quantiles


class DeviceMemory(Struct, frozen=True, kw_only=True):
    """Counters of torch's CUDA allocator over the memory pass; `None` is what it does not count.

    An allocator other than torch's own (``backend:cudaMallocAsync``) counts no retries.
    """

    peak_allocated_bytes: Bytes | None
    peak_reserved_bytes: Bytes | None
    peak_active_bytes: Bytes | None
    alloc_retries: Count | None
    out_of_memory: Count | None


class Memory(Struct, frozen=True, kw_only=True):
    """Peaks; of several ranks or cards, the highest of any.

    ``host_rss_peak_bytes`` is the largest resident set of the process itself, ``below_bytes`` what
    the processes below it had beside that while it was timed: 0 without any, `None` where nobody
    could see them. ``below_by`` says how they were added up: by their share of the pages that they
    share with each other ("pss"), or by their resident sets ("rss"). ``below_count`` is how many
    processes held that, ``below_largest_bytes`` the peak of the largest one by itself; both are 0
    in files of earlier versions. Of a command, the process itself is its largest one, not ours.
    ``device`` is ``None`` on a CPU: absent is not zero.
    """

    host_rss_peak_bytes: AtLeastOne
    below_bytes: Bytes | None = 0
    below_by: Literal["", "pss", "rss"] = ""
    below_count: Count = 0
    below_largest_bytes: Bytes = 0
    device: DeviceMemory | None


class CompileCounts(Struct, frozen=True, kw_only=True):
    """What torch.compile did in this process: exact counts.

    ``break_reasons`` holds each different graph break: file, line and dynamo's reason. ``cache``
    says whether the folders for compiled code were empty when the process started.
    """

    graphs: Count
    graph_breaks: Count
    recompiles: Count
    break_reasons: tuple[Text, ...] = ()
    cache: Literal["empty", "filled"] = "empty"


class Work(Struct, frozen=True, kw_only=True):
    """What one step asks for, counted while it ran once more under watch.

    ``operators`` are calls of torch operators, ``flops`` those of the operators that torch knows a
    formula for. Both are `None` with a reason in ``absent``.
    """

    operators: Count | None
    flops: Count | None
    parameters: Count | None
    absent: Text = ""


class KernelCount(Struct, frozen=True, kw_only=True):
    """How often a step launches a kernel with a grid, blocks and dynamic shared memory."""

    name: Text
    grid: tuple[Count, ...]
    block: tuple[Count, ...]
    shared_bytes: Bytes
    count: Count


class Copies(Struct, frozen=True, kw_only=True):
    """Copies of a step in one direction, and their bytes together."""

    count: Count
    bytes: Bytes


class DeviceWork(Struct, frozen=True, kw_only=True):
    """What one step makes the GPUs do, by torch's profiler: exact, without times.

    ``launched`` counts all kernels; ``kernels`` has the most frequent ones, and ``sequence`` is a
    digest of all in their order. ``host_waits`` are calls that return when the device is done.
    ``copies`` are by direction ("HtoD"). ``spills`` are spilled registers of the kernels that
    Triton has compiled; `None` without any. ``absent`` says why nothing is known.
    """

    kernels: tuple[KernelCount, ...] = ()
    launched: Count = 0
    sequence: Text = ""
    host_waits: Count = 0
    graph_replays: Count = 0
    copies: dict[Name, Copies] = {}
    spills: Count | None = None
    absent: Text = ""


class GeneratedKernel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A kernel that torch.compile has generated: its name without its number in a graph.

    ``digest`` is of its source without comments and paths. The most ``registers`` of its variants,
    and the sum of ``spills``, are known of a Triton kernel that the driver has loaded. ``source``
    comes from a launch that was asked for it; a run file has none.
    """

    name: Text
    digest: Text
    registers: Count | None = None
    spills: Count | None = None
    source: Source = ""


class GeneratedCode(Struct, frozen=True, kw_only=True):
    """All kernels that torch.compile has generated; ``absent`` says why they are not known."""

    kernels: tuple[GeneratedKernel, ...] = ()
    absent: Text = ""


class Fingerprint(Struct, frozen=True, kw_only=True):
    """The numbers that the workload computes: losses of the first steps, then of its output.

    ``checksums`` are, per tensor of the output, the mean of its absolute values and a mean in
    which each place has a weight of its own. ``varies`` is the author's reason why they differ
    from process to process; empty when they must not. ``absent`` says why there are no numbers
    where there was no time for them.
    """

    losses: tuple[Finite, ...] = ()
    checksums: tuple[Finite, ...] = ()
    varies: Text = ""
    absent: Text = ""


class StepPhase(Struct, frozen=True, kw_only=True):
    """A named part of a step: seconds per step by the host's clock and by the device's."""

    host_s: Seconds
    device_s: Seconds | None


class StepPhases(Struct, frozen=True, kw_only=True):
    """The parts of a step, from a pass of their own; ``step_s`` is the step in that pass."""

    step_s: PositiveSeconds
    phases: dict[Name, StepPhase]


class Ranks(Struct, frozen=True, kw_only=True):
    """Several ranks that worked as one process: every time is the slowest rank's.

    ``world_size`` and ``restarts`` are what the ranks themselves found. ``arrival_skew_s`` is how
    long the first rank would wait for the last one at the end of a step without communication.
    """

    world_size: AtLeastOne
    restarts: Count
    backend: Name
    arrival_skew_s: Seconds | None


class Process(Struct, frozen=True, kw_only=True):
    """One launch: the unit of judgement.

    ``metrics`` are the user's own, by `metrics.name_own`, in the units of `metrics.find_metric`.
    ``printed_times`` is how many times a run of a command printed, with those that are skipped: the
    mean over its runs. ``absent`` says, by the name of an instrument, why it shows nothing: what
    comes after the timed region has failed, or there was no time for it. ``replaced`` names the
    clocks that were others after the timed region than before the author's code came.
    """

    index: Count
    phases: PhaseTimes
    warmup: Warmup
    timed: Timed
    memory: Memory
    compiles: CompileCounts | None
    work: Work
    fingerprint: Fingerprint
    step_phases: StepPhases | None = None
    device_work: DeviceWork | None = None
    generated: GeneratedCode | None = None
    ranks: Ranks | None = None
    evidence: Evidence | None = None
    metrics: dict[Name, Amount] = {}
    printed_times: Amount | None = None
    absent: dict[Name, Text] = {}
    replaced: tuple[Name, ...] = ()

    def __post_init__(self) -> None:
        """Refuse numbers that nobody could judge."""
        for name, value in self.metrics.items():
            check_own(name, value)


class Printing(Struct, frozen=True, kw_only=True):
    """How a command printed its step times: for ``longest_s`` seconds at most came none.

    ``against`` says why it cannot be stopped beside a copy of itself, empty where it can.
    """

    against: Text = ""
    longest_s: Seconds = 0.0


class WorkerResult(Struct, frozen=True, kw_only=True):
    """What a child process hands to its parent. ``knobs`` are those that held while it timed.

    ``printing`` is that of a command whose step times are printed. ``program`` is that of a
    recording launch, whose other numbers mean nothing. ``forked``: the process did not import its
    libraries itself. ``late_libraries`` are those that it imported as `user_code.LateImports` says.
    """

    items_per_step: Items
    item_unit: Name
    items_per_epoch: Items | None = None
    precision: Text
    knobs: dict[Key, Scalar]
    process: Process
    printing: Printing | None = None
    program: Program | None = None
    forked: bool = False
    late_libraries: tuple[Text, ...] = ()


class Exhausted(Struct, frozen=True, kw_only=True):
    """What is known of a process that ran out of memory.

    ``kind`` says whose memory: the GPU's, the host's, or what the limit of the process allowed.
    ``allocator`` is the summary of torch's allocator.
    """

    kind: Literal["device", "host", "limit"]
    host_rss_peak_bytes: Bytes | None = None
    device: DeviceMemory | None = None
    allocator: Text = ""


def has_filled_gpu(exhausted: Exhausted | None) -> bool:
    """Whether it was the memory of a GPU that ran out."""
    return exhausted is not None and exhausted.kind == "device"


# --- what the processes showed of a workload beside the judged metrics


class GpuUse(Struct, frozen=True, kw_only=True):
    """One GPU while the workload was timed.

    ``utilization`` (a share, 0 to 1) and ``power_w`` are means over the processes,
    ``memory_peak_bytes`` is the most that was in use, by whomever. ``absent`` says what the driver
    answered for a value that is `None`.
    """

    uuid: Name
    utilization: Amount | None
    power_w: Amount | None
    memory_peak_bytes: Bytes | None
    absent: dict[Key, Text] = {}


class BreakEven(Struct, frozen=True, kw_only=True):
    """When compiling pays: a compiled workload beside the same one that is not compiled (eager).

    ``cost_s`` is how much longer the first step takes, by the medians of the processes, ``gain_s``
    how much shorter each later one is. ``is_faster``: in every process than in any process of the
    eager one. ``cache`` says whether the folders for compiled code were empty before.
    """

    eager: Name
    cache: Literal["empty", "filled"]
    cost_s: float
    gain_s: float
    is_faster: bool


class SideProfile(Struct, frozen=True, kw_only=True):
    """What the launches of one side show: the step time of their row, and the parts of a step."""

    step_time_s: Amount
    phases: dict[Name, StepPhase] = {}
    gpus: tuple[GpuUse, ...] = ()
    device_work: DeviceWork | None = None
    generated: GeneratedCode | None = None


class Profile(Struct, frozen=True, kw_only=True):
    """One workload. Where base and head were launched in turns, both sides are those launches."""

    workload: Name
    items_per_step: Items
    item_unit: Name
    items_per_epoch: Items | None = None
    head: SideProfile
    base: SideProfile | None = None
    break_evens: tuple[BreakEven, ...] = ()
