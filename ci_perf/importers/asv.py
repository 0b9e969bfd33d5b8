"""airspeed velocity: `results/MACHINE/COMMIT-ENVIRONMENT.json` of `asv run`.

One file is one launch, even when asv used several processes: it pools their samples, and nobody
can tell any more which process a sample came from. Without `--record-samples` the file has one
number per benchmark, which is enough.
"""

import itertools
import math
import re
from collections.abc import Iterator, Sequence

import msgspec

from ci_perf.errors import InvalidFileError
from ci_perf.importers import reading
from ci_perf.importers.reading import Benchmark, Document, LeftOut, Reading
from ci_perf.model.samples import SampledMetric

_VERSION = 2
# asv knows the kind of a benchmark by its name; the unit of a "track" is not in the file.
_KIND = re.compile(r"^(time|timeraw|peakmem|mem)(?=[_A-Z])", re.IGNORECASE)
_METRICS: dict[str, SampledMetric] = {
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

_Value = float | None


class _File(msgspec.Struct):
    version: int
    result_columns: list[str]
    # A row of values, as far as the benchmark has any, in the order of the columns.
    results: dict[str, list[object]]


class _Row(msgspec.Struct):
    """Results and samples of one benchmark, in the order of all combinations of parameters."""

    result: list[_Value] | None = None
    params: list[list[str]] = []
    samples: list[list[float] | None] | None = None


def read(document: Document) -> Reading:
    """Read one file; a benchmark for every combination of parameters. Raises InvalidFileError."""
    file = reading.parse(document, _File, tool="asv")
    if file.version != _VERSION:
        raise InvalidFileError(
            f"{document.name}: expected results of asv in version {_VERSION}, "
            f"found {file.version}; write them anew with `asv update`"
        )
    outcomes = [
        outcome
        for name, values in file.results.items()
        for outcome in _of_benchmark(
            name, _row(file.result_columns, values, document, name), document
        )
    ]
    benchmarks = [outcome for outcome in outcomes if isinstance(outcome, Benchmark)]
    left_out = tuple(outcome for outcome in outcomes if isinstance(outcome, LeftOut))
    return Reading(benchmarks=reading.each_once(benchmarks, document), left_out=left_out)


def _row(columns: list[str], values: list[object], document: Document, name: str) -> _Row:
    try:
        return msgspec.convert(dict(zip(columns, values, strict=False)), type=_Row)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise InvalidFileError(
            f"{document.name}: {name}: expected results that asv wrote, found: {error}"
        ) from None


def _of_benchmark(name: str, row: _Row, document: Document) -> Iterator[Benchmark | LeftOut]:
    kind = _KIND.match(name.rpartition(".")[2])
    if row.result is None:
        reason = _NO_UNIT if kind is None else _NO_RESULT
        yield LeftOut(document=document.name, benchmark=name, reason=reason)
        return
    samples = row.samples or [None] * len(row.result)
    _check_counts(name, row.params, row.result, samples, document)
    names = (_combined(name, chosen, document) for chosen in itertools.product(*row.params))
    for benchmark, result, values in zip(names, row.result, samples, strict=True):
        if kind is None:
            yield LeftOut(document=document.name, benchmark=benchmark, reason=_NO_UNIT)
        elif result is None:
            yield LeftOut(document=document.name, benchmark=benchmark, reason=_NO_RESULT)
        else:
            metric = _METRICS[kind[1].lower()]
            launch = reading.launch(values or [result], metric, document, benchmark)
            yield Benchmark(name=benchmark, metric=metric, launches=(launch,))


def _check_counts(
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


def _combined(name: str, chosen: Sequence[str], document: Document) -> str:
    """Name a benchmark with its parameters; long values would stand in every combination."""
    benchmark = f"{name}({', '.join(chosen)})" if chosen else name
    if len(benchmark) > _MAX_NAME_CHARS:
        raise InvalidFileError(
            f"{document.name}: {name[:200]}: expected a name of at most {_MAX_NAME_CHARS:,} "
            f"characters with its parameters, found {len(benchmark):,}"
        )
    return benchmark
