"""Load a workload file and build what it describes. The only place that runs an author's import."""

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from ci_perf.model.base import Count, Finite, Items, Name, Text
from ci_perf.workload import Context, Workload

# What judge/numbers.py has peaks for; "" claims none.
PRECISIONS = ("", "fp32", "tf32", "fp16", "bf16")


class WorkloadError(Exception):
    """The workload file breaks its contract; the message says how."""


def load(file: Path, root: Path, python_path: Sequence[str] = ()) -> "Builder":
    """Import FILE with the repository and the file's own folder on the path.

    The repository comes first: its package is under measure, not an installed copy; then the
    folders of it in `python_path`, such as `src`. The file's folder comes last:
    workloads/transformers.py must not stand in for the library of that name.

    Raises WorkloadError where there is no `build`, and whatever the file raises.
    """
    sources = [str(root), *(str(root / folder) for folder in python_path)]
    sys.path = [*sources, *sys.path, str(file.parent)]
    spec = importlib.util.spec_from_file_location(f"ci_perf_workload_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # pickling by loader workers looks here
    spec.loader.exec_module(module)
    build = getattr(module, "build", None)
    if not callable(build):
        raise WorkloadError(
            f"{file.name}: expected a function `build(context)`, found "
            f"{'none' if build is None else type(build).__name__}"
        )
    return Builder(file.name, build)


class Builder:
    """A loaded workload file."""

    def __init__(self, name: str, build: object) -> None:
        self._name = name
        self._build = build

    def build(self, context: Context) -> Workload:
        """Call the author's `build` and check what it returns."""
        assert callable(self._build)
        workload = self._build(context)
        if not isinstance(workload, Workload):
            raise WorkloadError(
                f"{self._name}: expected build() to return a ci_perf.workload.Workload, "
                f"found {type(workload).__name__}"
            )
        try:
            _check(workload)
        except WorkloadError as error:
            raise WorkloadError(f"{self._name}: {error}") from None
        return workload


def finite(value: object, name: str) -> float:
    """Return what the author calls a number as a float: also a tensor of one element.

    Raises WorkloadError for what is none, NaN and infinity among it; `name` begins the message.
    """
    elements = getattr(value, "numel", None)
    if callable(elements) and elements() != 1:
        raise WorkloadError(
            f"{name}: expected a finite number, found a tensor of {elements()} elements"
        )
    try:
        return msgspec.convert(_as_float(value), Finite)
    except (ArithmeticError, TypeError, ValueError):
        found = f"{value!r:.100}"
    raise WorkloadError(f"{name}: expected a finite number, found {found}")


def _as_float(value: Any) -> float:  # noqa: ANN401  whatever the author returns
    if isinstance(value, (str, bytes)):  # float() would read them
        raise TypeError
    return float(value)


def _check(workload: Workload) -> None:
    """Look at every field before anything is measured. Raises WorkloadError."""
    for name in ("step", "teardown", "loss", "output", "local_step"):
        value = getattr(workload, name)
        if not callable(value) and (value is not None or name == "step"):
            raise WorkloadError(f"{name}: expected a function, found {type(value).__name__}")
    items = finite(workload.items_per_step, "items_per_step")
    _convert(items, Items, "items_per_step: expected a number > 0", workload.items_per_step)
    if workload.items_per_epoch is not None:
        items = finite(workload.items_per_epoch, "items_per_epoch")
        expected = "items_per_epoch: expected a number > 0, or None"
        _convert(items, Items, expected, workload.items_per_epoch)
    unit = workload.item_unit
    _convert(unit, Name, "item_unit: expected one word of letters, digits and _.=+-", unit)
    if workload.precision not in PRECISIONS:
        known = ", ".join(repr(one) for one in PRECISIONS)
        raise WorkloadError(
            f"precision: expected one of {known}, found {workload.precision!r:.100}"
        )
    varies = workload.varies
    _convert(varies, Text, "varies: expected a sentence, or nothing", varies)
    count = workload.parameter_count
    _convert(count, Count | None, "parameter_count: expected a whole number, or None", count)


def _convert(value: object, kind: Any, expected: str, found: object) -> None:  # noqa: ANN401
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        raise WorkloadError(f"{expected}, found {found!r:.100}") from None
