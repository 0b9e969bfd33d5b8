"""What a launch that explains finds in a step, and why a row moved by such launches."""

from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import (
    Amount,
    Count,
    Finite,
    Name,
    NameOrEmpty,
    Seconds,
    Struct,
    Text,
)
from ci_perf.model.program import Digest

MOST_OPERATORS = 500
MOST_FUNCTIONS = 500
MOST_CALLEES = 50
MOST_PROFILED_PAIRS = 10
# Fewer pairs do not tell a time from chance.
FEWEST_PAIRS = 3
MOST_TIMED_OPERATORS = 200
MOST_VARYING = 100

# What measured code names; the launch cuts longer ones, for a report holds many of them.
NAME_CHARS = 200
PATH_CHARS = 1_000
ShortText = Annotated[str, msgspec.Meta(max_length=NAME_CHARS)]

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

    file: Annotated[str, msgspec.Meta(max_length=PATH_CHARS)]
    function: ShortText
    line: Count


class OperatorUse(Struct, frozen=True, kw_only=True):
    """How often a step dispatches one operator from one function, with equal arguments.

    ``operator`` is its name with its namespace ("aten::mm"). ``signature`` is the digest of the
    shapes, types, strides, integers and flags of its arguments, ``arguments`` the shapes and types
    for a person.
    An operator of the backward pass has the function of its forward operator. ``caller`` is `None`
    where no function of the repository was on the stack, ``line`` is where it stands in the
    caller's file. ``calls`` is per step. ``call_s`` is the 25 % quantile of the seconds of one
    call, the device's work included; `None` where calls were not timed.
    """

    operator: ShortText
    signature: Digest
    arguments: ShortText
    is_backward: bool = False
    caller: AuthorFunction | None = None
    line: Count = 0
    calls: Amount
    call_s: Seconds | None = None


class Callee(Struct, frozen=True, kw_only=True):
    """How often a function itself calls one of a library, or a built-in one, per step.

    ``name`` is that of the module that defines it ("json.dumps", "zlib.crc32", "str.join").
    ``seconds`` are of all these calls together, without what the repository's functions do in them.
    """

    name: ShortText
    calls: Amount
    seconds: Seconds | None = None


class FunctionUse(Struct, frozen=True, kw_only=True):
    """How often a step calls a function of the repository, and what it takes itself, per step.

    ``own_s`` are the seconds of its own Python and of what it calls in libraries, but not of torch,
    whose operators are timed by themselves: the 25 % quantile over steps. ``phase`` is "data" for
    what a step calls in that phase. Torch is no callee.
    """

    function: AuthorFunction
    calls: Amount
    phase: Text = ""
    own_s: Seconds | None = None
    callees: Annotated[tuple[Callee, ...], msgspec.Meta(max_length=MOST_CALLEES)] = ()


class OperatorTimes(Struct, frozen=True, kw_only=True):
    """What all calls of one operator take in a step, by the trace of torch's profiler.

    ``host_s`` are its own seconds, without the operators that it calls; ``wait_s`` those in which
    it waits for the device; ``device_s`` those of the kernels, copies and sets that it launched.
    """

    operator: ShortText
    calls: Amount
    host_s: Seconds
    wait_s: Seconds = 0.0
    device_s: Seconds = 0.0


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
    operators: Annotated[
        tuple[OperatorTimes, ...], msgspec.Meta(max_length=MOST_TIMED_OPERATORS)
    ] = ()
    cut: Count = 0


class DeviceIdle(Struct, frozen=True, kw_only=True):
    """How long the device was idle for one reason, per step.

    ``operator`` is where most of it passed: in which the host waited by ``call``
    ("cudaStreamSynchronize"), or which launched what ended the gap. Empty outside of operators.
    """

    reason: IdleReason
    idle_s: Seconds
    operator: ShortText = ""
    call: ShortText = ""


class DeviceTimes(Struct, frozen=True, kw_only=True):
    """What the device that worked most did per step, from the first linked work to the last.

    ``span_s`` is the sum of ``busy_s``, in which a kernel, a copy or a set ran on any stream, and
    of all in ``idle``, longest first. In ``copying_s`` of ``busy_s`` no kernel ran; ``pageable_s``
    are copies from or to memory that was not pinned. ``work`` counts kernels, copies and sets,
    ``unlinked`` those whose launch the trace does not show; work with one is linked.
    """

    span_s: Seconds
    busy_s: Seconds
    copying_s: Seconds = 0.0
    pageable_s: Seconds = 0.0
    work: Amount
    unlinked: Amount = 0.0
    idle: tuple[DeviceIdle, ...] = ()


class Varying(Struct, frozen=True, kw_only=True):
    """What differs from step to step of one launch: an operator or a library that ``caller`` calls.

    Without ``operator`` it is how often the function itself is called.
    """

    operator: ShortText = ""
    caller: AuthorFunction | None = None


class StepProfile(Struct, frozen=True, kw_only=True):
    """What one launch found. What differed between its steps is in ``varies``, and not counted.

    ``cut`` is how many of all these are missing, because there were too many.
    ``step_s`` is the median time of a step of this launch that nothing watched; a compiled step
    runs eagerly in such a launch. ``host`` and ``device`` are of the trace of torch's profiler,
    which ``trace_file`` names where it was kept.
    ``missing`` says why something is not there, by "step_s", "operators" (their times), "functions"
    (theirs), "trace", "device", "trace_file" or "teardown".
    ``absent`` is a sentence: why there is nothing; all else is empty then.
    """

    steps: Count
    step_s: Seconds | None = None
    operators: Annotated[tuple[OperatorUse, ...], msgspec.Meta(max_length=MOST_OPERATORS)] = ()
    functions: Annotated[tuple[FunctionUse, ...], msgspec.Meta(max_length=MOST_FUNCTIONS)] = ()
    host: HostTimes | None = None
    device: DeviceTimes | None = None
    trace_file: NameOrEmpty = ""
    varies: Annotated[tuple[Varying, ...], msgspec.Meta(max_length=MOST_VARYING)] = ()
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


