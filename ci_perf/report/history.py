"""The committed history as a table, for the owner of the machine; no verdict depends on it."""

import csv
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Literal, assert_never

import msgspec

from ci_perf.judging.trends import ChangePoint, MetricHistory
from ci_perf.model import metrics
from ci_perf.report import escape, units
from ci_perf.report.escape import Words

Form = Literal["terminal", "markdown", "json", "csv"]

_TITLES = (
    "workload",
    "metric",
    "sessions",
    "epoch",
    "age",
    "centre",
    "spread",
    "excludes",
    "trend",
)
_NUMBERS_FROM = 2  # columns that are aligned to the right
_DATE = len("2026-11-21")
_COMMIT = 7
_MARK = "for information, never a gate"
_Name = Callable[[str], str]  # foreign text made harmless
_NOTHING = "no baseline has a metric that gates; next: ci-perf accept run.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteHistory:
    """The history of one suite on one class of machine. ``days``: the age of a time stamp."""

    machine: str
    suite: str
    lines: Sequence[MetricHistory]
    days: Callable[[str], float | None]


def render(histories: Sequence[SuiteHistory], form: Form) -> str:
    """Render every line of every history."""
    match form:
        case "terminal" | "markdown":
            parts = [
                part for history in histories if history.lines for part in _shown(history, form)
            ]
            return "\n\n".join(parts or [_NOTHING]) + "\n"
        case "json":
            facts = [_facts(history, line) for history, line in _lines(histories)]
            return msgspec.json.format(msgspec.json.encode(facts), indent=1).decode() + "\n"
        case "csv":
            return _csv(histories)
        case _:
            assert_never(form)


def _shown(history: SuiteHistory, form: Literal["terminal", "markdown"]) -> Iterable[str]:
    """Yield a heading, the table, and the change points below it."""
    name = escape.code if form == "markdown" else escape.clean
    heading = f"{name(history.machine)}, suite {name(history.suite)}"
    rows = [_cells(history, line, name) for line in history.lines]
    changes = [
        _change(line, change, name) for line in history.lines for change in line.changes or ()
    ]
    yield f"### {heading}" if form == "markdown" else heading
    yield _markdown(rows) if form == "markdown" else _plain(rows)
    if changes:
        yield "\n".join([f"Change points ({_MARK}):", "", *(f"- {change}" for change in changes)])


def _cells(history: SuiteHistory, line: MetricHistory, name: _Name) -> tuple[str, ...]:
    metric = metrics.BY_NAME[line.metric]
    age = history.days(line.newest)
    return (
        name(line.workload),
        metric.title,
        str(line.sessions) + (f" (+{line.earlier})" if line.earlier else ""),
        str(line.epoch),
        units.NOTHING if age is None else _age(age),
        units.value(line.centre, metric.unit),
        units.NOTHING if line.spread is None else f"{100 * line.spread:.2f} %",
        excludes(line.excludes),
        _trend(line),
    )


def excludes(loss: float | None) -> Words:
    """Say which losses a check excludes where all of its pairs are taken."""
    return units.NOTHING if loss is None else Words(f"a loss above {units.rounded_up(loss)}")


def _age(days: float) -> str:
    return units.numbered(int(max(days, 0)), "day")


def _trend(line: MetricHistory) -> str:
    if line.trend is None:
        return units.NOTHING
    return units.percent(line.trend - 1) + (", drifted" if line.has_drifted else "")


def _change(line: MetricHistory, change: ChangePoint, name: _Name) -> str:
    known = ", accepted" if change.accepted else ""
    title = metrics.BY_NAME[line.metric].title
    where = f"{name(change.since[:_DATE])} ({name(change.commit[:_COMMIT])})"
    return f"{name(line.workload)} {title}: {units.percent(change.ratio - 1)} since {where}{known}"


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    rule = ["--"] * _NUMBERS_FROM + ["--:"] * (len(_TITLES) - _NUMBERS_FROM)
    lines = [" | ".join(cells) for cells in (_TITLES, *rows)]
    return "\n".join([f"| {lines[0]} |", f"|{'|'.join(rule)}|", *(f"| {x} |" for x in lines[1:])])


def _plain(rows: Sequence[Sequence[str]]) -> str:
    table = [_TITLES, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(_TITLES))]
    return "\n".join(
        "  ".join(
            f"{cell:>{width}}" if i >= _NUMBERS_FROM else f"{cell:<{width}}"
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    )


def _facts(history: SuiteHistory, line: MetricHistory) -> dict[str, object]:
    """Return what a program wants to know, in the metric's own unit."""
    facts: dict[str, object] = msgspec.to_builtins(line)
    unit = metrics.BY_NAME[line.metric].unit.value
    return {"machine": history.machine, "suite": history.suite, "unit": unit} | facts


def _csv(histories: Sequence[SuiteHistory]) -> str:
    """Write one line per metric, without a formula; its change points are a list of dates."""
    stream = StringIO()
    fields = ("machine", "suite", "unit", *MetricHistory.__dataclass_fields__)
    writer = csv.DictWriter(stream, fields, lineterminator="\n")
    writer.writeheader()
    for history, line in _lines(histories):
        dates = " ".join(change.since[:_DATE] for change in line.changes or ())
        facts = _facts(history, line) | {"changes": dates}
        writer.writerow(
            {
                name: escape.spreadsheet_cell(fact) if isinstance(fact, str) else fact
                for name, fact in facts.items()
            }
        )
    return stream.getvalue()


def _lines(histories: Sequence[SuiteHistory]) -> list[tuple[SuiteHistory, MetricHistory]]:
    return [(history, line) for history in histories for line in history.lines]
