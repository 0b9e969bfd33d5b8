"""A run or a comparison as a fragment of HTML for notebooks, escaped by jinja2's autoescape."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import jinja2

from ci_perf.judging import launch_numbers, metric_values
from ci_perf.model import metrics
from ci_perf.model.base import Scalar
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Failed, Measured, Run
from ci_perf.model.summary import Numbers
from ci_perf.report import (
    advice,
    cells,
    escape,
    explanations,
    headline,
    notices,
    phrases,
    provenance,
    table_rows,
    units,
)
from ci_perf.report.escape import Markdown, Words
from ci_perf.report.explanations import Explained

_MAX_REASON_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Rows under a summary that folds them."""

    summary: str
    is_open: bool
    lines: list[list[list[Markdown]]]


def run(measured_run: Run) -> str:
    """Show one line per workload, with one value per metric for all its processes."""
    values = {
        workload.workload: launch_numbers.of_workload(workload, measured_run)
        for workload in measured_run.measured
    }
    present = {name for every in values.values() for process in every for name in process}
    shown = [metric for metric in metrics.JUDGED if metric.name in present]
    return _template("run.html.jinja").render(
        run=measured_run,
        machine=provenance.machine(measured_run.environment.hard),
        commit=phrases.plain(provenance.commit(measured_run.source)),
        titles=[metric.title for metric in shown],
        rows=[
            _measured(workload, values[workload.workload], shown)
            for workload in measured_run.measured
        ],
        failed=[_failed(workload) for workload in measured_run.failed],
    )


def comparison(judged: Comparison) -> str:
    """Show what the Markdown report shows, but for what only a pull request needs."""
    warnings = (*notices.of(judged), *notices.validity(judged))
    changed, quiet = _lines(table_rows.changed(judged.rows)), _lines(table_rows.quiet(judged.rows))
    tables = [
        _Table(summary=f"{len(changed)} to look at", is_open=True, lines=changed),
        _Table(
            summary=phrases.plain(table_rows.quiet_summary(judged.rows)), is_open=False, lines=quiet
        ),
    ]
    return _template("comparison.html.jinja").render(
        headline=phrases.plain(headline.of(judged)),
        counts=phrases.plain(headline.counts(judged)),
        heading=cells.HEADING,
        warnings=[phrases.plain(phrase) for phrase in warnings],
        steps=[phrases.plain(phrase) for phrase in advice.next_steps(judged)],
        tables=[table for table in tables if table.lines],
        explained=list(map(_explained, explanations.of(judged.rows))),
        explained_heading=explanations.HEADING,
        interleaving=[
            phrases.plain(phrase)
            for phrase in (provenance.interleaving(judged), *provenance.interleaving_notes(judged))
            if phrase
        ],
        footer=phrases.plain(provenance.footer(judged)),
    )


def _explained(explained: Explained) -> dict[str, object]:
    return {
        "title": phrases.plain(explained.title),
        "rest": phrases.plain(explained.rest),
        "lines": [[phrases.plain(cell) for cell in line] for line in explained.lines],
        "note": phrases.plain(explained.note),
    }


def _lines(lines: Sequence[cells.TableLine]) -> list[list[list[Markdown]]]:
    """Make plain text of every part of every cell of every line."""
    return [[[phrases.plain(part) for part in cell] for cell in cells.of(line)] for line in lines]


@functools.cache
def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("ci_perf.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    return environment.get_template(name)


def _finalize(value: object) -> object:
    """Drop what cannot be seen; autoescape does the rest."""
    if isinstance(value, str) and not isinstance(value, Markdown):
        return escape.clean(value, limit=_MAX_REASON_CHARS)
    return value


def _measured(
    workload: Measured, processes: Sequence[Numbers], shown: list[metrics.Metric]
) -> dict[str, object]:
    return {
        "workload": workload.workload,
        "parameters": _parameters(workload.parameters),
        "values": [_value(processes, metric) for metric in shown],
        "processes": len(workload.processes),
    }


def _value(processes: Sequence[Numbers], metric: metrics.Metric) -> Words:
    values = [process[metric.name] for process in processes if metric.name in process]
    if not values:
        return units.NOTHING
    return units.value(metric_values.centre(metric.kind, [values]), metric.unit)


def _failed(workload: Failed) -> dict[str, str]:
    return {
        "workload": workload.workload,
        "parameters": _parameters(workload.parameters),
        "phase": workload.phase.value,
        "reason": workload.reason,
    }


def _parameters(parameters: dict[str, Scalar]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(parameters.items()))
