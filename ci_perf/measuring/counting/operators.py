"""Count the operators that torch dispatches in a step, backward pass included, by who called them.

An operator of the backward pass belongs to the function whose operator made its node in autograd's
graph: both know the node's sequence number. What autograd calls in the author's own Python (the
backward of a function, a hook, a checkpoint that computes again) belongs to that.
"""

import contextlib
import functools
import hashlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType
from typing import Any, Final

from ci_perf.measuring import dispatch
from ci_perf.measuring.counting.author import AuthorCode, shown
from ci_perf.measuring.counting.tables import Counted, Operation
from ci_perf.model.step_counts import AuthorFunction

# What torch's own profiler hooks dispatch: `record_function` around each step of an optimiser.
_NOT_COUNTED: Final = "profiler::"
# Their integers are positions, which may move from step to step; shapes show how much they take.
_BY_POSITION: Final = frozenset(
    f"aten::{name}{form}"
    for name in ("select", "slice", "narrow")
    for form in ("", "_backward", "_scatter", "_copy")
)

_Place = tuple[AuthorFunction | None, int]


@contextlib.contextmanager
def watch(
    code: AuthorCode, phase: Callable[[], str], *, end: float
) -> Iterator[Counted[Operation]]:
    """Within, count what this thread dispatches, and what its backward passes do.

    `phase` names the current part of the step. From `end` on, by the monotonic clock, nothing is
    counted. Called once torch has been imported.
    """
    counted: Counted[Operation] = Counted()
    places = _Places(code)

    def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401  torch is untyped
        note(func, args, kwargs, sys._getframe(1))  # noqa: SLF001
        return func(*args, **kwargs)

    def note(
        func: Any,  # noqa: ANN401  torch is untyped
        args: Sequence[object],
        kwargs: dict[str, object],
        frame: FrameType,
    ) -> None:
        if time.monotonic() > end:
            counted.is_late = True
            return
        name = shown(_name_of(func))
        function, line, is_backward = places.of(frame)
        if name.startswith(_NOT_COUNTED):
            return
        text = describe(_tensors(args) if name in _BY_POSITION else args, kwargs)
        counted.note(
            Operation(
                operator=name,
                signature=_digest(text),
                arguments=shown(text),
                phase=phase(),
                is_backward=is_backward,
                caller=function,
                line=line,
            )
        )

    with dispatch.calling(call):
        yield counted


@functools.lru_cache(maxsize=10_000)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


class _Places:
    """Knows where operators come from, within one step."""

    def __init__(self, code: AuthorCode) -> None:
        from torch.autograd import graph

        self._code = code
        self._thread = threading.get_ident()
        engine = getattr(graph, "_engine_run_backward", None)
        self._engine: CodeType | None = getattr(engine, "__code__", None)
        self._first = _next_sequence_number()
        self._forward: dict[int, _Place] = {}

    def of(self, frame: FrameType | None) -> tuple[AuthorFunction | None, int, bool]:
        """Return the function and the line of what is being called, and whether it is backward."""
        function, line, is_behind = self._code.caller(frame, self._engine)
        node = _current_node()
        if node is None or (function is not None and not is_behind):
            self._remember((function, line))
        elif known := self._forward.get(node._sequence_nr()):  # noqa: SLF001
            function, line = known
        return function, line, node is not None

    def _remember(self, place: _Place) -> None:
        """Keep whose node is the newest one: autograd makes it before it calls the operator.

        An operator without a node finds that of an earlier one, which keeps its own place. Each
        thread counts its nodes for itself.
        """
        number = _next_sequence_number() - 1
        if number >= self._first and threading.get_ident() == self._thread:
            self._forward.setdefault(number, place)


def _next_sequence_number() -> int:
    import torch

    number: int = torch.autograd._get_sequence_nr()  # noqa: SLF001
    return number


def _current_node() -> Any:  # noqa: ANN401  torch is untyped
    import torch

    return torch._C._current_autograd_node()  # noqa: SLF001


def _name_of(func: Any) -> str:  # noqa: ANN401  torch is untyped
    """Return an operator's name with its namespace, without its overload."""
    schema = getattr(func, "_schema", None)
    return str(schema.name) if schema is not None else str(func)


def describe(args: Sequence[object], kwargs: dict[str, object]) -> str:
    """Spell what decides which work is done: types, shapes, strides, integers and flags.

    Floats are left out: a learning rate changes from step to step.
    """
    words = [word for arg in args if (word := _word(arg))]
    words += [f"{name}={word}" for name, value in kwargs.items() if (word := _word(value))]
    return " ".join(words)


def _tensors(args: Sequence[object]) -> list[object]:
    return [arg for arg in args if not isinstance(arg, int)]


def _word(value: object) -> str:
    import torch

    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return f"({' '.join(_word(item) or '-' for item in value)})"
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return str(value).removeprefix("torch.")
    if isinstance(value, torch.device):
        return str(value.type)
    return ""


def _tensor(tensor: Any) -> str:  # noqa: ANN401  torch is untyped
    kind = str(tensor.dtype).removeprefix("torch.")
    try:
        shape = ",".join(map(str, tensor.shape))
        if tensor.is_contiguous():
            return f"{kind}[{shape}]"
        return f"{kind}[{shape}]/{','.join(map(str, tensor.stride()))}"
    except (RuntimeError, NotImplementedError):  # sparse and nested ones have no strides, or shape
        return f"{kind} {str(tensor.layout).removeprefix('torch.')}"
