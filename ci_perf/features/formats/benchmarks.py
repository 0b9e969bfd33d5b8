"""Tools with many benchmarks, such as pytest-benchmark, asv and pyperf."""

import csv
import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from ci_perf.features.formats import documents
from ci_perf.features.formats.documents import Named
from ci_perf.measuring.written_numbers import WrittenNumbers
from ci_perf.model.metrics import OwnKind


def _time(name: str, values: list[float]) -> Named:
    return name, WrittenNumbers(values=tuple(values), kind="time")


# --- pytest-benchmark: `pytest --benchmark-json=FILE`


class _PytestStats(msgspec.Struct):
    median: float
    data: list[float] = []


class _PytestBenchmark(msgspec.Struct):
    fullname: str
    stats: _PytestStats


class _PytestFile(msgspec.Struct):
    benchmarks: list[_PytestBenchmark]


def read_pytest_benchmark(path: Path) -> dict[str, WrittenNumbers]:
    """Read the time of every round, or the median in a file without data. Raises ValueError."""
    file = documents.parse(documents.read_text(path), _PytestFile)
    return documents.collect(
        _time(each.fullname, each.stats.data or [each.stats.median]) for each in file.benchmarks
    )


# --- asv: `results/MACHINE/COMMIT-ENVIRONMENT.json` of `asv run`

_ASV_VERSION = 2
# asv knows the kind of a benchmark by its name; the file has no unit of a "track".
_ASV_KIND = re.compile(r"(?i:time|timeraw|peakmem|mem)(?=[_A-Z])")
# Nobody writes a longer one, and long parameters are in every combination.
_MOST_NAME_CHARS = 10_000
_ASV_FAILURE = "the benchmark failed"
_ASV_OTHER_FILES = frozenset({"machine.json", "benchmarks.json"})


class _AsvFile(msgspec.Struct):
    version: float
    result_columns: list[str]
    # A row of values, as far as the benchmark has any, in the order of the columns.
    results: dict[str, list[object]]


class _AsvRow(msgspec.Struct):
    """Results and samples of one benchmark, in the order of all combinations of parameters.

    The result of a benchmark that failed is null, and NaN if it was skipped.
    """

    result: list[float | None] | None = None
    params: list[list[str]] = []
    samples: list[list[float] | None] | None = None


def read_asv(path: Path) -> dict[str, WrittenNumbers]:
    """Read a file of results, or the newest one in a folder. Raises ValueError.

    Every combination of parameters is a benchmark; one that was skipped is left out.
    """
    file = documents.parse(documents.read_text(_find_asv_file(path)), _AsvFile)
    if file.version != _ASV_VERSION:
        raise ValueError(
            f"expected results of asv in version {_ASV_VERSION}, found {file.version:g}; write "
            "them anew with `asv update`"
        )
    return documents.collect(
        reading
        for name, values in file.results.items()
        for reading in _read_asv_row(
            name, documents.convert(dict(zip(file.result_columns, values, strict=False)), _AsvRow)
        )
    )


def _find_asv_file(path: Path) -> Path:
    """Return the newest file of results: its name has the commit, which no option can name."""
    if not path.is_dir():
        return path
    files = [file for file in path.rglob("*.json") if file.name not in _ASV_OTHER_FILES]
    if not files:
        raise ValueError("expected results of asv in the folder, found none")
    return max(files, key=lambda file: file.stat().st_mtime)


def _read_asv_row(name: str, row: _AsvRow) -> Iterator[Named]:
    if row.result is None:
        yield name, WrittenNumbers(failure=_ASV_FAILURE)
        return
    results = row.result
    samples = row.samples or [None] * len(results)
    combinations = math.prod(map(len, row.params))
    if not combinations == len(results) == len(samples):
        raise ValueError(
            f"{name}: expected {combinations} results, one for each combination of parameters, "
            f"found {len(results)}"
        )
    match = _ASV_KIND.match(name.rpartition(".")[2])
    kind: OwnKind | None = None
    if match:
        kind = "bytes" if "mem" in match[0].lower() else "time"
    for chosen, result, values in zip(
        itertools.product(*row.params), results, samples, strict=True
    ):
        benchmark = f"{name}({', '.join(chosen)})" if chosen else name
        if len(benchmark) > _MOST_NAME_CHARS:
            raise ValueError(
                f"{name[:200]}: expected a name of at most {_MOST_NAME_CHARS:,} characters with "
                f"its parameters, found {len(benchmark):,}"
            )
        if result is None:
            yield benchmark, WrittenNumbers(failure=_ASV_FAILURE)
        elif not math.isnan(result):
            yield benchmark, WrittenNumbers(values=tuple(values or [result]), kind=kind)


