"""What every reader shares: a file as typed values, and its numbers by the name of a metric."""

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from ci_perf.measuring.written_numbers import WrittenNumbers
from ci_perf.model.codec import TwiceError, build_object
from ci_perf.model.metrics import clean_name

T = TypeVar("T")

Named = tuple[str, WrittenNumbers]

# How many of a unit make a second.
PER_SECOND = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0, "sec": 1.0}

# A noisy number is judged by its logarithm.
_ABOVE_ZERO = frozenset({"time", "tail", "rate"})


def read_text(path: Path) -> str:
    """Return the text of a file that is not empty. Raises ValueError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"expected a file of text, found: {reason}") from None
    if not text.strip():
        raise ValueError("expected results, found an empty file")
    return text


def parse(text: str, kind: type[T]) -> T:
    """Read JSON of another tool, with keys that we do not know. Raises ValueError.

    Each number is a float, also NaN and infinity, which JSON lacks and some tools write.
    """
    try:
        data = json.loads(text, parse_int=float, object_pairs_hook=build_object)
    except TwiceError:
        raise
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected JSON, found: {error}") from None
    return convert(data, kind)


def convert(data: object, kind: type[T]) -> T:
    """Check the types of a value that was read. Raises ValueError."""
    try:
        return msgspec.convert(data, type=kind)
    except (msgspec.ValidationError, UnicodeError, RecursionError) as error:
        raise ValueError(f"expected results of this format, found: {error}") from None


def collect(readings: Iterable[Named]) -> dict[str, WrittenNumbers]:
    """Return the readings by names that a metric may have. Raises ValueError."""
    by_name: dict[str, WrittenNumbers] = {}
    originals: dict[str, str] = {}
    for original, reading in readings:
        name = clean_name(original)
        if name in originals:
            raise ValueError(
                f"expected benchmarks of different names, found {originals[name]!r} and "
                f"{original!r}, which are both read as {name!r}"
            )
        _check_values(original, reading)
        by_name[name], originals[name] = reading, original
    if not by_name:
        raise ValueError("expected at least one benchmark, found none")
    return by_name


def _check_values(name: str, reading: WrittenNumbers) -> None:
    for value in reading.values:
        if not math.isfinite(value):
            raise ValueError(f"{name}: expected a finite number, found {value}")
        if reading.kind in _ABOVE_ZERO and value <= 0:
            raise ValueError(f"{name}: expected a {reading.kind} above 0, found {value:g}")
