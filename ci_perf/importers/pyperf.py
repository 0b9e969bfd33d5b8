"""pyperf: `-o FILE` of `pyperf timeit`, `pyperf command` or a script with a Runner.

The only one of its kind: each run of a file is a fresh process, so each is a launch, and its
values are steps. A run without values only calibrated.
"""

from typing import Literal

import msgspec

from ci_perf.importers import reading
from ci_perf.importers.reading import Benchmark, Document, LeftOut, Reading
from ci_perf.model.samples import SampledMetric

_Unit = Literal["second", "byte", "integer"]
_METRICS: dict[_Unit, SampledMetric] = {
    "second": reading.SECONDS,
    "byte": reading.HOST_BYTES,
    "integer": reading.EXACT_COUNT,
}


class _Metadata(msgspec.Struct):
    name: str | None = None
    unit: _Unit | None = None


class _Run(msgspec.Struct):
    values: list[float] = []


class _Benchmark(msgspec.Struct):
    runs: list[_Run]
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


class _File(msgspec.Struct):
    benchmarks: list[_Benchmark]
    # What all benchmarks have in common; of a single one that is its name, too.
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


def read(document: Document) -> Reading:
    """Read one file; a launch for every run that has values. Raises InvalidFileError."""
    file = reading.parse(document, _File, tool="pyperf")
    benchmarks: list[Benchmark] = []
    left_out: list[LeftOut] = []
    for benchmark in file.benchmarks:
        name = benchmark.metadata.name or file.metadata.name or "benchmark"
        metric = _METRICS[benchmark.metadata.unit or file.metadata.unit or "second"]
        runs = [run.values for run in benchmark.runs if run.values]
        if not runs:
            reason = "it has no values"
            left_out.append(LeftOut(document=document.name, benchmark=name, reason=reason))
            continue
        launches = tuple(reading.launch(values, metric, document, name) for values in runs)
        benchmarks.append(Benchmark(name=name, metric=metric, launches=launches))
    return Reading(benchmarks=reading.each_once(benchmarks, document), left_out=tuple(left_out))
