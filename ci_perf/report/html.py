"""A run or a comparison as a fragment of HTML for notebooks, escaped by jinja2's autoescape."""

import base64
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jinja2
from markupsafe import Markup

from ci_perf.judging import launch_numbers, metric_values
from ci_perf.model import metrics
from ci_perf.model.base import Scalar
from ci_perf.model.comparison import Change, Comparison
from ci_perf.model.run import Failed, Measured, Run
from ci_perf.model.summary import Numbers
from ci_perf.report import (
    advice,
    cells,
    escape,
    explanations,
    gate_words,
    headline,
    notices,
    page,
    phrases,
    provenance,
    table_rows,
    units,
)
from ci_perf.report.escape import Markdown, Words
from ci_perf.report.explanations import Explained
from ci_perf.report.page import scales
from ci_perf.report.page.pictures import Picture

_MAX_REASON_CHARS = 500
_CHANGE = 3  # the cell of a line that holds its picture
_PICTURE_WIDTH = 300  # px
_Cells = list[list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Rows under a summary that folds them."""

    summary: str
    is_open: bool
    lines: list[_Cells]


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
    """Show what the Markdown report shows, but for what only a pull request needs; and intervals.

    Their pictures are those of a page.
    """
    gate = [
        (gate_words.TITLE, Words(": "), *line) for line in gate_words.lines(judged.gate_changes)
    ]
    warnings = (*gate, *notices.of(judged), *notices.validity(judged))
    axis = scales.of(judged.rows)
    pictures = {
        (row.workload, phrases.metric_title(row.metric)): _image(axis.picture(row))
        for row in judged.rows
        if isinstance(row, Change) and row.interval
    }
    changed, quiet = (
        _lines(lines, pictures)
        for lines in (table_rows.changed(judged.rows), table_rows.quiet(judged.rows))
    )
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
        axis=_image(axis.ticks()) if pictures else "",
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


def _lines(
    lines: Sequence[cells.TableLine], pictures: Mapping[tuple[str, str], Markup]
) -> list[_Cells]:
    """Make plain text of every part of every cell, with the picture of a row below its change."""
    shown: list[_Cells] = [
        [[*map(phrases.plain, cell)] for cell in cells.of(line)] for line in lines
    ]
    for line, texts in zip(lines, shown, strict=True):
        if picture := pictures.get((line.first.workload, line.first.metric)):
            texts[_CHANGE].append(picture)
    return shown


def _image(picture: Picture) -> Markup:
    """Make an image of a picture: of HTML, a notebook that is not trusted yet keeps no svg."""
    template = page.environment().get_template("picture.svg.jinja")
    svg = template.render(picture=picture, width=_PICTURE_WIDTH)
    return Markup('<img alt="{}" width="{}" src="data:image/svg+xml;base64,{}"/>').format(
        picture.label, _PICTURE_WIDTH, base64.b64encode(svg.encode()).decode()
    )


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
    if isinstance(value, str) and not isinstance(value, Markdown | Markup):
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
