"""Formats of any numbers: JSON, TensorBoard, and PyTorch HUD's benchmark results."""

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import msgspec

from ci_perf.features.formats import documents
from ci_perf.features.formats.documents import Named
from ci_perf.measuring.written_numbers import WrittenNumbers
from ci_perf.model.metrics import OwnKind

# --- JSON: whatever a script writes


def read_json(path: Path) -> dict[str, WrittenNumbers]:
    """Read every number of a document by its path, such as `a.b[0].c`. Raises ValueError.

    A list of numbers is one reading. What is no finite number is left out.
    """
    document = documents.parse(documents.read_text(path), object)
    try:
        return documents.collect(_flatten("", document))
    except RecursionError:
        raise ValueError("expected JSON with fewer levels, found too many") from None


def _flatten(name: str, value: object) -> Iterator[Named]:
    if _is_number(value):
        yield name or "value", WrittenNumbers(values=(value,))
    elif isinstance(value, list) and value and all(map(_is_number, value)):
        yield name or "value", WrittenNumbers(values=tuple(value))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _flatten(f"{name}[{index}]", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _flatten(f"{name}.{key}" if name else key, item)


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, float) and math.isfinite(value)


# --- PyTorch HUD: the benchmark results of version 3, a list of records

# The unit at the end of a metric's name: `load_time(ms)`, `p99_ttft_ms`, `token_per_sec`.
_HUD_RATE = re.compile(r"(?:_per_|/)(?:s|sec|second)\)?$")
_HUD_UNIT = re.compile(r"[_(](ns|us|ms|s|sec|bytes)\)?$")
_HUD_SPREAD = re.compile(r"std|var")


class _HudPart(msgspec.Struct):
    """A benchmark, or its model."""

    name: str
    mode: str | None = None
    dtype: str | None = None
    backend: str | None = None


class _HudMetric(msgspec.Struct):
    name: str
    benchmark_values: list[float]


class _HudRecord(msgspec.Struct):
    benchmark: _HudPart
    metric: _HudMetric
    model: _HudPart | None = None


def read_hud(path: Path) -> dict[str, WrittenNumbers]:
    """Read every record, as `BENCHMARK.MODEL.METRIC`. Raises ValueError.

    The mode, the type of data and the backend are in the name of a record that has them.
    """
    records = documents.parse(documents.read_text(path), list[_HudRecord])
    return documents.collect(_read_hud_record(record) for record in records)


def _read_hud_record(record: _HudRecord) -> Named:
    parts = [record.benchmark, record.model] if record.model else [record.benchmark]
    words = [word for part in parts for word in (part.name, part.mode, part.dtype, part.backend)]
    name = ".".join(word for word in (*words, record.metric.name) if word)
    if not record.metric.benchmark_values:
        raise ValueError(f"{name}: expected benchmark_values, found none")
    kind, divisor = _find_unit(record.metric.name)
    values = tuple(value / divisor for value in record.metric.benchmark_values)
    return name, WrittenNumbers(values=values, kind=kind)


def _find_unit(metric: str) -> tuple[OwnKind | None, float]:
    """Return the kind that the name of a metric says, and what its values are divided by."""
    if _HUD_RATE.search(metric):
        return "rate", 1.0
    unit = _HUD_UNIT.search(metric)
    if unit is None or _HUD_SPREAD.match(metric):
        return None, 1.0
    if unit[1] == "bytes":
        return "bytes", 1.0
    return "tail" if metric.startswith("p9") else "time", documents.PER_SECOND[unit[1]]


# --- TensorBoard: a folder that a SummaryWriter wrote


def read_tensorboard(path: Path) -> dict[str, WrittenNumbers]:
    """Read every scalar of a folder by its tag, with all its values. Raises ValueError.

    A tag in a folder below begins with the folder. One with a value that is not finite is left out.
    """
    try:
        from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
        from tensorboard.util import tensor_util
    except ImportError:
        raise ValueError(
            "expected the package tensorboard, found none; `pip install tensorboard`"
        ) from None
    scalars: dict[str, list[float]] = {}
    for file in sorted(path.rglob("*.tfevents.*")):
        # 0: every value, and no sample of them.
        events = EventAccumulator(str(file), size_guidance={"scalars": 0, "tensors": 0}).Reload()
        folder = file.parent.relative_to(path).as_posix()
        prefix = "" if folder == "." else f"{folder}/"
        for tag in events.Tags()["scalars"]:
            scalars.setdefault(prefix + tag, []).extend(each.value for each in events.Scalars(tag))
        for tag in events.Tags()["tensors"]:  # scalars of TensorFlow 2 and of JAX
            if events.SummaryMetadata(tag).plugin_data.plugin_name == "scalars":
                scalars.setdefault(prefix + tag, []).extend(
                    float(tensor_util.make_ndarray(each.tensor_proto))
                    for each in events.Tensors(tag)
                )
    return documents.collect(
        (tag, WrittenNumbers(values=tuple(values)))
        for tag, values in scalars.items()
        if all(map(math.isfinite, values))
    )
