"""Exact counts: the operators and FLOPs of a step, and what torch.compile did in this process."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from ci_perf.measuring import dispatch
from ci_perf.measuring.device import Device
from ci_perf.model.base import MAX_ABSENT_CHARS
from ci_perf.model.process import CompileCounts, Work

# Dynamo keeps the records of its latest compilations only: 64 unless told.
_RECORDS = 100_000
# Dynamo explains a graph break in paragraphs; the first line names the cause.
_MAX_REASONS = 20
_BREAK_CHARS = 300
# How dynamo names a branch, or a loop, that depends on the values of a tensor.
_JUMP = "generic_jump"
# The failure of a function that dynamo leaves to Python as a whole, as for a break within a loop.
_GIVEN_UP = "Unsupported"
_CACHE_VARIABLES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")


def count_work(step: Callable[[], object], device: Device, parameters: int | None) -> Work:
    """Run one step under torch's dispatcher and count what comes by, backward pass included.

    A compiled step is counted as the program it was compiled from: torch runs that one while a
    dispatch mode is active. A step that cannot run so has no counts, and the reason.
    """
    if "torch" not in sys.modules:
        return _absent("the workload has not imported torch", parameters)
    try:
        operators, flops = _count_operators(step, device)
    except Exception as error:  # noqa: BLE001  the instrument's failure, not the workload's
        return _absent(f"{type(error).__name__}: {error}", parameters)
    if operators == 0 and sys.modules["torch"].cuda.is_initialized():
        return _absent("a step calls no operator: it may replay a CUDA graph", parameters)
    return Work(operators=operators, flops=flops, parameters=parameters)


def _absent(reason: str, parameters: int | None) -> Work:
    return Work(operators=None, flops=None, parameters=parameters, absent=reason[:MAX_ABSENT_CHARS])


def _count_operators(step: Callable[[], object], device: Device) -> tuple[int, int]:
    """Count the operators and FLOPs of a step.

    torch's own FlopCounterMode counts the same FLOPs; it also follows modules, and imports dynamo.
    """
    formulas = dispatch.flop_formulas()
    operators = flops = 0

    def call(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401  torch is untyped
        nonlocal operators, flops
        result = func(*args, **kwargs)
        operators += 1
        if formula := formulas.get(getattr(func, "_overloadpacket", None)):
            flops += int(formula(*args, **kwargs, out_val=result))
        return result

    with dispatch.call_on_dispatch(call):
        step()
    device.synchronize()
    return operators, flops


def compile_cache() -> Literal["empty", "filled"]:
    """Say whether earlier processes left compiled code. Asked before anything is compiled."""
    folders = [Path(named) for name in _CACHE_VARIABLES if (named := os.environ.get(name))]
    is_filled = any(path.is_file() for folder in folders for path in folder.rglob("*"))
    return "filled" if is_filled else "empty"


def keep_all_compile_records() -> None:
    """Let no compilation be forgotten. Called once torch has been imported by the workload."""
    if "torch._dynamo.utils" in sys.modules:
        sys.modules["torch._dynamo.utils"].set_compilation_metrics_limit(_RECORDS)


def count_compiles(cache: Literal["empty", "filled"]) -> CompileCounts:
    """Count graphs, graph breaks and recompiles; zeros where nothing was compiled."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is None:
        return CompileCounts(graphs=0, graph_breaks=0, recompiles=0, cache=cache)
    records = dynamo.get_compilation_metrics()
    breaks = [*_between_graphs(dynamo), *_name_whole_functions(records)]
    return CompileCounts(
        graphs=dynamo.counters["stats"]["unique_graphs"],
        graph_breaks=len(breaks),
        recompiles=sum(1 for record in records if getattr(record, "recompile_reason", None)),
        break_reasons=tuple(dict.fromkeys(breaks))[:_MAX_REASONS],
        cache=cache,
    )


def _between_graphs(dynamo: Any) -> Iterator[str]:  # noqa: ANN401  the module
    """Name each break after which a function went on in another graph, as `explain` lists them.

    `dynamo.counters["graph_break"]` misses every branch that depends on the values of a tensor.
    """
    for record in dynamo.graph_break_reasons:
        place = record.user_stack[-1] if record.user_stack else None
        file, line = (place.filename, place.lineno) if place else (None, None)
        yield _spell_break(record.reason, file, line)


def _name_whole_functions(records: Iterable[Any]) -> Iterator[str]:
    """Name each break for which dynamo left the whole function to Python; it makes no graph."""
    for record in records:
        if getattr(record, "fail_type", None) == _GIVEN_UP:
            reason = f"{_first_line(record.fail_reason)}; the whole function runs in Python"
            yield _spell_break(
                reason, record.fail_user_frame_filename, record.fail_user_frame_lineno
            )


def _spell_break(reason: str, file: str | None, line: int | None) -> str:
    what = _first_line(reason)
    if what.startswith(_JUMP):
        what = f"a branch depends on the values of a tensor ({what})"
    where = f"{_short_path(file)}:{line}: " if file else ""
    return (where + what).encode(errors="replace").decode()[:_BREAK_CHARS]


def _short_path(file: str) -> str:
    """Leave out the folder of the repository, or of installed packages."""
    _, installed, rest = file.rpartition("/site-packages/")
    return rest if installed else file.removeprefix(f"{Path.cwd()}/")


def _first_line(text: object) -> str:
    return str(text).strip().partition("\n")[0]
