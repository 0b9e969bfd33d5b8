"""Builders of what a step dispatches and calls, and of what follows from it."""

import hashlib

import msgspec

from ci_perf.model.explanation import (
    AuthorFunction,
    Callee,
    Cause,
    FunctionUse,
    OperatorChange,
    OperatorUse,
    ProfiledPair,
    ProfiledPairs,
    StepProfile,
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
    functions = tuple(a_called(name, calls) for name, calls in more.pop("functions", {}).items())
    functions += more.pop("called", ())
    return StepProfile(steps=2, operators=uses, functions=functions, **more)


def both(base, head, *, workload="w", trouble="", pairs=1):
    """So many pairs of the same two profiles; none where one is `None`."""
    pair = ProfiledPair(base=base, head=head) if base and head else None
    return ProfiledPairs(workload=workload, pairs=(pair,) * pairs if pair else (), trouble=trouble)


def timed_pairs(base, head, *, workload="w", wander=(1.0, 1.004, 0.997)):
    """One pair for each number, by which all times of the head wander; launches in one process."""
    pairs = tuple(ProfiledPair(base=base, head=_scaled(head, by)) for by in wander)
    return ProfiledPairs(workload=workload, pairs=pairs)


def _scaled(step, by):
    def scale(use, *names):
        times = {name: getattr(use, name) for name in names}
        return msgspec.structs.replace(use, **{k: v and v * by for k, v in times.items()})

    return msgspec.structs.replace(
        step,
        operators=tuple(scale(use, "call_s") for use in step.operators),
        functions=tuple(
            msgspec.structs.replace(
                scale(use, "own_s"),
                callees=tuple(scale(each, "seconds") for each in use.callees),
            )
            for use in step.functions
        ),
    )


def a_called(function, calls=1.0, **more):
    """A function and what it takes itself: `own_s`, `callees`."""
    return FunctionUse(function=a_function(function), calls=calls, **more)


def a_callee(name="json.dumps", calls=1.0, seconds=None):
    """What a function calls of a library, and the seconds of all these calls together."""
    return Callee(name=name, calls=calls, seconds=seconds)


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
