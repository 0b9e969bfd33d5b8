"""pytest-benchmark: `pytest --benchmark-json=FILE`.

One file is one launch: the whole of pytest is one process, and its rounds are steps. A file saved
without its data (`--benchmark-save`) still has the median.
"""

import msgspec

from ci_perf.importers import reading
from ci_perf.importers.reading import Benchmark, Document, Reading


class _Stats(msgspec.Struct):
    median: float
    data: list[float] = []


class _Entry(msgspec.Struct):
    fullname: str
    stats: _Stats


class _File(msgspec.Struct):
    benchmarks: list[_Entry]


def read(document: Document) -> Reading:
    """Read one file; seconds per call, a step for every round. Raises InvalidFileError."""
    file = reading.parse(document, _File, tool="pytest-benchmark")
    benchmarks = [_benchmark(entry, document) for entry in file.benchmarks]
    return Reading(benchmarks=reading.each_once(benchmarks, document))


def _benchmark(entry: _Entry, document: Document) -> Benchmark:
    values = entry.stats.data or [entry.stats.median]
    launch = reading.launch(values, reading.SECONDS, document, entry.fullname)
    return Benchmark(name=entry.fullname, metric=reading.SECONDS, launches=(launch,))
