"""Results of other harnesses as samples: files in, one document out."""

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf import hooks
from ci_perf.errors import InvalidFileError
from ci_perf.features.interchange.importers import formats, harnesses
from ci_perf.features.interchange.importers.reading import Benchmark, Document, LeftOut, Reading
from ci_perf.model import codec
from ci_perf.model.samples import MAX_WORKLOADS, Launch, Sampled, Samples
from ci_perf.system import files

_TOOLS: dict[str, Callable[[Document], Reading]] = {
    "pyperf": harnesses.read_pyperf,
    "torch": harnesses.read_torch_benchmark,
}
_FOREIGN = re.compile(r"[^A-Za-z0-9_.=+-]+")
_MAX_NAME_CHARS = 200

_ByName = dict[str, list[Benchmark]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The samples, what had no number that can be judged, and what failed on the head, with why."""

    samples: Samples
    left_out: tuple[LeftOut, ...]
    failed: dict[str, str]


def find_tools() -> list[str]:
    """Return what `--from` may name."""
    return sorted({*_TOOLS, *hooks.find_formats()})


def read(tool: str, path: Path) -> Reading:
    """Read a file that a tool wrote. Raises InvalidFileError."""
    if tool in _TOOLS:
        return _TOOLS[tool](Document(name=str(path), text=files.read_text(path)))
    return formats.read(tool, path)


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
                f"found {taken[name]!r} and {benchmark!r}, both {name!r} here"
            )
        workloads[benchmark], taken[name] = name, benchmark
    return workloads
