"""Builders of what a step dispatches and calls, and of what follows from it."""

import hashlib

from ci_perf.model.explanation import Cause, OperatorChange
from ci_perf.model.step_counts import (
    AuthorFunction,
    CountedSides,
    FunctionUse,
    OperatorUse,
    StepCounts,
)


def a_function(function="Net.forward", line=10, file="src/net.py"):
    return AuthorFunction(file=file, function=function, line=line)


def a_use(operator="aten::mm", calls=2.0, function="Net.forward", arguments="f32[8,64]", **more):
    """One operator in a function, which `None` leaves out; its line is the function's third."""
    caller = a_function(function, more.pop("begins", 10)) if function else None
    return OperatorUse(
        operator=operator,
        signature=hashlib.sha256(arguments.encode()).hexdigest()[:16],
        arguments=arguments,
        caller=caller,
        line=more.pop("line", caller.line + 2 if caller else 0),
        calls=calls,
        **more,
    )


def a_step(*uses, **more):
    """Counts of two steps: operators, and functions with their calls."""
    functions = tuple(
        FunctionUse(function=a_function(name), calls=calls)
        for name, calls in more.pop("functions", {}).items()
    )
    return StepCounts(steps=2, operators=uses, functions=functions, **more)


def both(base, head, *, workload="w", trouble=""):
    return CountedSides(workload=workload, base=base, head=head, trouble=trouble)


def a_cause(kind="new", function="Net.forward", *changes, calls=(0, 8), **more):
    """A cause; each change is an operator and its calls on both sides."""
    return Cause(
        kind=kind,
        place=more.pop("place", a_function(function)),
        line=more.pop("line", 12),
        operators=tuple(
            OperatorChange(kind=of, operator=name, calls_base=base, calls_head=head)
            for of, name, base, head in changes
        ),
        calls_base=calls[0],
        calls_head=calls[1],
        **more,
    )