# "new" and "gone": operators, or calls of libraries, on one side only. "more" and "fewer": the same
# ones, as often or not. "other_shape": the same operators with other shapes, types, strides or
# flags. "synchronises": operators that make the host wait for the device. "calls": the function
# itself is called more or less often, and dispatches what it did. "slower" and "faster": the same
# work takes longer or not.
CauseKind = Literal[
    "new", "gone", "more", "fewer", "other_shape", "synchronises", "calls", "slower", "faster"
]
# "exact": counts of operators and calls, which no noise touches. "measured": times, in which three
# or more pairs agree.
Evidence = Literal["exact", "measured"]

MOST_CAUSES = 5
MOST_OTHERS = 10
MOST_CAUSE_OPERATORS = 4


class OperatorChange(Struct, frozen=True, kw_only=True):
    """One operator that a function dispatches differently; calls are per step.

    Or one function of a library, or a built-in one, that it calls differently ("json.dumps").
    """

    kind: CauseKind
    operator: ShortText
    calls_base: float
    calls_head: float


class Cause(Struct, frozen=True, kw_only=True):
    """What one function of the repository does differently.

    ``place`` is the function in the head, or in the base where the head has none (``in_head`` says
    which); `None` where no function of the repository was on the stack. ``line`` is that of the
    first operator, or of the function. ``operators`` are the most telling ones first; ``further``
    ones differ, too. ``kind`` is that of the first one. ``calls_base`` and ``calls_head`` are per
    step, of all these operators together, or of the function where ``kind`` is "calls": then the
    operators are calls of libraries, if any.
    ``arguments_base`` and ``arguments_head`` are those of the first operator where ``kind`` is
    "other_shape". ``is_backward``: all of it is in the backward pass. ``delta_s`` is how many
    seconds of a profiled step it adds, the median over the pairs; `None` where nobody timed it.
    """

    kind: CauseKind
    evidence: Evidence = "exact"
    place: AuthorFunction | None
    in_head: bool = True
    line: Count = 0
    is_backward: bool = False
    operators: Annotated[
        tuple[OperatorChange, ...], msgspec.Meta(max_length=MOST_CAUSE_OPERATORS)
    ] = ()
    further: Count = 0
    calls_base: float
    calls_head: float
    arguments_base: ShortText = ""
    arguments_head: ShortText = ""
    delta_s: Finite | None = None


# What keeps a step from being faster. Those of IdleReason say why a device is idle, or, without
# one, where the host's time goes. "copies": the device copies, and computes nothing meanwhile.
LimitReason = IdleReason | Literal["copies"]
# What may be done about it; limits_report.py has the words.
Cure = Literal[
    "workers",
    "more_workers",
    "load_ahead",
    "pin_memory",
    "overlap_copies",
    "no_wait",
    "small_operators",
    "python",
    "graphs",
]

MOST_LIMITS = 6


class StepLimit(Struct, frozen=True, kw_only=True):
    """One thing that takes a step's time without computing, and what may be done about it.

    ``seconds`` are per profiled step, ``share`` is of the device's time, or of the step's without
    one; ``share_base`` is that of the base where two sides are compared. ``operator`` and ``call``
    are as in DeviceIdle. ``place`` and ``line`` are of the repository's function that dispatches
    the operator, or that loads the data; `None` where none is known.
    """

    reason: LimitReason
    seconds: Seconds
    share: Amount
    share_base: Amount | None = None
    operator: ShortText = ""
    call: ShortText = ""
    place: AuthorFunction | None = None
    line: Count = 0
    loader: LoaderKind = ""
    cures: tuple[Cure, ...] = ()


class StepLimits(Struct, frozen=True, kw_only=True):
    """What limits a step, most important first: by its share, or by how much that has grown.

    ``part`` is whose time is shared out: without a device only the host's is known.
    ``busy`` is the share of the device's time in which it works, of the host's in which it runs
    operators (0 where no trace tells); ``busy_base`` that of the base. ``step_s`` is a profiled
    step of the host, or the device's time per step. ``absent`` is a sentence: why nothing is known;
    all else is empty then.
    """

    part: Literal["device", "host", ""] = ""
    step_s: Seconds = 0.0
    busy: Amount = 0.0
    busy_base: Amount | None = None
    limits: Annotated[tuple[StepLimit, ...], msgspec.Meta(max_length=MOST_LIMITS)] = ()
    absent: Text = ""


class Explanation(Struct, frozen=True, kw_only=True):
    """The causes of one row, the likeliest first, and what has changed besides.

    Without any cause, both sides do the same but for ``others``, each of which takes less than a
    tenth of the largest, or saves time in a loss; or ``trouble`` says why nobody knows. ``pairs``
    is how many were profiled. ``further`` counts the causes that are left out, ``varying`` the
    operators and functions that differ between the steps of one side, and are not compared.
    ``limits`` is what has grown of what keeps a step waiting; `None` where nothing has, in three
    pairs. ``traces`` names the files of the first pair.
    """

    causes: Annotated[tuple[Cause, ...], msgspec.Meta(max_length=MOST_CAUSES)] = ()
    others: Annotated[tuple[Cause, ...], msgspec.Meta(max_length=MOST_OTHERS)] = ()
    pairs: Count = 0
    further: Count = 0
    varying: Count = 0
    limits: StepLimits | None = None
    traces: Annotated[tuple[Name, ...], msgspec.Meta(max_length=2)] = ()
    trouble: Text = ""
