"""Runs of one suite in one table, and what a million items cost on each machine: no verdict."""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import msgspec

from ci_perf.baselines import layout
from ci_perf.errors import UsageError
from ci_perf.judging import launch_numbers, metric_values
from ci_perf.model import metrics
from ci_perf.model.base import Name, Struct
from ci_perf.model.run import UNKNOWN_COMMIT, Measured, Run
from ci_perf.model.summary import Numbers
from ci_perf.report import provenance, units
from ci_perf.report.escape import Phrase, Sentence, Words
from ci_perf.report.tables import Page, Table

_HOUR_S = 3600
_SHOWN = (
    metrics.STEP_TIME,
    metrics.THROUGHPUT,
    metrics.PEAK_ALLOCATED,
    metrics.HOST_RSS_PEAK,
    metrics.FLOPS,
    metrics.MFU,
    metrics.ENERGY,
)


class Prices(Struct, frozen=True, kw_only=True):
    """The whole of prices.toml: what an hour of each class of machines costs."""

    currency: Annotated[str, msgspec.Meta(pattern=r"^[A-Z]{3}(?!\n)$")]
    per_hour: dict[Name, Annotated[float, msgspec.Meta(ge=1e-6, le=1e6)]]


@dataclass(frozen=True, slots=True)
class _Column:
    """A run, and of each workload that can be trusted one number per metric."""

    label: str
    run: Run
    numbers: dict[str, Numbers] = field(default_factory=dict)

    @property
    def machine(self) -> str:
        return layout.machine_key(self.run.environment.hard)

    def items_per_s(self, workload: str) -> float:
        return self.numbers[workload][metrics.THROUGHPUT.name]


def page(runs: Sequence[tuple[str, Run]], prices: Prices | None = None) -> Page:
    """Show runs, which labels name, as columns: latency, throughput, memory, and cost by `prices`.

    Raises UsageError: runs of different suites, or of different code on different machines.
    """
    columns = [_column(run, label) for label, run in runs]
    for each in columns[1:]:
        _check_alike(columns[0], each)
    measured = {each.workload: each for column in columns for each in column.run.measured}
    count = units.render_count(len(columns), "run")
    title = f"{count}, {units.render_count(len(measured), 'workload')} of "
    rows: list[list[str | Phrase]] = [
        ["", "commit", *(provenance.commit(each.run.source) for each in columns)]
    ]
    for workload in measured.values():
        rows += _rows(workload, columns, prices)
    shared = [name for name in measured if all(name in each.numbers for each in columns)]
    if shared and len(columns) > 1:
        rows += _suite_rows(shared, columns, prices)
    heading = ["workload", "metric", *_headings(columns)]
    table = Table(heading, rows, left=("metric",))
    return [(Words(title), columns[0].run.suite), table, *map(tuple, _notes(columns, shared))]


def _column(run: Run, label: str) -> _Column:
    column = _Column(label, run)
    for workload in run.measured:
        if run.validity.against(workload.workload) is None:
            launches = launch_numbers.list_workload_numbers(workload, run)
            column.numbers[workload.workload] = {
                metric.name: metric_values.centre(metric.kind, [values])
                for metric in _SHOWN
                if (values := [each[metric.name] for each in launches if metric.name in each])
            }
    return column


def _check_alike(first: _Column, other: _Column) -> None:
    if other.run.suite != first.run.suite:
        raise UsageError(
            f"{other.label}: expected a run of the suite {first.run.suite}, as {first.label} is, "
            f"found one of {other.run.suite}"
        )
    commits = {first.run.source.commit, other.run.source.commit} - {UNKNOWN_COMMIT}
    if len(commits) > 1 and other.machine != first.machine:
        raise UsageError(
            f"{other.label}: expected a run of the commit {first.run.source.commit[:12]}, as "
            f"{first.label} is, found one of {other.run.source.commit[:12]} on another machine: "
            "other code has another speed; measure the same commit on each machine"
        )


def _headings(columns: Sequence[_Column]) -> list[str]:
    """Name each column by its machine, and number those of the same one."""
    names = [each.machine for each in columns]
    return [
        name if names.count(name) == 1 else f"{name} ({names[: at + 1].count(name)})"
        for at, name in enumerate(names)
    ]


def _rows(
    workload: Measured, columns: Sequence[_Column], prices: Prices | None
) -> Iterator[list[str | Phrase]]:
    name = workload.workload
    for metric in _SHOWN:
        values = [each.numbers.get(name, {}).get(metric.name) for each in columns]
        if metric is metrics.THROUGHPUT:
            cells = [value and units.throughput(value, 1, workload.item_unit) for value in values]
        else:
            cells = [None if value is None else units.value(value, metric.unit) for value in values]
        if any(cells):
            yield [name, (Words(metric.title),), *((cell or units.NOTHING,) for cell in cells)]
    if prices is not None:
        title = f"{prices.currency} per million {units.plural(workload.item_unit)}"
        costs = [_cost(each, name, prices) if name in each.numbers else None for each in columns]
        yield [name, (Words(title),), *((_three_digits(cost),) for cost in costs)]


def _suite_rows(
    shared: Sequence[str], columns: Sequence[_Column], prices: Prices | None
) -> Iterator[list[str | Phrase]]:
    """Compare by the geometric mean over the workloads that all runs have measured."""
    figures = {"throughput": [_mean([c.items_per_s(name) for name in shared]) for c in columns]}
    if prices is not None:
        figures["cost"] = [_mean([_cost(c, name, prices) for name in shared]) for c in columns]
    for title, values in figures.items():
        cells = (
            Words(f"{units.significant(value / values[0])}\N{MULTIPLICATION SIGN}")
            for value in values
        )
        yield [(Words("all of them"),), (Words(f"{title}, relative"),), *((c,) for c in cells)]


def _mean(values: Sequence[float]) -> float:
    return math.exp(statistics.fmean(map(math.log, values)))


def _cost(column: _Column, workload: str, prices: Prices) -> float:
    """Return what a million items cost."""
    per_s = prices.per_hour[column.machine] / _HOUR_S
    return 1e6 * per_s / column.items_per_s(workload)


def _three_digits(number: float | None) -> Words:
    return units.NOTHING if number is None else Words(f"{number:,.3g}")


def _notes(columns: Sequence[_Column], shared: Sequence[str]) -> Iterator[Phrase]:
    """Say what makes the numbers of a run worth less, and why others are missing."""
    if not shared:
        yield (Words("No workload was measured in all runs: nothing compares them as a whole."),)
    for each in columns:
        for reason in each.run.validity.reasons:
            yield (each.label, Words(f": {reason.code}: "), Sentence(reason.detail))
        for failed in each.run.failed:
            yield (
                each.label,
                Words(": "),
                failed.workload,
                Words(" failed: "),
                Sentence(failed.reason),
            )
