"""airspeed velocity: `results/MACHINE/COMMIT-ENVIRONMENT.json` of `asv run`.

One file is one launch, even when asv used several processes: it pools their samples, and nobody
can tell any more which process a sample came from. Without `--record-samples` the file has one
number per benchmark, which is enough.
"""

import itertools
import re
from collections.abc import Iterator

import msgspec

from ci_perf.errors import InvalidFileError
from ci_perf.importers import reading
from ci_perf.importers.reading import Document, Found, LeftOut, Reading
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
    found = [one for one in outcomes if isinstance(one, Found)]
    left_out = tuple(one for one in outcomes if isinstance(one, LeftOut))
    return Reading(found=reading.once(found, document), left_out=left_out)


def _row(columns: list[str], values: list[object], document: Document, name: str) -> _Row:
    try:
        return msgspec.convert(dict(zip(columns, values, strict=False)), type=_Row)
    except msgspec.ValidationError as error:
        raise InvalidFileError(
            f"{document.name}: {name}: expected results that asv wrote, found: {error}"
        ) from None


def _of_benchmark(name: str, row: _Row, document: Document) -> Iterator[Found | LeftOut]:
    kind = _KIND.match(name.rpartition(".")[2])
    combinations = [", ".join(chosen) for chosen in itertools.product(*row.params)]
    results = row.result if row.result is not None else [None] * len(combinations)
    samples = row.samples or [None] * len(combinations)
    if not len(combinations) == len(results) == len(samples):
        raise InvalidFileError(
            f"{document.name}: {name}: expected {len(combinations)} results, one for each "
            f"combination of parameters, found {len(results)} and {len(samples)} lists of samples"
        )
    for chosen, result, values in zip(combinations, results, samples, strict=True):
        benchmark = f"{name}({chosen})" if chosen else name
        if kind is None:
            reason = "it is no time and no memory, and the file does not say its unit"
            yield LeftOut(document=document.name, benchmark=benchmark, reason=reason)
        elif result is None:
            reason = "it has no result: skipped, or failed"
            yield LeftOut(document=document.name, benchmark=benchmark, reason=reason)
        else:
            metric = _METRICS[kind[1].lower()]
            launch = reading.launch(values or [result], metric, document, benchmark)
            yield Found(benchmark=benchmark, metric=metric, launches=(launch,))