# --- nvbench: `--json FILE`

# The first that a state has: files of older versions have no median.
_NVBENCH_TAGS = (
    "nv/cold/time/gpu/median",
    "nv/cold/time/gpu/mean",
    "nv/cpu_only/time/cpu/median",
    "nv/cpu_only/time/cpu/mean",
)
# As nvbench itself begins the reason where an exception has ended a benchmark.
_NVBENCH_ERROR = "Unexpected error"


class _NvbenchValue(msgspec.Struct):
    name: str
    value: str | float


class _NvbenchSummary(msgspec.Struct):
    tag: str
    data: list[_NvbenchValue] | None = None


class _NvbenchState(msgspec.Struct):
    name: str
    summaries: list[_NvbenchSummary] | None = None
    is_skipped: bool = False
    skip_reason: str = ""


class _NvbenchBenchmark(msgspec.Struct):
    name: str
    states: list[_NvbenchState] | None = None


class _NvbenchFile(msgspec.Struct):
    benchmarks: list[_NvbenchBenchmark] | None


def read_nvbench(path: Path) -> dict[str, WrittenNumbers]:
    """Read the median GPU time of every state, or its mean. Raises ValueError.

    A state is one choice of device and parameters. One that was skipped is left out.
    """
    file = documents.parse(documents.read_text(path), _NvbenchFile)
    return documents.collect(
        _time(f"{benchmark.name}.{state.name}".rstrip("."), [_read_nvbench_time(state)])
        for benchmark in file.benchmarks or []
        for state in benchmark.states or []
        if not state.is_skipped or state.skip_reason.startswith(_NVBENCH_ERROR)
    )


def _read_nvbench_time(state: _NvbenchState) -> float:
    if state.is_skipped:
        raise ValueError(f"{state.name}: expected a time, found: {state.skip_reason}")
    values = {
        summary.tag: value.value
        for summary in state.summaries or []
        for value in summary.data or []
        if value.name == "value"
    }
    for tag in _NVBENCH_TAGS:
        if tag in values:
            return float(values[tag])
    raise ValueError(f"{state.name}: expected a summary {_NVBENCH_TAGS[1]}, found none")


# --- Google Benchmark: `--benchmark_out=FILE --benchmark_out_format=json`


class _GoogleEntry(msgspec.Struct):
    name: str
    run_name: str = ""
    run_type: Literal["iteration", "aggregate"] = "iteration"
    aggregate_name: str = ""
    real_time: float | None = None  # none of a big O
    time_unit: Literal["ns", "us", "ms", "s"] = "ns"
    error_occurred: bool = False
    error_message: str = ""
    skipped: bool = False


class _GoogleFile(msgspec.Struct):
    context: dict[str, object]
    benchmarks: list[_GoogleEntry]


def read_google_benchmark(path: Path) -> dict[str, WrittenNumbers]:
    """Read the real time of every repetition. Raises ValueError.

    The median of the repetitions is read where the file has nothing else. A benchmark that was
    skipped is left out.
    """
    file = documents.parse(documents.read_text(path), _GoogleFile)
    values: dict[str, dict[str, list[float]]] = {}
    failed: dict[str, WrittenNumbers] = {}
    for entry in file.benchmarks:
        name = entry.run_name or entry.name
        if entry.error_occurred:
            failed[name] = WrittenNumbers(failure=entry.error_message or "an error")
        elif entry.real_time is not None and not entry.skipped:
            time_s = entry.real_time / documents.PER_SECOND[entry.time_unit]
            values.setdefault(name, {}).setdefault(entry.aggregate_name, []).append(time_s)
    times = {name: by_kind.get("", by_kind.get("median")) for name, by_kind in values.items()}
    measured = (_time(name, each) for name, each in times.items() if each and name not in failed)
    return documents.collect([*measured, *failed.items()])


# --- hyperfine: `--export-json FILE`


class _HyperfineResult(msgspec.Struct):
    command: str
    times: list[float]


class _HyperfineFile(msgspec.Struct):
    results: list[_HyperfineResult]


