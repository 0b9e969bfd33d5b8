"""Metrics of the user's own, of what a command has printed or written."""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from ci_perf import hooks
from ci_perf.measuring.written_numbers import WrittenNumbers
from ci_perf.model.codec import did_you_mean
from ci_perf.model.metrics import Kind, check_own, clean_name, metric_of, name_own
from ci_perf.model.suite import READS_TEXT, SIZES, OwnMetric, parse_pattern

Numbers = dict[str, float]


class OwnMetrics:
    """The metrics of a command: ``reads`` and ``metrics`` are those of its entry in suite.toml.

    Raises ValueError: an unknown format.
    """

    def __init__(self, reads: str, metrics: str) -> None:
        self._format, _, self._file = reads.partition(":")
        self._declared = msgspec.json.decode(metrics or "{}", type=dict[str, OwnMetric])
        self._read = find_reader(self._format)

    def find_file(self, output: Path) -> Path:
        """Return what is read: the file of the run, or the one that suite.toml names."""
        return Path(self._file) if self._file else output

    def read_run(self, lines: Iterable[str], output: Path, before: int | None) -> Numbers:
        """Return the numbers of a run that has printed these lines.

        `before` is what `stamp` said of the file before the run. Raises ValueError: no file of this
        run, one of another format, a number that is missing, zero or outside of its bounds.
        """
        if self._read is None:
            readings = _read_text(lines, self._declared)
        else:
            file = self.find_file(output)
            shown = self._file or "{output}"
            if (now := stamp(file)) is None or now == before:
                raise ValueError(f"expected a file of this run at {shown}, found none")
            try:
                readings = dict(self._read(file))
            except ValueError as error:
                raise ValueError(f"{shown}, read as {self._format}: {error}") from None
            for name, reading in readings.items():
                if reading.failure:
                    raise ValueError(f"{shown}: {name}: expected numbers, found: {reading.failure}")
        numbers = _choose(self._declared, readings) if self._declared else _take_all(readings)
        if not numbers and not self._declared:
            raise ValueError(
                f"{self._format}: expected a table of metrics in suite.toml, found none"
            )
        return numbers


def join_runs(runs: Sequence[Numbers]) -> Numbers:
    """Return the numbers of a launch: the middle of those of its runs."""
    names = sorted({name for run in runs for name in run})
    return {name: find_middle(name, [run[name] for run in runs if name in run]) for name in names}


def find_reader(name: str) -> Callable[[Path], Mapping[str, WrittenNumbers]] | None:
    """Return what reads a format; `None` for what a command prints. Raises ValueError."""
    if name == READS_TEXT:
        return None
    known = hooks.find_formats()
    if name not in known:
        raise ValueError(
            f"reads: unknown format {name!r}; {did_you_mean(name, [READS_TEXT, *known])}"
        )
    reader: Callable[[Path], Mapping[str, WrittenNumbers]] = hooks.load(known[name])
    return reader


def stamp(path: Path) -> int | None:
    """Return when a file, or the newest one of a folder, was written; `None` without any."""
    files = [path, *path.rglob("*")] if path.is_dir() else [path]
    return max((file.stat().st_mtime_ns for file in files if file.is_file()), default=None)


def _read_text(
    lines: Iterable[str], declared: Mapping[str, OwnMetric]
) -> dict[str, WrittenNumbers]:
    """Return the numbers that lines have, by the expression that finds them."""
    patterns = {metric.find: parse_pattern(metric.find) for metric in declared.values()}
    values_of: dict[str, list[float]] = {text: [] for text in patterns}
    for line in lines:
        for text, pattern in patterns.items():
            if match := pattern.search(line):
                values_of[text].append(_to_number(match[1], line))
    return {
        text: WrittenNumbers(values=tuple(values)) for text, values in values_of.items() if values
    }


def _to_number(text: str, line: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"expected a number, found {text!r} in {line.strip()!r}") from None


def _choose(declared: Mapping[str, OwnMetric], readings: Mapping[str, WrittenNumbers]) -> Numbers:
    """Return the numbers of the declared metrics."""
    numbers = {}
    for name, metric in declared.items():
        searched = metric.find or name
        reading = readings.get(searched) or readings.get(clean_name(searched))
        if reading is None:
            if metric.optional:
                continue
            hint = did_you_mean(searched, sorted(readings))
            raise ValueError(f"metrics.{name}: expected {searched!r}, found none; {hint}")
        if metric.kind == "validity":
            _check_bounds(name, metric, reading)
            continue
        own = name_own(metric.kind, name)
        unit = _find_unit(own, metric.unit, reading)
        numbers[own] = find_middle(own, [value * unit for value in reading.values])
    return numbers


def _check_bounds(name: str, metric: OwnMetric, reading: WrittenNumbers) -> None:
    for value in reading.values:
        if metric.at_most is not None and value > metric.at_most:
            raise ValueError(f"{name}: expected at most {metric.at_most:g}, found {value:g}")
        if metric.at_least is not None and value < metric.at_least:
            raise ValueError(f"{name}: expected at least {metric.at_least:g}, found {value:g}")


def _find_unit(own: str, unit: str, reading: WrittenNumbers) -> float:
    """Return what a number is multiplied by; a reader that knows the kind has done that.

    Raises ValueError: a unit of another quantity, or of a number whose unit is known.
    """
    kind = metric_of(own).unit
    if reading.kind is not None:
        known = metric_of(name_own(reading.kind, own)).unit
        if unit or known is not kind:
            raise ValueError(f"{own}: expected a kind in {known.value} and no unit")
        return 1.0
    sizes = SIZES.get(kind, {})
    if unit and unit not in sizes:
        raise ValueError(f"{own}: expected a unit of {kind.value}, found {unit!r}")
    end = own.rpartition("_")[2]
    by_end = {name.lower(): size for name, size in sizes.items()}
    return sizes[unit] if unit else by_end.get(end.lower(), 1.0)


def _take_all(readings: Mapping[str, WrittenNumbers]) -> Numbers:
    """Return the numbers of which the format says what they are."""
    return {
        (own := name_own(reading.kind, name)): find_middle(own, reading.values)
        for name, reading in readings.items()
        if reading.kind is not None
    }


def find_middle(name: str, values: Sequence[float]) -> float:
    """Return the median; of what is exact, the worst. Raises ValueError: no number to judge."""
    for value in values:
        check_own(name, value)
    metric = metric_of(name)
    if metric.kind is not Kind.COUNT:
        return statistics.median(values)
    return min(values) if name.startswith("score") else max(values)
