"""Count or time the operators that torch dispatches in a step, by who called them."""

import contextlib
import functools
import hashlib
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, Final, NamedTuple

from ci_perf.features.explain.worker.functions import quartile
from ci_perf.features.explain.worker.origins import AuthorCode, Origins
from ci_perf.measuring import dispatch
from ci_perf.model.explanation import AuthorFunction
from ci_perf.system.linux import short

# What torch's own profiler hooks dispatch: `record_function` around each step of an optimiser.
_NOT_COUNTED: Final = "profiler::"
# Their integers are positions, which may move from step to step; shapes show how much they take.
_BY_POSITION: Final = frozenset(
    f"aten::{name}{form}"
    for name in ("select", "slice", "narrow")
    for form in ("", "_backward", "_scatter", "_copy")
)
# A step that never repeats itself, a million times, must not take the memory of the launch.
_MOST_KEPT: Final = 20_000
# Of the calls of one operator: the first ones of a pass stand for all.
_MOST_TIMES: Final = 1_000
# How often an operator is called to learn what it takes to call it.
_TRIALS: Final = 300
_modes: list[object] = []


class Operation(NamedTuple):
    """What is told apart of the operators: see OperatorUse."""

    operator: str
    signature: str
    arguments: str
    is_backward: bool
    caller: AuthorFunction | None
    line: int


@contextlib.contextmanager
def count_calls(code: AuthorCode, *, end: float) -> Iterator[Counter[Operation]]:
    """Within, count what this thread dispatches, and what its backward passes do.

    From `end` on, by the monotonic clock, nothing is
    counted, and nothing without torch.
    """
    counted: Counter[Operation] = Counter()
    if "torch" not in sys.modules:
        yield counted
        return
    origins = Origins(code)

    def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401  torch is untyped
        if time.monotonic() <= end:
            operation = _read_operation(origins, func, args, kwargs, sys._getframe(1))  # noqa: SLF001
            if operation and (operation in counted or len(counted) < _MOST_KEPT):
                counted[operation] += 1
        return func(*args, **kwargs)

    with watch_dispatch(call):
        yield counted


@contextlib.contextmanager
def time_calls(
    code: AuthorCode,
    times_s: Mapping[Operation, list[float]],
    *,
    wait: Callable[[], object] | None,
) -> Iterator[None]:
    """Within, add to `times_s` how long each call of what it names takes.

    `wait` waits for a device that works behind the host: before and after a call, so that it shows
    its own work alone. What an operator of the author calls within is its own.
    """
    origins = Origins(code)
    clock = time.perf_counter

    def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401  torch is untyped
        operation = _read_operation(origins, func, args, kwargs, sys._getframe(1))  # noqa: SLF001
        times = times_s.get(operation) if operation else None
        if times is None or len(times) >= _MOST_TIMES:
            return func(*args, **kwargs)
        if wait is not None:
            wait()
        start = clock()
        result = func(*args, **kwargs)
        if wait is not None:
            wait()
        times.append(clock() - start)
        return result

    with watch_dispatch(call):
        yield


def call_s(times_s: Sequence[float], watching_s: float) -> float | None:
    """Return the 25 % quantile of the times of one call, without watching; `None` of none.

    At most half is taken off: what it takes to watch is not known as well as that.
    """
    if not times_s:
        return None
    whole_s = quartile(times_s)
    return max(whole_s - watching_s, whole_s / 2)


def measure_watching_s() -> float:
    """Return what a call takes longer because a mode makes it, by an operator that does nothing.

    The mode is given Python objects, which it hands back to torch: most of a small operator's time
    would be that.
    """
    import torch

    tensor = torch.zeros(1)
    quartiles: list[float] = []
    for function in (torch.ops.aten.detach.default, torch.Tensor.detach):
        times_s: list[float] = []
        for _ in range(_TRIALS):
            start = time.perf_counter()
            function(tensor)
            times_s.append(time.perf_counter() - start)
        quartiles.append(quartile(times_s))
    return max(quartiles[0] - quartiles[1], 0.0)


@contextlib.contextmanager
def watch_dispatch(call: dispatch.Call) -> Iterator[None]:
    """Within, `call` gets each operator of this process: see `dispatch.call_on_dispatch`.

    A worker of a DataLoader that is forked meanwhile runs without it: it would be slow for as long
    as it lives, and make the process wait that is timed.
    """
    mode = dispatch.call_on_dispatch(call)
    process = os.getpid()
    _modes.append(mode)
    mode.__enter__()
    try:
        yield
    finally:
        if os.getpid() == process:
            mode.__exit__(None, None, None)
            _modes.remove(mode)


def _stop_watching() -> None:
    """Leave the profiler and the modes, from the innermost on; one of the program may lie above."""
    sys.setprofile(None)
    while _modes:
        from torch.utils import _python_dispatch

        if _python_dispatch._get_current_dispatch_mode() is not _modes.pop():  # noqa: SLF001
            break
        _python_dispatch._pop_mode()  # noqa: SLF001


os.register_at_fork(after_in_child=_stop_watching)


def _read_operation(
    origins: Origins,
    func: Any,  # noqa: ANN401  torch is untyped
    args: Sequence[object],
    kwargs: dict[str, object],
    frame: FrameType,
) -> Operation | None:
    """Return what is called; `None` for what is not counted."""
    name = operator_name(func)
    function, line, is_backward = origins.find(frame)
    if name.startswith(_NOT_COUNTED):
        return None
    if name in _BY_POSITION:
        args = [arg for arg in args if not isinstance(arg, int)]
    text = describe_arguments(args, kwargs)
    return Operation(name, _digest(text), short(text), is_backward, function, line)


@functools.lru_cache(maxsize=10_000)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]


def operator_name(func: Any) -> str:  # noqa: ANN401  torch is untyped
    """Return an operator's name with its namespace, without its overload."""
    schema = getattr(func, "_schema", None)
    return short(str(schema.name) if schema is not None else str(func))


def describe_arguments(args: Sequence[object], kwargs: dict[str, object]) -> str:
    """Spell what decides which work is done: types, shapes, strides, integers and flags.

    Floats are left out: a learning rate changes from step to step.
    """
    words = [word for arg in args if (word := _word(arg))]
    words += [f"{name}={word}" for name, value in kwargs.items() if (word := _word(value))]
    return " ".join(words)


def _word(value: object) -> str:
    import torch

    match value:
        case torch.Tensor():
            return _tensor_word(value)
        case bool() | int():
            return str(value)
        case str():
            return repr(value)
        case list() | tuple():
            return f"({' '.join(_word(item) or '-' for item in value)})"
        case torch.dtype() | torch.memory_format() | torch.layout():
            return str(value).removeprefix("torch.")
        case torch.device():
            return str(value.type)
        case _:
            return ""


def _tensor_word(tensor: Any) -> str:  # noqa: ANN401  torch is untyped
    kind = str(tensor.dtype).removeprefix("torch.")
    try:
        shape = ",".join(map(str, tensor.shape))
        if tensor.is_contiguous():
            return f"{kind}[{shape}]"
        return f"{kind}[{shape}]/{','.join(map(str, tensor.stride()))}"
    except (RuntimeError, NotImplementedError):  # sparse and nested ones have no strides, or shape
        return f"{kind} {str(tensor.layout).removeprefix('torch.')}"
