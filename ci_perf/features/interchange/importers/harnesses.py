"""pyperf, whose file has several launches, and torch.utils.benchmark, by JSON of our own."""

from typing import Annotated, Literal

import msgspec

from ci_perf.features.interchange.importers import reading
from ci_perf.features.interchange.importers.reading import Benchmark, Document, LeftOut, Reading
from ci_perf.model.samples import SampledMetric

# --- pyperf: `-o FILE` of `pyperf timeit`, `pyperf command` or a script with a Runner

_PyperfUnit = Literal["second", "byte", "integer"]
_PYPERF_METRICS: dict[_PyperfUnit, SampledMetric] = {
    "second": reading.SECONDS,
    "byte": reading.HOST_BYTES,
    "integer": reading.EXACT_COUNT,
}


class _PyperfMetadata(msgspec.Struct):
    name: str | None = None
    unit: _PyperfUnit | None = None


class _PyperfRun(msgspec.Struct):
    values: list[float] = []


class _PyperfBenchmark(msgspec.Struct):
    runs: list[_PyperfRun]
    metadata: _PyperfMetadata = msgspec.field(default_factory=_PyperfMetadata)


class _PyperfFile(msgspec.Struct):
    benchmarks: list[_PyperfBenchmark]
    # What all benchmarks have in common; of a single one that is its name, too.
    metadata: _PyperfMetadata = msgspec.field(default_factory=_PyperfMetadata)


def read_pyperf(document: Document) -> Reading:
    """Read one file; a launch for every run that has values. Raises InvalidFileError.

    Each run is a fresh process, so it is a launch, and its values are steps. A run without values
    only calibrated.
    """
    file = reading.parse(document, _PyperfFile, tool="pyperf")
    benchmarks: list[Benchmark] = []
    left_out: list[LeftOut] = []
    for benchmark in file.benchmarks:
        name = benchmark.metadata.name or file.metadata.name or "benchmark"
        metric = _PYPERF_METRICS[benchmark.metadata.unit or file.metadata.unit or "second"]
        runs = [run.values for run in benchmark.runs if run.values]
        if not runs:
            reason = "it has no values"
            left_out.append(LeftOut(document=document.name, benchmark=name, reason=reason))
            continue
        launches = tuple(
            reading.launch(values, metric, f"{document.name}: {name}") for values in runs
        )
        benchmarks.append(Benchmark(name=name, metric=metric, launches=launches))
    return Reading(benchmarks=reading.each_once(benchmarks, document), left_out=tuple(left_out))


# --- torch.utils.benchmark, by the JSON that the lines in docs/samples.md write


class _TorchMeasurement(msgspec.Struct):
    name: str
    number_per_run: Annotated[int, msgspec.Meta(ge=1)]
    raw_times: Annotated[list[float], msgspec.Meta(min_length=1)]


def read_torch_benchmark(document: Document) -> Reading:
    """Read one file; seconds per run of the statement. Raises InvalidFileError.

    The tool itself saves Measurements with pickle, and whoever reads a pickle runs the code in it.
    A result may come from a pull request, so it is never unpickled here. One file is one launch:
    all measurements of a script were made in one process, and each number is a step.
    """
    measurements = reading.parse(
        document,
        list[_TorchMeasurement],
        tool="the lines for torch.utils.benchmark in docs/samples.md",
    )
    benchmarks = [_read_torch_measurement(measurement, document) for measurement in measurements]
    return Reading(benchmarks=reading.each_once(benchmarks, document))


def _read_torch_measurement(measurement: _TorchMeasurement, document: Document) -> Benchmark:
    launch = reading.launch(
        measurement.raw_times,
        reading.SECONDS,
        f"{document.name}: {measurement.name}",
        scale=1 / measurement.number_per_run,
    )
    return Benchmark(name=measurement.name, metric=reading.SECONDS, launches=(launch,))
