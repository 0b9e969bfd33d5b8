"""What one step of a workload dispatches and calls, counted in launches that are never timed."""

from typing import Annotated

import msgspec

from ci_perf.model.base import Amount, Count, Name, Struct, Text
from ci_perf.model.program import Digest, RelativePath

MOST_OPERATORS = 500
MOST_FUNCTIONS = 500


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
    caller's file. ``calls`` is per step.
    """

    operator: Text
    signature: Digest
    arguments: Text
    phase: Text = ""
    is_backward: bool = False
    caller: AuthorFunction | None = None
    line: Count = 0
    calls: Amount


class FunctionUse(Struct, frozen=True, kw_only=True):
    """How often a step calls a function of the repository."""

    function: AuthorFunction
    calls: Amount


class StepCounts(Struct, frozen=True, kw_only=True):
    """The counts of one launch. What differed between its steps is in ``varies``, and not counted.

    An entry is "aten::mm in Net.forward (src/net.py)", "aten::mm" where no function of the
    repository was on the stack, "calls of Net.forward (src/net.py)", or at last "and 12 more".
    ``cut`` is how many uses are missing, because there were too many. ``absent`` is a sentence: why
    there is no count; all else is empty then.
    """

    steps: Count
    operators: Annotated[tuple[OperatorUse, ...], msgspec.Meta(max_length=MOST_OPERATORS)] = ()
    functions: Annotated[tuple[FunctionUse, ...], msgspec.Meta(max_length=MOST_FUNCTIONS)] = ()
    varies: tuple[Text, ...] = ()
    cut: Count = 0
    absent: Text = ""


class CountedSides(Struct, frozen=True, kw_only=True):
    """Both sides of a workload whose row moved; ``trouble`` is why a side has no counts."""

    workload: Name
    base: StepCounts | None = None
    head: StepCounts | None = None
    trouble: Text = ""
