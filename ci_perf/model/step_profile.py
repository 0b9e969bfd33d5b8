"""What one step of a workload does, profiled in launches that no verdict depends on."""

from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import Amount, Bytes, Count, Name, NameOrEmpty, Seconds, Struct, Text
from ci_perf.model.program import Digest, RelativePath

MOST_OPERATORS = 500
MOST_FUNCTIONS = 500
MOST_LIBRARY_CALLS = 1_000
MOST_ALLOCATIONS = 100
MOST_PROFILED_PAIRS = 10
MOST_TIMED_OPERATORS = 200
MOST_KERNELS = 200
MOST_PHASES = 50
MOST_RANKS = 10_000

# Why a device was idle. "data": the host was in the phase "data", or in a DataLoader.
# "synchronisation": the host had waited until the queue was empty. "operators": it was in operators
# of torch or in calls of the driver, "outside": in neither, which is Python. "device": the work had
# been queued, and waited for its start. "unlinked": the trace does not say what launched the work.
IdleReason = Literal["data", "synchronisation", "operators", "outside", "device", "unlinked"]
# Who loads what a DataLoader gives: the process that runs the step, or workers of its own.
LoaderKind = Literal["", "process", "workers"]


class AuthorFunction(Struct, frozen=True, kw_only=True):
    """A function of the repository, by file and qualified name ("Net.forward").

    ``line`` is where it begins in this commit, from 1; it never joins two commits.
    """

    file: RelativePath
    function: Text
    line: Count


class OperatorUse(Struct, frozen=True, kw_only=True):
    """How often a step dispatches one operator from one function, with equal arguments.

    ``operator`` is its name with its namespace ("aten::mm"). ``signature`` is the digest of the
    shapes, types, strides, integers and flags of its arguments, ``arguments`` the shapes and types
    for a person. ``phase`` is that of ``context.phase`` in which it ran; empty outside of them.
    An operator of the backward pass has the function of its forward operator. ``caller`` is `None`
    where no function of the repository was on the stack, ``line`` is where it stands in the
    caller's file. ``calls`` is per step. ``call_s`` is the 25 % quantile of the seconds of one
    call, the device's work included; `None` where calls were not timed.
    """

    operator: Text
    signature: Digest
    arguments: Text
    phase: Text = ""
    is_backward: bool = False
    caller: AuthorFunction | None = None
    line: Count = 0
    calls: Amount
    call_s: Seconds | None = None


class FunctionUse(Struct, frozen=True, kw_only=True):
    """How often a step calls a function of the repository, and the function's own seconds per step.

    Own is what passes in the function and in what it calls outside of the repository, torch
    included, until the next function of the repository is called. ``working_s`` is CPU time of the
    thread; ``waiting_s`` is the rest of the time of the wall, without that for which the thread was
    ready and others had its CPU. Both are 25 % quantiles over steps, `None` where they were not
    timed. ``phase`` is that in which most of this passes. ``waits_in`` is the built-in function in
    which most of the waiting passes in every step ("time.sleep"); empty where none is known.
    """

    function: AuthorFunction
    calls: Amount
    phase: Text = ""
    working_s: Seconds | None = None
    waiting_s: Seconds | None = None
    waits_in: Text = ""


class LibraryCall(Struct, frozen=True, kw_only=True):
    """How often a function of the repository itself calls one of a library, or a built-in one.

    ``callee`` is its name ("json.dumps", "zlib.crc32", "str.join"); a class stands for its
    ``__init__``. ``line`` is where the call stands in the caller's file. ``calls`` are per step; a
    generator that goes on counts as called. ``working_s`` and ``waiting_s`` are as in FunctionUse:
    of all these calls together, without what the repository's functions do in them. Torch is not
    among them, nor what the garbage collector calls.
    """

    callee: Text
    caller: AuthorFunction
    line: Count = 0
    calls: Amount
    working_s: Seconds | None = None
    waiting_s: Seconds | None = None


class Allocation(Struct, frozen=True, kw_only=True):
    """Bytes of tensors that operators at one line have made.

    ``peak_bytes`` are those alive when all tensors together were largest, ``growth_bytes`` those
    that each step leaves behind. ``in_build`` tells what `build` made from what steps made.
    """

    operator: Text
    caller: AuthorFunction | None = None
    line: Count = 0
    in_build: bool = False
    peak_bytes: Bytes
    growth_bytes: Bytes = 0


class MemoryUse(Struct, frozen=True, kw_only=True):
    """The tensors of one launch by the lines that made them, largest first.

    ``peak_bytes`` are all that were alive when they were largest; ``growth_bytes`` is what each
    step leaves behind. ``cut`` is how many lines are missing, because there were too many. What
    others than torch's operators allocate is not seen.
    """

    peak_bytes: Bytes
    growth_bytes: Bytes = 0
    allocations: Annotated[tuple[Allocation, ...], msgspec.Meta(max_length=MOST_ALLOCATIONS)] = ()
    cut: Count = 0


class OperatorTimes(Struct, frozen=True, kw_only=True):
    """What all calls of one operator take in a step, by the trace of torch's profiler.

    ``operator`` is empty for what was launched outside of operators. ``host_s`` are its own
    seconds, without the operators that it calls; ``wait_s`` those in which it waits for the device;
    ``device_s`` those of the kernels, copies and sets that it launched itself.
    """

    operator: Text
    calls: Amount
    host_s: Seconds
    wait_s: Seconds = 0.0
    device_s: Seconds = 0.0


class PhaseUse(Struct, frozen=True, kw_only=True):
    """Seconds of the host per step in one part that `context.phase` or the author has marked."""

    phase: Text
    host_s: Seconds


