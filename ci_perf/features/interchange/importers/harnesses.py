"""pyperf, pytest-benchmark, torch.utils.benchmark, Google Benchmark, airspeed velocity.

One file is one launch: repetitions (`--benchmark_repetitions`) run one after the other in the same
process, so they are steps. Aggregates are used only where there is nothing else.
"""

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import msgspec

from ci_perf.errors import InvalidFileError
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
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


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
        launches = tuple(reading.launch(values, metric, document, name) for values in runs)
        benchmarks.append(Benchmark(name=name, metric=metric, launches=launches))
    return Reading(benchmarks=reading.each_once(benchmarks, document), left_out=tuple(left_out))


# --- pytest-benchmark: `pytest --benchmark-json=FILE`


class _PytestStats(msgspec.Struct):
    median: float
    data: list[float] = []


class _PytestEntry(msgspec.Struct):
    fullname: str
    stats: _PytestStats


class _PytestFile(msgspec.Struct):
    benchmarks: list[_PytestEntry]


def read_pytest_benchmark(document: Document) -> Reading:
    """Read one file; seconds per call, a step for every round. Raises InvalidFileError.

    One file is one launch: the whole of pytest is one process. A file saved without its data
    (`--benchmark-save`) still has the median.
    """
    file = reading.parse(document, _PytestFile, tool="pytest-benchmark")
    benchmarks = [_of_pytest(entry, document) for entry in file.benchmarks]
    return Reading(benchmarks=reading.each_once(benchmarks, document))


def _of_pytest(entry: _PytestEntry, document: Document) -> Benchmark:
    values = entry.stats.data or [entry.stats.median]
    launch = reading.launch(values, reading.SECONDS, document, entry.fullname)
    return Benchmark(name=entry.fullname, metric=reading.SECONDS, launches=(launch,))


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
    benchmarks = [_of_torch(measurement, document) for measurement in measurements]
    return Reading(benchmarks=reading.each_once(benchmarks, document))


def _of_torch(measurement: _TorchMeasurement, document: Document) -> Benchmark:
    launch = reading.launch(
        measurement.raw_times,
        reading.SECONDS,
        document,
        measurement.name,
        scale=1 / measurement.number_per_run,
    )
    return Benchmark(name=measurement.name, metric=reading.SECONDS, launches=(launch,))


class _GoogleEntry(msgspec.Struct):
    name: str
    run_name: str = ""
    run_type: Literal["iteration", "aggregate"] = "iteration"
    aggregate_name: str = ""
    # Absent where the entry failed, a share of coefficients of variation, or a big O.
    real_time: float | None = None
    time_unit: Literal["ns", "us", "ms", "s"] = "ns"
    error_occurred: bool = False
    error_message: str = ""
    skipped: bool = False
    skip_message: str = ""


class _GoogleFile(msgspec.Struct):
    context: dict[str, object]
    benchmarks: list[_GoogleEntry]


def read_google_benchmark(document: Document) -> Reading:
    """Read one file; real time per iteration, a step for every repetition.

    Raises InvalidFileError.
    """
    file = reading.parse(document, _GoogleFile, tool="Google Benchmark")
    by_name: dict[str, list[_GoogleEntry]] = {}
    for entry in file.benchmarks:
        by_name.setdefault(entry.run_name or entry.name, []).append(entry)
    benchmarks: list[Benchmark] = []
    left_out: list[LeftOut] = []
    for name, entries in by_name.items():
        if reason := _reason_to_leave_out(entries):
            left_out.append(LeftOut(document=document.name, benchmark=name, reason=reason))
            continue
        values = _seconds(entries, iterations=True) or _seconds(entries, iterations=False)
        if values:
            launch = reading.launch(values, reading.SECONDS, document, name)
            benchmarks.append(Benchmark(name=name, metric=reading.SECONDS, launches=(launch,)))
        else:
            reason = "it has neither repetitions nor a median"
            left_out.append(LeftOut(document=document.name, benchmark=name, reason=reason))
    return Reading(benchmarks=tuple(benchmarks), left_out=tuple(left_out))


def _reason_to_leave_out(entries: list[_GoogleEntry]) -> str:
    """Say why a benchmark stopped itself: its times until then are those of something else."""
    for entry in entries:
        if entry.error_occurred or entry.skipped:
            return entry.error_message or entry.skip_message or "it stopped itself"
    return ""


def _seconds(entries: list[_GoogleEntry], *, iterations: bool) -> list[float]:
    return [
        entry.real_time * _SECONDS[entry.time_unit]
        for entry in entries
        if entry.real_time is not None
        and (
            entry.run_type == "iteration"
            if iterations
            else entry.run_type == "aggregate" and entry.aggregate_name == "median"
        )
    ]


# --- asv: `results/MACHINE/COMMIT-ENVIRONMENT.json` of `asv run`
#
# It pools the samples of several processes, and nobody can tell any more which process a sample
# came from. Without `--record-samples` the file has one number per benchmark, which is enough.