def read_hyperfine(path: Path) -> dict[str, WrittenNumbers]:
    """Read the times of every command, by its text or its `--command-name`. Raises ValueError."""
    file = documents.parse(documents.read_text(path), _HyperfineFile)
    return documents.collect(_time(each.command, each.times) for each in file.results)


# --- pyperf: `-o FILE` of `pyperf timeit`, `pyperf command` or a script with a Runner

_PyperfUnit = Literal["second", "byte", "integer"]
_PYPERF_KINDS: dict[_PyperfUnit, OwnKind] = {"second": "time", "byte": "bytes", "integer": "count"}


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


def read_pyperf(path: Path) -> dict[str, WrittenNumbers]:
    """Read the values of every run; each run is a launch of its own. Raises ValueError.

    A run without values only calibrated.
    """
    file = documents.parse(documents.read_text(path), _PyperfFile)
    readings: list[Named] = []
    for benchmark in file.benchmarks:
        own, common = benchmark.metadata, file.metadata
        launches = tuple(tuple(run.values) for run in benchmark.runs if run.values)
        written = WrittenNumbers(
            values=tuple(itertools.chain(*launches)),
            launches=launches,
            kind=_PYPERF_KINDS[own.unit or common.unit or "second"],
            failure="" if launches else "it has no values",
        )
        readings.append((own.name or common.name or "benchmark", written))
    return documents.collect(readings)


# --- torch.utils.benchmark, by the JSON that the lines in docs/samples.md write


class _TorchMeasurement(msgspec.Struct):
    name: str
    number_per_run: Annotated[float, msgspec.Meta(ge=1)]
    raw_times: Annotated[list[float], msgspec.Meta(min_length=1)]


def read_torch_benchmark(path: Path) -> dict[str, WrittenNumbers]:
    """Read the seconds per run of every statement. Raises ValueError.

    The tool itself saves Measurements with pickle, and whoever reads a pickle runs the code in it.
    A result may come from a pull request, so it is never unpickled here.
    """
    measurements = documents.parse(documents.read_text(path), list[_TorchMeasurement])
    return documents.collect(
        _time(each.name, [raw_s / each.number_per_run for raw_s in each.raw_times])
        for each in measurements
    )


# --- triton.testing.perf_report: `PLOT.csv` of `.run(save_path=FOLDER)`

# A line is called "Triton (GB/s)" by newer versions, and "Triton" by older ones.
_TRITON_LINE = re.compile(r".* \((?P<unit>.+)\)")
_TRITON_DIFFERENCE = "Diff"


def read_triton(path: Path) -> dict[str, WrittenNumbers]:
    """Read each line at each size, as `LINE.M=256.N=256`. Raises ValueError.

    Columns of sizes come first: their numbers are whole. An empty cell is left out.
    """
    rows = list(csv.reader(documents.read_text(path).splitlines()))
    header, body = rows[0], [row for row in rows[1:] if row]
    for number, row in enumerate(body, start=2):
        if not 1 < len(header) == len(row):
            raise ValueError(
                f"row {number}: expected {max(len(header), 2)} cells, found {len(row)}"
            )
    columns = list(zip(header, *body, strict=True))[:-1]
    sizes = max(1, len(list(itertools.takewhile(_is_triton_size, columns))))
    return documents.collect(
        _read_triton_cell(dict(zip(header[:sizes], row, strict=False)), line, cell)
        for row in body
        for line, cell in zip(header[sizes:], row[sizes:], strict=True)
        if cell and line != _TRITON_DIFFERENCE
    )


def _is_triton_size(column: tuple[str, ...]) -> bool:
    is_line = _TRITON_LINE.fullmatch(column[0]) is not None
    return not is_line and all(re.fullmatch(r"\d+(\.0*)?", cell) for cell in column[1:])


def _read_triton_cell(sizes: dict[str, str], line: str, cell: str) -> Named:
    at = [f"{name}={re.sub(r'[.]0*$', '', size)}" for name, size in sizes.items()]
    name = ".".join([line, *at])
    try:
        value = float(cell)
    except ValueError:
        raise ValueError(f"{name}: expected a number, found {cell!r}") from None
    unit = (_TRITON_LINE.fullmatch(line) or {"unit": ""})["unit"].lower()
    if unit in documents.PER_SECOND:
        return _time(name, [value / documents.PER_SECOND[unit]])
    return name, WrittenNumbers(values=(value,), kind="rate" if unit.endswith("/s") else None)
