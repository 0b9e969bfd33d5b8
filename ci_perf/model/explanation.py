"""Why a row moved: what the head does differently in a step, counted or measured."""

from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import Amount, Bytes, Count, Finite, Name, Seconds, Struct, Text
from ci_perf.model.step_profile import AuthorFunction, IdleReason, LoaderKind, RankTimes

# "new" and "gone": operators, or calls of libraries, on one side only. "more" and "fewer": the same
# ones, as often or not. "other_shape": the same operators with other shapes, types, strides or
# flags. "recomputed": forward operators that run again in the backward pass. "synchronises":
# operators that make the host wait for the device. "calls": the function itself is called more or
# less often, and dispatches what it did. "slower" and "faster": the same work takes longer or not.
# "waits": the function waits longer. "grows": each step leaves more memory behind. "holds_more" and
# "holds_less": more or fewer bytes are alive at the peak. "breaks_graph": torch.compile breaks the
# graph more often.
CauseKind = Literal[
    "new",
    "gone",
    "more",
    "fewer",
    "other_shape",
    "recomputed",
    "synchronises",
    "calls",
    "slower",
    "faster",
    "waits",
    "grows",
    "holds_more",
    "holds_less",
    "breaks_graph",
]
# "exact": counts of operators, calls and bytes, which no noise touches. "measured": times, in which
# three or more pairs agree.
Evidence = Literal["exact", "measured"]

MOST_CAUSES = 5
MOST_OTHERS = 10
MOST_CAUSE_OPERATORS = 4


class OperatorChange(Struct, frozen=True, kw_only=True):
    """One operator that a function dispatches differently; calls are per step.

    Or one function of a library, or a built-in one, that it calls differently ("json.dumps").
    """

    kind: CauseKind
    operator: Text
    calls_base: float
    calls_head: float


class ShareOfChange(Struct, frozen=True, kw_only=True):
    """How much of a row's change a cause takes, 1 for all of it, with the bounds of 95 %.

    ``high`` includes what no cause explains, where the share is positive.
    """

    share: Finite
    low: Finite
    high: Finite


class Cause(Struct, frozen=True, kw_only=True):
    """What one function of the repository does differently.

    ``place`` is the function in the head, or in the base where the head has none (``in_head`` says
    which); `None` where no function of the repository was on the stack. ``line`` is that of the
    first operator, or of the function. ``operators`` are the most telling ones first; ``further``
    ones differ, too. ``kind`` is that of the first one. ``calls_base`` and ``calls_head`` are per
    step, of all these operators together, or of the function where ``kind`` is "calls": then the
    operators are calls of libraries, if any.
    ``arguments_base`` and ``arguments_head`` are those of the first operator where ``kind`` is
    "other_shape". ``phase`` is empty where there is none, or several. ``is_backward``: all of it is
    in the backward pass. ``delta_s`` is how many seconds of a step it adds, the median over the
    pairs; `None` where nobody timed it. ``share`` is its part of the row's change; `None` where its
    bounds hold 0, the pairs are too few, or the step is compiled. ``bytes_base`` and ``bytes_head``
    are those of a cause of memory: at the peak, or per step where it "grows"; its calls are 0.
    Those of "breaks_graph" are per launch. ``in_build`` tells that `build` holds them. ``waits_in``
    is the built-in function in which the function waits.
    """

    kind: CauseKind
    evidence: Evidence = "exact"
    place: AuthorFunction | None
    in_head: bool = True
    line: Count = 0
    phase: Text = ""
    is_backward: bool = False
    operators: Annotated[
        tuple[OperatorChange, ...], msgspec.Meta(max_length=MOST_CAUSE_OPERATORS)
    ] = ()
    further: Count = 0
    calls_base: float
    calls_head: float
    arguments_base: Text = ""
    arguments_head: Text = ""
    delta_s: Finite | None = None
    share: ShareOfChange | None = None
    bytes_base: Bytes | None = None
    bytes_head: Bytes | None = None
    in_build: bool = False
    waits_in: Text = ""


# What keeps a step from being faster. Those of IdleReason say why a device is idle, or, without
# one, where the host's time goes. "copies": the device copies, and computes nothing meanwhile.
LimitReason = IdleReason | Literal["copies"]
# What may be done about it; report/step_limits.py has the words.
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
# Of a run without a device only the host's time is known.
LimitedPart = Literal["device", "host", ""]

MOST_LIMITS = 6


class StepLimit(Struct, frozen=True, kw_only=True):
    """One thing that takes a step's time without computing, and what may be done about it.

    ``seconds`` are per profiled step, ``share`` is of the device's time, or of the step's without
    one; ``share_base`` is that of the base where two sides are compared. ``operator`` and ``call``
    are as in DeviceIdle. ``place`` and ``line`` are of the repository's function that dispatches
    the operator, or that loads the data; `None` where none is known. ``waits_in`` is the built-in
    function in which it waits.
    """

    reason: LimitReason
    seconds: Seconds
    share: Amount
    share_base: Amount | None = None
    operator: Text = ""
    call: Text = ""
    place: AuthorFunction | None = None
    line: Count = 0
    waits_in: Text = ""
    loader: LoaderKind = ""
    cures: tuple[Cure, ...] = ()


class StepLimits(Struct, frozen=True, kw_only=True):
    """What limits a step, most important first: by its share, or by how much that has grown.

    ``busy`` is the share of the device's time in which it works, of the host's in which it runs
    operators (0 where no trace tells); ``busy_base`` that of the base. ``step_s`` is a profiled
    step of the host, or the device's time per step. ``absent`` is a sentence: why nothing is known;
    all else is empty then.
    """

    part: LimitedPart = ""
    step_s: Seconds = 0.0
    busy: Amount = 0.0
    busy_base: Amount | None = None
    limits: Annotated[tuple[StepLimit, ...], msgspec.Meta(max_length=MOST_LIMITS)] = ()
    absent: Text = ""


class Explanation(Struct, frozen=True, kw_only=True):
    """The causes of one row, the likeliest first, and what has changed besides.

    Without any cause, both sides do the same but for ``others``, each of which takes less than a
    tenth of the change; or ``trouble`` says why nobody knows. ``pairs`` is how many were profiled.
    ``further`` counts the causes that are left out, ``varying`` the operators and functions that
    differ between the steps of one side, and are not compared. ``common_factor`` is how much longer
    what did not change takes in the head, all of it alike; `None` where it is near 1, or not known.
    ``limits`` is what has grown of what keeps a step waiting; `None` where nothing has, in three
    pairs. ``traces`` names the files of the first pair; ``ranks`` is of its head, whose rank 0 was
    profiled, and `None` for a workload of one process.
    """

    causes: Annotated[tuple[Cause, ...], msgspec.Meta(max_length=MOST_CAUSES)] = ()
    others: Annotated[tuple[Cause, ...], msgspec.Meta(max_length=MOST_OTHERS)] = ()
    pairs: Count = 0
    further: Count = 0
    varying: Count = 0
    common_factor: Finite | None = None
    limits: StepLimits | None = None
    traces: Annotated[tuple[Name, ...], msgspec.Meta(max_length=2)] = ()
    ranks: RankTimes | None = None
    trouble: Text = ""
