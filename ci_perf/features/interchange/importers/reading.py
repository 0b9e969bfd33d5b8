"""What every importer reads with, and what it returns."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from ci_perf.errors import InvalidFileError
from ci_perf.model.samples import SMALLEST_NOISY, Launch, SampledMetric

T = TypeVar("T")

# As `model.base.Amount` has it.
_LARGEST = 1e19

SECONDS = SampledMetric(unit="s", kind="time")
HOST_BYTES = SampledMetric(unit="byte", kind="host_memory")
EXACT_BYTES = SampledMetric(unit="byte", kind="exact")
EXACT_COUNT = SampledMetric(unit="count", kind="exact")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file that a harness wrote; its name begins every error."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """The launches of one benchmark in one file, by the name that the harness gives it."""

    name: str
    metric: SampledMetric
    launches: tuple[Launch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A benchmark of which a file has no number that can be judged, and why."""

    document: str
    benchmark: str
    reason: str
    has_failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The benchmarks of one file, and those that cannot be judged."""

    benchmarks: tuple[Benchmark, ...]
    left_out: tuple[LeftOut, ...] = ()


def parse(document: Document, kind: type[T], *, tool: str) -> T:
    """Read JSON of another tool, with keys that we do not know. Raises InvalidFileError.

    NaN and infinity, which JSON lacks and some tools write, read as null.
    """
    expected = f"{document.name}: expected JSON that {tool} wrote"
    try:
        data = json.loads(document.text, parse_constant=_read_no_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidFileError(f"{expected}, found: {error}") from None
    try:
        return msgspec.convert(data, type=kind)
    except (msgspec.ValidationError, UnicodeError, RecursionError) as error:
        raise InvalidFileError(f"{expected}, found: {error}") from None


def launch(
    values: Iterable[float],
    metric: SampledMetric,
    place: str,
    *,
    scale: float = 1.0,
) -> tuple[float, ...]:
    """Return the steps of a launch in the metric's unit. Raises InvalidFileError.

    Every one can be judged: what is noisy has a logarithm.
    """
    least = 0.0 if metric.kind == "exact" else SMALLEST_NOISY
    scaled = tuple(value * scale for value in values)
    for value in scaled:
        if not least <= value <= _LARGEST:  # also refuses NaN
            raise InvalidFileError(
                f"{place}: expected numbers from {least:g} to {_LARGEST:g}, "
                f"found {value}; was nothing measured?"
            )
    return scaled


def each_once(benchmarks: Sequence[Benchmark], document: Document) -> tuple[Benchmark, ...]:
    """Return the benchmarks of a file; refuse one that it has twice. Raises InvalidFileError."""
    names: set[str] = set()
    for benchmark in benchmarks:
        if benchmark.name in names:
            raise InvalidFileError(
                f"{document.name}: expected every benchmark once, found {benchmark.name!r} twice; "
                "give them different names"
            )
        names.add(benchmark.name)
    return tuple(benchmarks)


def _read_no_constant(_constant: str) -> None:
    return None