class HostTimes(Struct, frozen=True, kw_only=True):
    """What the host did in a profiled step, by the trace of torch's profiler; seconds per step.

    ``step_s`` is longer than without a profiler. Of it, ``data_s`` passed in the phase "data" or in
    a DataLoader, ``waiting_s`` in calls that wait for the device, ``operators_s`` in operators and
    calls of the driver, each without the ones before; the rest passed in Python. ``loader`` says
    who loads. ``cut`` is how many operators are missing, because there were too many.
    """

    steps: Count
    step_s: Seconds
    data_s: Seconds = 0.0
    waiting_s: Seconds = 0.0
    operators_s: Seconds = 0.0
    loader: LoaderKind = ""
    phases: Annotated[tuple[PhaseUse, ...], msgspec.Meta(max_length=MOST_PHASES)] = ()
    operators: Annotated[
        tuple[OperatorTimes, ...], msgspec.Meta(max_length=MOST_TIMED_OPERATORS)
    ] = ()
    cut: Count = 0


class DeviceIdle(Struct, frozen=True, kw_only=True):
    """How long the device was idle for one reason, and in how many gaps, per step.

    ``operator`` is where most of it passed: in which the host waited by ``call``
    ("cudaStreamSynchronize"), or which launched what ended the gap. Empty outside of operators.
    """

    reason: IdleReason
    idle_s: Seconds
    gaps: Amount
    operator: Text = ""
    call: Text = ""


class KernelUse(Struct, frozen=True, kw_only=True):
    """What the device spends on one kernel, or on one kind of copy or set, per step."""

    kernel: Text
    calls: Amount
    busy_s: Seconds


class DeviceTimes(Struct, frozen=True, kw_only=True):
    """What a device did per step, from the first work whose launch the trace shows to the last.

    ``span_s`` is the sum of ``busy_s``, in which a kernel, a copy or a set ran on any stream, and
    of all in ``idle``, longest first. In ``copying_s`` of ``busy_s`` no kernel ran; ``pageable_s``
    are copies from or to memory that was not pinned. ``work`` counts kernels, copies and sets,
    ``unlinked`` those whose launch the trace does not show. ``other_devices`` worked less, and are
    not described.
    """

    span_s: Seconds
    busy_s: Seconds
    copying_s: Seconds = 0.0
    pageable_s: Seconds = 0.0
    work: Amount
    unlinked: Amount = 0.0
    unlinked_s: Seconds = 0.0
    idle: tuple[DeviceIdle, ...] = ()
    kernels: Annotated[tuple[KernelUse, ...], msgspec.Meta(max_length=MOST_KERNELS)] = ()
    cut: Count = 0
    other_devices: Count = 0


class RankTimes(Struct, frozen=True, kw_only=True):
    """How long each of several ranks works by itself in a step; a profile is that of rank 0.

    ``own_s`` is in the order of the ranks: seconds of the workload's `local_step`, or, without one
    on a CPU, CPU time of the thread that runs the step. Empty where neither is known.
    """

    world_size: Count
    own_s: Annotated[tuple[Seconds, ...], msgspec.Meta(max_length=MOST_RANKS)] = ()


class StepProfile(Struct, frozen=True, kw_only=True):
    """What one launch found. What differed between its steps is in ``varies``, and not counted.

    An entry is "aten::mm in Net.forward (src/net.py)", "json.dumps in log (src/log.py)", "aten::mm"
    where no function of the repository was on the stack, "calls of Net.forward (src/net.py)", or at
    last "and 12 more". ``cut`` is how many uses are missing, because there were too many.
    ``step_s`` is the median time of a step of this launch that nothing watched; a compiled step
    runs eagerly in such a launch. ``memory`` is `None` where it was not followed. ``host`` and
    ``device`` are of the trace of torch's profiler, which ``trace_file`` names where it was kept.
    Where somebody has asked for a snapshot of CUDA's memory, ``snapshot_file`` names it, and
    ``memory_summary`` is the table of torch's allocator for the same steps. ``ranks`` is `None` for
    a workload of one process. ``missing`` says why something is not there, by "step_s", "operators"
    (their times), "functions" (theirs), "library_calls", "library_times", "memory", "trace",
    "device", "ranks", "snapshot", "trace_file", "snapshot_file" or "teardown".
    ``absent`` is a sentence: why there is nothing; all else is empty then.
    """

    steps: Count
    step_s: Seconds | None = None
    operators: Annotated[tuple[OperatorUse, ...], msgspec.Meta(max_length=MOST_OPERATORS)] = ()
    functions: Annotated[tuple[FunctionUse, ...], msgspec.Meta(max_length=MOST_FUNCTIONS)] = ()
    library_calls: Annotated[
        tuple[LibraryCall, ...], msgspec.Meta(max_length=MOST_LIBRARY_CALLS)
    ] = ()
    memory: MemoryUse | None = None
    host: HostTimes | None = None
    device: DeviceTimes | None = None
    trace_file: NameOrEmpty = ""
    snapshot_file: NameOrEmpty = ""
    memory_summary: Text = ""
    ranks: RankTimes | None = None
    varies: tuple[Text, ...] = ()
    cut: Count = 0
    missing: dict[Name, Text] = {}
    absent: Text = ""


class ProfiledPair(Struct, frozen=True, kw_only=True):
    """One launch of each side."""

    base: StepProfile
    head: StepProfile


class ProfiledPairs(Struct, frozen=True, kw_only=True):
    """Launches of both sides of a workload whose row moved.

    ``trouble`` is why there is no pair, or no further one.
    """

    workload: Name
    pairs: Annotated[tuple[ProfiledPair, ...], msgspec.Meta(max_length=MOST_PROFILED_PAIRS)] = ()
    trouble: Text = ""
