"""The rows of the tables: every cell computed here, so that a template only loops.

Cells of our own are `Words`; `workload`, `note` and unknown metrics are foreign and stay plain
strings, for the renderer to escape.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ci_perf.model.comparison import Change, Interval, Row, Uncompared, Verdict
from ci_perf.model.summary import Numbers
from ci_perf.report import standings, units, words
from ci_perf.report.escape import Words
from ci_perf.report.standings import Standing
from ci_perf.report.words import Phrase

# What a reason code means, where the verdict alone does not say it. docs/judging.md has them all.
_SAID = {
    "failed_on_base": "failed on the base, not there at all now",
    "metric_missing": "in the baseline, not in this run",
    "metric_new": "no baseline yet",
    "missing": "has a baseline, was not measured",
    "new": "no baseline yet",
    "new_since_failed": "failed on the base",
    "not_worse": "surely not over its limit, perhaps better",
    "other_machine": "another machine",
    "other_parameters": "other parameters",
    "other_software": "other software, which suite.toml makes a hard fact",
    "other_step": "a step is not the same on both sides",
    "ranges_overlap": "an exact metric that differs between processes",
    "too_few_processes": "one process says nothing of the spread, measure at least 3",
}
_NO_GATE = "over its limit, which does not fail the job"


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One line of a table. ``rate`` is the throughput on both sides, ``remark`` our own note."""

    standing: Standing
    icon: Words
    workload: str
    metric: str
    base: Words
    head: Words
    rate: Words
    change: Words
    limit: Words
    processes: Words
    remark: Words
    note: str


def worst_first(rows: Iterable[Row]) -> list[Row]:
    """Order rows as people should read them: by standing, then by how far over the limit."""
    return sorted(rows, key=lambda row: (standings.ORDER[standings.of(row)], -closeness(row)))


def changed(rows: Iterable[Row]) -> list[TableRow]:
    """Everything that somebody should look at, worst first."""
    return [
        _table_row(row) for row in worst_first(rows) if standings.of(row) not in standings.QUIET
    ]


def quiet(rows: Iterable[Row]) -> list[TableRow]:
    """Everything else, closest to its limit first; what cannot fail the job comes last."""
    return [_table_row(row) for row in _quiet(rows)]


def quiet_summary(rows: Iterable[Row]) -> Phrase:
    """Count the folded rows, and name the one that a reader would ask about."""
    found = _quiet(rows)
    if not found:
        return ()
    counts, closest = words.tally(found), found[0]
    if not isinstance(closest, Change) or closest.ratio is None or not closest.gate:
        return (Words(counts),)
    moved = f" {units.percent(closest.ratio - 1)}, limit {units.limit(closest.limit)})"
    title = words.metric_title(closest.metric)
    near = Words(f"{counts} (closest to its limit: ")
    return (near, closest.workload, Words(" "), title, Words(moved))


def failed(rows: Iterable[Row]) -> list[Uncompared]:
    """Pick the workloads that have no numbers but a reason."""
    return [row for row in rows if isinstance(row, Uncompared) and row.verdict is Verdict.FAILED]


def closeness(row: Row) -> float:
    """How much of its limit a change uses up: 1 is at the limit. Nothing to compare is 0."""
    if isinstance(row, Uncompared):
        return 0.0
    if row.ratio is None:
        return math.inf if row.head != row.base else 0.0
    moved = abs(row.ratio - 1)
    if moved == 0:
        return 0.0
    return moved / row.limit if row.limit > 0 else math.inf


def _quiet(rows: Iterable[Row]) -> list[Row]:
    found = [row for row in rows if standings.of(row) in standings.QUIET]
    return sorted(found, key=lambda row: (not _gates(row), -closeness(row)))


def _gates(row: Row) -> bool:
    return isinstance(row, Change) and row.gate


def _table_row(row: Row) -> TableRow:
    return _of_change(row) if isinstance(row, Change) else _of_uncompared(row)


def _of_change(row: Change) -> TableRow:
    found, unit = standings.of(row), words.unit(row.metric)
    return TableRow(
        standing=found,
        icon=standings.ICON[found],
        workload=row.workload,
        metric=words.metric_title(row.metric),
        base=units.value(row.base, unit),
        head=units.value(row.head, unit),
        rate=_rate(row),
        change=_change(row),
        limit=_limit(row),
        processes=Words(f"{row.base_processes} v {row.head_processes}"),
        remark=_remark(row),
        note="",
    )


def _of_uncompared(row: Uncompared) -> TableRow:
    found = standings.of(row)
    return TableRow(
        standing=found,
        icon=standings.ICON[found],
        workload=row.workload,
        metric=words.metric_title(row.metric) if row.metric else Words("whole workload"),
        base=_alone(row.base, row.metric),
        head=_alone(row.head, row.metric),
        rate=Words(""),
        change=units.NOTHING,
        limit=units.NOTHING,
        processes=units.NOTHING,
        remark=_remark(row),
        note=row.note,
    )


def _alone(numbers: Numbers, metric: str) -> Words:
    """Show the number of a side without a partner; the step time stands for a whole workload."""
    name = metric or words.STEP_TIME
    return units.value(numbers[name], words.unit(name)) if name in numbers else units.NOTHING


def _rate(row: Change) -> Words:
    """Show the throughput that a step time means; "steps/s" would only repeat it."""
    if row.metric != words.STEP_TIME or row.item_unit == "step":
        return Words("")
    base = units.throughput(row.items_per_step, row.base, row.item_unit)
    head = units.throughput(row.items_per_step, row.head, row.item_unit)
    return Words(f"{base.split(' ')[0]} → {head}") if base and head else Words("")


def _change(row: Change) -> Words:
    if row.ratio is None:
        return units.difference(row.base, row.head, words.unit(row.metric))
    low, high = _bounds(row.interval)
    text = units.change(row.ratio, low, high)
    if row.interval is None and row.head != row.base:
        more = units.difference(row.base, row.head, words.unit(row.metric))
        return Words(f"{text} ({more})")
    return text


def _bounds(interval: Interval | None) -> tuple[float | None, float | None]:
    return (interval.low, interval.high) if interval else (None, None)


def _limit(row: Change) -> Words:
    """Show a limit as a share; one that is larger than the baseline itself as a quantity."""
    unit = words.unit(row.metric)
    size = units.limit(row.limit) if row.limit <= 1 else units.value(row.limit * row.base, unit)
    return Words(size + ("" if row.gate else ", no gate"))


def _remark(row: Row) -> Words:
    """Say what the verdict alone does not."""
    found = standings.of(row)
    if found is Standing.UNCHANGED:
        return Words("")
    if found is Standing.WARNING:
        return Words(_NO_GATE)
    said = _SAID.get(row.code)
    if said is None and isinstance(row, Change) and row.code == "spread" and row.interval:
        seen = units.limit(row.interval.smallest_detectable)
        said = f"could have proven {seen} or more"
    return Words(f"{found.value}: {said}" if said else found.value)
