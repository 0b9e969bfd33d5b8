"""Results of other harnesses as samples: files in, one document out."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf import hooks
from ci_perf.errors import InvalidFileError
from ci_perf.measuring.written_numbers import WrittenNumbers
from ci_perf.model import codec
from ci_perf.model.metrics import OwnKind
from ci_perf.model.samples import (
    MAX_WORKLOADS,
    SMALLEST_NOISY,
    Launch,
    Sampled,
    SampledMetric,
    Samples,
)
from ci_perf.system import files

_METRICS: dict[OwnKind | None, SampledMetric] = {
    "time": SampledMetric(unit="s", kind="time"),
    "tail": SampledMetric(unit="s", kind="tail"),
    "rate": SampledMetric(unit="1/s", direction="higher", kind="time"),
    "bytes": SampledMetric(unit="byte", kind="host_memory"),
    "count": SampledMetric(unit="count", kind="exact"),
}
_FOREIGN = re.compile(r"[^A-Za-z0-9_.=+-]+")
_MAX_NAME_CHARS = 200
# As `model.base.Amount` has it.
_LARGEST = 1e19

_ByName = dict[str, list["Benchmark"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """The launches of one benchmark in one file, by the name that the harness gives it."""

    name: str
    metric: SampledMetric
    launches: tuple[Launch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A benchmark of which a file has no number that can be judged, and why."""

    document: str
    benchmark: str
    reason: str
    has_failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The benchmarks of one file, and those that cannot be judged."""

    benchmarks: tuple[Benchmark, ...]
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The samples, what had no number that can be judged, and what failed on the head, with why."""

    samples: Samples
    left_out: tuple[LeftOut, ...]
    failed: dict[str, str]


def find_tools() -> list[str]:
    """Return what `--from` may name."""
    return sorted(hooks.find_formats())


def read(tool: str, path: Path) -> Reading:
    """Read a file that a tool wrote. Raises InvalidFileError.

    It is a launch, and its values are steps, unless it has several launches.
    """
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
        _check_values(written.values, metric, f"{path}: {name}")
        launches = written.launches or (written.values,)
        benchmarks.append(Benchmark(name=name, metric=metric, launches=launches))
    return Reading(benchmarks=tuple(benchmarks), left_out=tuple(left_out))


def _check_values(values: Sequence[float], metric: SampledMetric, place: str) -> None:
    """Refuse what cannot be judged: what is noisy has a logarithm. Raises InvalidFileError."""
    least = 0.0 if metric.kind == "exact" else SMALLEST_NOISY
    for value in values:
        if not least <= value <= _LARGEST:  # also refuses NaN
            raise InvalidFileError(
                f"{place}: expected numbers from {least:g} to {_LARGEST:g}, "
                f"found {value}; was nothing measured?"
            )


def join(files: Sequence[tuple[str, Samples]]) -> Samples:
    """Make one document of several, each with the name of its file.

    Raises InvalidFileError where two of them hold the same metric of the same workload.
    """
    _check_total(sum(len(samples.workloads) for _, samples in files))
    owners: dict[tuple[str, str], str] = {}
    for name, samples in files:
        for sampled in samples.workloads:
            key = sampled.workload, sampled.metric.known().name
            if key in owners:
                raise InvalidFileError(
                    f"{name}: expected workloads that no other file holds, found {key[0]!r} with "
                    f"metric {key[1]!r}, as in {owners[key]}; rename it in one of the files"
                )
            owners[key] = name
    return Samples(workloads=tuple(itertools.chain(*(samples.workloads for _, samples in files))))


def merge(
    base: Sequence[Reading],
    head: Sequence[Reading],
    pairs: Sequence[tuple[Reading, Reading]] = (),
) -> Merged:
    """Make samples of files: each of `base` is a session, those of `head` are one together.

    The two files of each pair, base and head, were launched in turns: their launches are paired in
    order. What failed once on the head has no samples. Raises InvalidFileError.
    """
    old, new = [before for before, _ in pairs], [after for _, after in pairs]
    sides = (base, head, old, new)
    by_side = [_by_name(side) for side in sides]
    failed = {
        each.benchmark: each.reason
        for file in (*head, *new)
        for each in file.left_out
        if each.has_failed
    }
    benchmarks = list(dict.fromkeys(itertools.chain(*by_side, failed)))
    _check_total(len(benchmarks))
    names = _workload_names(benchmarks)
    workloads = {name: workload for name, workload in names.items() if name not in failed}
    return Merged(
        samples=Samples(
            workloads=tuple(
                _build_samples(workload, *(side.get(name, []) for side in by_side))
                for name, workload in workloads.items()
            )
        ),
        left_out=tuple(left_out for side in sides for file in side for left_out in file.left_out),
        failed={names[name]: reason for name, reason in failed.items()},
    )


def _check_total(workloads: int) -> None:
    if workloads > MAX_WORKLOADS:
        raise InvalidFileError(
            f"expected at most {MAX_WORKLOADS:,} workloads in all files together, found "
            f"{workloads:,}; judge fewer at once"
        )


def _by_name(files: Sequence[Reading]) -> _ByName:
    """Collect what the files of a side say of each benchmark, in the order of the files."""
    by_name: _ByName = {}
    for file in files:
        for benchmark in file.benchmarks:
            by_name.setdefault(benchmark.name, []).append(benchmark)
    return by_name


def _build_samples(
    name: str,
    base: Sequence[Benchmark],
    head: Sequence[Benchmark],
    old: Sequence[Benchmark],
    new: Sequence[Benchmark],
) -> Sampled:
    metrics = {benchmark.metric for benchmark in (*base, *head, *old, *new)}
    if len(metrics) > 1:
        kinds = " and ".join(sorted(f"{metric.kind} in {metric.unit}" for metric in metrics))
        raise InvalidFileError(
            f"{name}: expected the same metric in every file, found {kinds}; "
            "judge them in files of their own"
        )
    data = {
        "workload": name,
        "metric": metrics.pop(),
        "history": tuple(benchmark.launches for benchmark in base),
        "head": _launches(head),
        "pairs": _pair_launches(name, _launches(old), _launches(new)),
    }
    # Converted, because to construct a struct checks no bounds.
    return codec.convert(data, Sampled, name=name)


def _launches(benchmarks: Sequence[Benchmark]) -> tuple[Launch, ...]:
    return tuple(launch for benchmark in benchmarks for launch in benchmark.launches)


def _pair_launches(
    name: str, old: tuple[Launch, ...], new: tuple[Launch, ...]
) -> tuple[tuple[Launch, Launch], ...]:
    if len(old) != len(new):
        raise InvalidFileError(
            f"{name}: expected as many launches of the base as of the head in the files of the "
            f"pairs, found {len(old)} and {len(new)}"
        )
    return tuple(zip(old, new, strict=True))


def _workload_names(benchmarks: Sequence[str]) -> dict[str, str]:
    """Return the name of a workload for each name of a harness. Raises InvalidFileError."""
    workloads: dict[str, str] = {}
    taken: dict[str, str] = {}
    for benchmark in benchmarks:
        name = _FOREIGN.sub(".", benchmark).strip(".=+-")[-_MAX_NAME_CHARS:].lstrip(".=+-")
        if not name:
            raise InvalidFileError(f"expected a benchmark with a name, found {benchmark!r}")
        if name in taken:
            raise InvalidFileError(
                f"expected benchmarks whose names differ in letters and digits, "
                f"found {taken[name]!r} and {benchmark!r}, which are both read as {name!r}"
            )
        workloads[benchmark], taken[name] = name, benchmark
    return workloads