_ASV_VERSION = 2
# asv knows the kind of a benchmark by its name; the unit of a "track" is not in the file.
_ASV_KIND = re.compile(r"^(time|timeraw|peakmem|mem)(?=[_A-Z])", re.IGNORECASE)
_ASV_METRICS: dict[str, SampledMetric] = {
    "time": reading.SECONDS,
    "timeraw": reading.SECONDS,
    "peakmem": reading.HOST_BYTES,
    "mem": reading.EXACT_BYTES,
}

# A benchmark of more parameters, or of a longer name, is none that somebody has written.
_MAX_PARAMETERS = 100
_MAX_NAME_CHARS = 10_000
_NO_UNIT = "it is no time and no memory, and the file does not say its unit"
_NO_RESULT = "it has no result: skipped, or failed"

_AsvValue = float | None


class _AsvFile(msgspec.Struct):
    version: int
    result_columns: list[str]
    # A row of values, as far as the benchmark has any, in the order of the columns.
    results: dict[str, list[object]]


class _AsvRow(msgspec.Struct):
    """Results and samples of one benchmark, in the order of all combinations of parameters."""

    result: list[_AsvValue] | None = None
    params: list[list[str]] = []
    samples: list[list[float] | None] | None = None


def read_asv(document: Document) -> Reading:
    """Read one file; a benchmark for every combination of parameters. Raises InvalidFileError."""
    file = reading.parse(document, _AsvFile, tool="asv")
    if file.version != _ASV_VERSION:
        raise InvalidFileError(
            f"{document.name}: expected results of asv in version {_ASV_VERSION}, "
            f"found {file.version}; write them anew with `asv update`"
        )
    outcomes = [
        outcome
        for name, values in file.results.items()
        for outcome in _of_asv(
            name, _asv_row(file.result_columns, values, document, name), document
        )
    ]
    benchmarks = [outcome for outcome in outcomes if isinstance(outcome, Benchmark)]
    left_out = tuple(outcome for outcome in outcomes if isinstance(outcome, LeftOut))
    return Reading(benchmarks=reading.each_once(benchmarks, document), left_out=left_out)


def _asv_row(columns: list[str], values: list[object], document: Document, name: str) -> _AsvRow:
    try:
        return msgspec.convert(dict(zip(columns, values, strict=False)), type=_AsvRow)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise InvalidFileError(
            f"{document.name}: {name}: expected results that asv wrote, found: {error}"
        ) from None


def _of_asv(name: str, row: _AsvRow, document: Document) -> Iterator[Benchmark | LeftOut]:
    kind = _ASV_KIND.match(name.rpartition(".")[2])
    if row.result is None:
        reason = _NO_UNIT if kind is None else _NO_RESULT
        yield LeftOut(document=document.name, benchmark=name, reason=reason)
        return
    samples = row.samples or [None] * len(row.result)
    _check_asv_counts(name, row.params, row.result, samples, document)
    names = (_asv_name(name, chosen, document) for chosen in itertools.product(*row.params))
    for benchmark, result, values in zip(names, row.result, samples, strict=True):
        if kind is None:
            yield LeftOut(document=document.name, benchmark=benchmark, reason=_NO_UNIT)
        elif result is None:
            yield LeftOut(document=document.name, benchmark=benchmark, reason=_NO_RESULT)
        else:
            metric = _ASV_METRICS[kind[1].lower()]
            launch = reading.launch(values or [result], metric, document, benchmark)
            yield Benchmark(name=benchmark, metric=metric, launches=(launch,))


def _check_asv_counts(
    name: str,
    params: Sequence[Sequence[str]],
    results: Sequence[object],
    samples: Sequence[object],
    document: Document,
) -> None:
    """Refuse a file whose results are not one for each combination, before these are built.

    40 parameters of two values take 300 bytes, and have 10^12 combinations.
    """
    if len(params) > _MAX_PARAMETERS:
        raise InvalidFileError(
            f"{document.name}: {name}: expected at most {_MAX_PARAMETERS} parameters, found "
            f"{len(params):,}"
        )
    combinations = math.prod(map(len, params))
    if not combinations == len(results) == len(samples):
        raise InvalidFileError(
            f"{document.name}: {name}: expected {combinations} results, one for each "
            f"combination of parameters, found {len(results)} and {len(samples)} lists of samples"
        )


def _asv_name(name: str, chosen: Sequence[str], document: Document) -> str:
    """Name a benchmark with its parameters; long values would stand in every combination."""
    benchmark = f"{name}({', '.join(chosen)})" if chosen else name
    if len(benchmark) > _MAX_NAME_CHARS:
        raise InvalidFileError(
            f"{document.name}: {name[:200]}: expected a name of at most {_MAX_NAME_CHARS:,} "
            f"characters with its parameters, found {len(benchmark):,}"
        )
    return benchmark
