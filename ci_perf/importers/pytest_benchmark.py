"""pytest-benchmark: `pytest --benchmark-json=FILE`.

One file is one launch: the whole of pytest is one process, and its rounds are steps. A file saved
without its data (`--benchmark-save`) still has the median.
"""

import msgspec

from ci_perf.importers import reading
from ci_perf.importers.reading import Document, Found, Reading


class _Stats(msgspec.Struct):
    median: float
    data: list[float] = []


class _Benchmark(msgspec.Struct):
    fullname: str
    stats: _Stats


class _File(msgspec.Struct):
    benchmarks: list[_Benchmark]


def read(document: Document) -> Reading:
    """Read one file; seconds per call, a step for every round. Raises InvalidFileError."""
    file = reading.parse(document, _File, tool="pytest-benchmark")
    found = [_found(one, document) for one in file.benchmarks]
    return Reading(found=reading.once(found, document))


def _found(one: _Benchmark, document: Document) -> Found:
    values = one.stats.data or [one.stats.median]
    launch = reading.launch(values, reading.SECONDS, document, one.fullname)
    return Found(benchmark=one.fullname, metric=reading.SECONDS, launches=(launch,))
