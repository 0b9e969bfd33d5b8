"""Formats that `reads` of suite.toml knows, too: each file is a launch, its values are steps."""

from pathlib import Path

from ci_perf import hooks
from ci_perf.errors import InvalidFileError
from ci_perf.features.interchange.importers import reading
from ci_perf.features.interchange.importers.reading import Benchmark, LeftOut, Reading
from ci_perf.measuring.written_numbers import WrittenNumbers
from ci_perf.model.metrics import OwnKind
from ci_perf.model.samples import SampledMetric
from ci_perf.system import files

_METRICS: dict[OwnKind | None, SampledMetric] = {
    "time": reading.SECONDS,
    "tail": SampledMetric(unit="s", kind="tail"),
    "rate": SampledMetric(unit="1/s", direction="higher", kind="time"),
    "bytes": reading.HOST_BYTES,
    "count": reading.EXACT_COUNT,
}


def read(tool: str, path: Path) -> Reading:
    """Read one file. Raises InvalidFileError."""
    if path.is_file():
        files.read_text(path)  # refuses one that is too large
    try:
        readings: dict[str, WrittenNumbers] = hooks.load(hooks.find_formats()[tool])(path)
    except ValueError as error:
        raise InvalidFileError(f"{path}: {error}") from None
    benchmarks: list[Benchmark] = []
    left_out: list[LeftOut] = []
    for name, written in readings.items():
        metric = _METRICS.get(written.kind)
        if metric is None or written.failure:
            reason = written.failure or "the file does not say its unit"
            has_failed = bool(written.failure)
            left_out.append(
                LeftOut(document=str(path), benchmark=name, reason=reason, has_failed=has_failed)
            )
            continue
        launch = reading.launch(written.values, metric, f"{path}: {name}")
        benchmarks.append(Benchmark(name=name, metric=metric, launches=(launch,)))
    return Reading(benchmarks=tuple(benchmarks), left_out=tuple(left_out))
