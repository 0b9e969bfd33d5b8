"""Why a row moved: what the head does differently in a step, counted and not timed."""

from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import Count, Struct, Text
from ci_perf.model.step_counts import AuthorFunction

# "new" and "gone": operators on one side only. "more" and "fewer": the same ones, as often or not.
# "other_shape": the same ones with other shapes, types, strides or flags. "calls": the function
# itself is called more or less often, and dispatches what it did.
CauseKind = Literal["new", "gone", "more", "fewer", "other_shape", "calls"]

MOST_CAUSES = 5
MOST_OTHERS = 10
MOST_CAUSE_OPERATORS = 4


class OperatorChange(Struct, frozen=True, kw_only=True):
    """One operator that a function dispatches differently; calls are per step."""

    kind: CauseKind
    operator: Text
    calls_base: float
    calls_head: float


class Cause(Struct, frozen=True, kw_only=True):
    """What one function of the repository does differently.

    ``place`` is the function in the head, or in the base where the head has none (``in_head`` says
    which); `None` where no function of the repository was on the stack. ``line`` is that of the
    first operator, or of the function. ``operators`` are the most telling ones first; ``further``
    ones differ, too. ``kind`` is that of the first one. ``calls_base`` and ``calls_head`` are per
    step, of all these operators together, or of the function where ``kind`` is "calls".
    ``arguments_base`` and ``arguments_head`` are those of the first operator where ``kind`` is
    "other_shape". ``phase`` is empty where there is none, or several. ``is_backward``: all of it is
    in the backward pass.
    """

    kind: CauseKind
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


class Explanation(Struct, frozen=True, kw_only=True):
    """The causes of one row, the likeliest first, and what has changed besides.

    Without any cause, both sides do the same, or ``trouble`` says why nobody knows. ``further``
    counts the causes that are left out, ``varying`` the operators and functions that differ between
    the steps of one side, and are not compared.
    """

    causes: Annotated[tuple[Cause, ...], msgspec.Meta(max_length=MOST_CAUSES)] = ()
    others: Annotated[tuple[Cause, ...], msgspec.Meta(max_length=MOST_OTHERS)] = ()
    further: Count = 0
    varying: Count = 0
    trouble: Text = ""
