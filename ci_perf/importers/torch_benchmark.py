"""torch.utils.benchmark, by the JSON that the lines in docs/samples.md write.

The tool itself saves Measurements with pickle, and whoever reads a pickle runs the code in it. A
result may come from a pull request, so it is never unpickled here. One file is one launch: all
measurements of a script were made in one process, and each number is a step.
"""

from typing import Annotated

import msgspec

from ci_perf.importers import reading
from ci_perf.importers.reading import Benchmark, Document, Reading


class _Measurement(msgspec.Struct):
    name: str
    number_per_run: Annotated[int, msgspec.Meta(ge=1)]
    raw_times: Annotated[list[float], msgspec.Meta(min_length=1)]


def read(document: Document) -> Reading:
    """Read one file; seconds per run of the statement. Raises InvalidFileError."""
    measurements = reading.parse(
        document, list[_Measurement], tool="the lines for torch.utils.benchmark in docs/samples.md"
    )
    benchmarks = [_benchmark(measurement, document) for measurement in measurements]
    return Reading(benchmarks=reading.each_once(benchmarks, document))


def _benchmark(measurement: _Measurement, document: Document) -> Benchmark:
    launch = reading.launch(
        measurement.raw_times,
        reading.SECONDS,
        document,
        measurement.name,
        scale=1 / measurement.number_per_run,
    )
    return Benchmark(name=measurement.name, metric=reading.SECONDS, launches=(launch,))
