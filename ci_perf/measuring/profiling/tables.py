"""Join the counts of several steps: what differs between them is named, and not counted."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, NamedTuple, TypeVar

from ci_perf.measuring.profiling.library_calls import Call
from ci_perf.model.step_profile import (
    MOST_FUNCTIONS,
    MOST_LIBRARY_CALLS,
    MOST_OPERATORS,
    AuthorFunction,
    FunctionUse,
    LibraryCall,
    OperatorUse,
    StepProfile,
)

K = TypeVar("K", bound=Hashable)
G = TypeVar("G", bound=Hashable)

_Kind = tuple[str, AuthorFunction | None, bool, str]

# A step that never repeats itself, a million times, must not take the memory of the launch.
MOST_KEPT: Final = 20_000
_MOST_VARYING: Final = 100
_TOO_MANY: Final = "the step calls too many functions of libraries, or too many change"


class Operation(NamedTuple):
    """What is told apart of the operators: see `model.step_profile.OperatorUse`."""

    operator: str
    signature: str
    arguments: str
    phase: str
    is_backward: bool
    caller: AuthorFunction | None
    line: int

    @classmethod
    def of(cls, use: OperatorUse) -> "Operation":
        """Return what a use tells of."""
        return cls(**{name: getattr(use, name) for name in cls._fields})


@dataclass(slots=True)
class Counted(Generic[K]):
    """The calls of one step; ``cut`` is how many were not kept, because there were too many.

    ``is_late`` says that the time for it was over before the step was.
    """

    calls: Counter[K] = field(default_factory=Counter)
    cut: int = 0
    is_late: bool = False

    def note(self, key: K) -> None:
        """Count one call."""
        if key in self.calls or len(self.calls) < MOST_KEPT:
            self.calls[key] += 1
        else:
            self.cut += 1


def joined(
    of_operators: Sequence[Counted[Operation]],
    of_functions: Sequence[Counted[AuthorFunction]],
    of_libraries: Sequence[Counted[Call]] = (),
) -> StepProfile:
    """Return what all steps have in common; the most called are kept where there are too many.

    Where an operator of a function varies in one way, none of its calls there is counted: shapes
    that are drawn by chance agree now and then. Too many calls of libraries lose only themselves.
    """
    operations, varying_operators, lost_operators = _common(
        of_operators, _kind, MOST_OPERATORS, order=_order
    )
    functions, varying_functions, lost_functions = _common(
        of_functions, _itself, MOST_FUNCTIONS, order=_place
    )
    names = {
        *(f"{operator}{_where(caller)}" for operator, caller, _, _ in varying_operators),
        *(f"calls of {_spelled(function)}" for function in varying_functions),
    }
    calls, varying_calls, lost_calls = _common(
        of_libraries or [Counted()], _callee, MOST_LIBRARY_CALLS, order=_call_order
    )
    names_of_calls = {f"{callee}{_where(caller)}" for callee, caller in varying_calls}
    has_calls = not lost_calls and len(names | names_of_calls) <= _MOST_VARYING
    varies = sorted(names | names_of_calls if has_calls else names)
    more = len(varies) - _MOST_VARYING
    if more > 0:
        varies[_MOST_VARYING:] = [f"and {more} more"]
    return StepProfile(
        steps=max(len(of_operators), len(of_functions)),
        operators=tuple(
            OperatorUse(**use._asdict(), calls=float(calls)) for use, calls in operations
        ),
        functions=tuple(
            FunctionUse(function=function, calls=float(calls)) for function, calls in functions
        ),
        library_calls=tuple(
            LibraryCall(**call._asdict(), calls=float(times)) for call, times in calls
        )
        if has_calls
        else (),
        varies=tuple(varies),
        cut=lost_operators + lost_functions,
        missing={} if has_calls else {"library_calls": _TOO_MANY},
    )


def _common(
    steps: Sequence[Counted[K]],
    kind: Callable[[K], G],
    most: int,
    *,
    order: Callable[[K], tuple[object, ...]],
) -> tuple[list[tuple[K, int]], set[G], int]:
    """Return what is the same in all steps, the kinds that are not, and how many were cut."""
    first = steps[0].calls
    seen = {key for step in steps for key in step.calls}
    varying = {kind(key) for key in seen if any(step.calls[key] != first[key] for step in steps)}
    stable = [(key, calls) for key, calls in first.items() if kind(key) not in varying]
    stable.sort(key=lambda item: (-item[1], order(item[0])))
    cut = max(len(stable) - most, 0) + max(step.cut for step in steps)
    return stable[:most], varying, cut


def _kind(use: Operation) -> _Kind:
    return use.operator, use.caller, use.is_backward, use.phase


def _itself(function: AuthorFunction) -> AuthorFunction:
    return function


def _callee(call: Call) -> tuple[str, AuthorFunction]:
    return call.callee, call.caller


def _call_order(call: Call) -> tuple[object, ...]:
    return (*_place(call.caller), call.line, call.callee)


def _order(use: Operation) -> tuple[object, ...]:
    place = _place(use.caller) if use.caller else ("", 0, "")
    return (*place, use.line, *use[:5])


def _place(function: AuthorFunction) -> tuple[object, ...]:
    return function.file, function.line, function.function


def _where(caller: AuthorFunction | None) -> str:
    return f" in {_spelled(caller)}" if caller else ""


def _spelled(function: AuthorFunction) -> str:
    return f"{function.function} ({function.file})"
