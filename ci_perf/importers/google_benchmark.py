"""Google Benchmark: `--benchmark_out=FILE --benchmark_out_format=json`.

One file is one launch: repetitions (`--benchmark_repetitions`) run one after the other in the same
process, so they are steps. Aggregates are used only where there is nothing else.
"""

from typing import Literal

import msgspec

from ci_perf.importers import reading
from ci_perf.importers.reading import Benchmark, Document, LeftOut, Reading

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


class _Entry(msgspec.Struct):
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


class _File(msgspec.Struct):
    context: dict[str, object]
    benchmarks: list[_Entry]


def read(document: Document) -> Reading:
    """Read one file; real time per iteration, a step for every repetition.

    Raises InvalidFileError.
    """
    file = reading.parse(document, _File, tool="Google Benchmark")
    by_name: dict[str, list[_Entry]] = {}
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


def _reason_to_leave_out(entries: list[_Entry]) -> str:
    """Say why a benchmark stopped itself: its times until then are those of something else."""
    for entry in entries:
        if entry.error_occurred or entry.skipped:
            return entry.error_message or entry.skip_message or "it stopped itself"
    return ""


def _seconds(entries: list[_Entry], *, iterations: bool) -> list[float]:
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
