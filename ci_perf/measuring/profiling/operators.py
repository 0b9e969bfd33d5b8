"""Count or time the operators that torch dispatches in a step, by who called them."""

import contextlib
import functools
import hashlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, Final

from ci_perf.measuring.profiling import forks
from ci_perf.measuring.profiling.origins import AuthorCode, Origins, shown
from ci_perf.measuring.profiling.tables import Counted, Operation
from ci_perf.measuring.profiling.thread_clock import Reservoir

# What torch's own profiler hooks dispatch: `record_function` around each step of an optimiser.
_NOT_COUNTED: Final = "profiler::"
# Their integers are positions, which may move from step to step; shapes show how much they take.
_BY_POSITION: Final = frozenset(
    f"aten::{name}{form}"
    for name in ("select", "slice", "narrow")
    for form in ("", "_backward", "_scatter", "_copy")
)

# How often an operator is called to learn what it takes to call it.
_TRIALS: Final = 300


@contextlib.contextmanager
def watch(
    code: AuthorCode, phase: Callable[[], str], *, end: float
) -> Iterator[Counted[Operation]]:
    """Within, count what this thread dispatches, and what its backward passes do.

    `phase` names the current part of the step. From `end` on, by the monotonic clock, nothing is
    counted. Called once torch has been imported.
    """
    counted: Counted[Operation] = Counted()
    reader = _Reader(code, phase)

    def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401  torch is untyped
        if time.monotonic() > end:
            counted.is_late = True
        elif operation := reader.read(func, args, kwargs, sys._getframe(1)):  # noqa: SLF001
            counted.note(operation)
        return func(*args, **kwargs)

    with forks.calling(call):
        yield counted


@contextlib.contextmanager
def time_calls(
    code: AuthorCode,
    phase: Callable[[], str],
    times: Mapping[Operation, Reservoir],
    *,
    wait: Callable[[], object] | None,
) -> Iterator[None]:
    """Within, add to `times` how long each call of what it names takes.

    `wait` waits for a device that works behind the host: before and after a call, so that it shows
    its own work alone. What is watched lies between two readings of the clock; who called, and with
    which arguments, is found out before. What an operator of the author calls within is its own.
    """
    reader = _Reader(code, phase)
    clock = time.perf_counter_ns

    def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401  torch is untyped
        operation = reader.read(func, args, kwargs, sys._getframe(1))  # noqa: SLF001
        samples = times.get(operation) if operation else None
        if samples is None:
            return func(*args, **kwargs)
        if wait is not None:
            wait()
        start = clock()
        result = func(*args, **kwargs)
        if wait is not None:
            wait()
        samples.add(clock() - start)
        return result

    with forks.calling(call):
        yield


def watching_s() -> float:
    """Return what a call takes longer because a mode makes it, by an operator that does nothing.

    The mode is given Python objects, which it hands back to torch: most of a small operator's time
    would be that.
    """
    import torch

    tensor = torch.zeros(1)
    samples = Reservoir(), Reservoir()
    calls: tuple[Callable[[Any], object], ...] = torch.ops.aten.detach.default, torch.Tensor.detach
    for _ in range(_TRIALS):
        for call, of_call in zip(calls, samples, strict=True):
            start = time.perf_counter_ns()
            call(tensor)
            of_call.add(time.perf_counter_ns() - start)
    watched, unwatched = (of_call.quartile_s() or 0.0 for of_call in samples)
    return max(watched - unwatched, 0.0)


class _Reader:
    """Reads who calls which operator, within one step."""

    def __init__(self, code: AuthorCode, phase: Callable[[], str]) -> None:
        self._origins = Origins(code)
        self._phase = phase

    def read(
        self,
        func: Any,  # noqa: ANN401  torch is untyped
        args: Sequence[object],
        kwargs: dict[str, object],
        frame: FrameType,
    ) -> Operation | None:
        """Return what is called; `None` for what is not counted."""
        name = name_of(func)
        function, line, is_backward = self._origins.of(frame)
        if name.startswith(_NOT_COUNTED):
            return None
        text = describe(_tensors(args) if name in _BY_POSITION else args, kwargs)
        return Operation(
            operator=name,
            signature=_digest(text),
            arguments=shown(text),
            phase=self._phase(),
            is_backward=is_backward,
            caller=function,
            line=line,
        )


@functools.lru_cache(maxsize=10_000)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def name_of(func: Any) -> str:  # noqa: ANN401  torch is untyped
    """Return an operator's name with its namespace, without its overload."""
    schema = getattr(func, "_schema", None)
    return shown(str(schema.name) if schema is not None else str(func))


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
