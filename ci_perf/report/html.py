"""A run or a comparison as a small piece of HTML, for notebooks. Escaped by jinja2's autoescape."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import jinja2

from ci_perf.judge import evidence, numbers
from ci_perf.model import metrics
from ci_perf.model.base import Scalar
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Failed, Measured, Run
from ci_perf.model.summary import Numbers
from ci_perf.report import (
    advice,
    cells,
    escape,
    headline,
    notices,
    provenance,
    table_rows,
    units,
)
from ci_perf.report.escape import Command, Markdown, Sentence, Words
from ci_perf.report.phrases import Phrase

_MAX_REASON_CHARS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Rows under a line that can be folded."""

    summary: str
    is_open: bool
    lines: list[list[list[Markdown]]]


def run(found: Run) -> str:
    """Show one line per workload, with one value per metric for all its processes."""
    values = {one.workload: numbers.of_workload(one, found) for one in found.measured}
    present = {name for one in values.values() for process in one for name in process}
    shown = [metric for metric in metrics.JUDGED if metric.name in present]
    return _template("run.html.jinja").render(
        run=found,
        machine=provenance.machine(found.environment.hard),
        commit=_plain(provenance.commit(found.source)),
        titles=[metric.title for metric in shown],
        rows=[_measured(one, values[one.workload], shown) for one in found.measured],
        failed=[_failed(one) for one in found.failed],
    )


def comparison(found: Comparison) -> str:
    """Show what the Markdown report shows, without what only a pull request needs."""
    warnings = (*notices.of(found), *notices.validity(found))
    changed, quiet = _lines(table_rows.changed(found.rows)), _lines(table_rows.quiet(found.rows))
    tables = [
        _Table(summary=f"{len(changed)} to look at", is_open=True, lines=changed),
        _Table(summary=_plain(table_rows.quiet_summary(found.rows)), is_open=False, lines=quiet),
    ]
    return _template("comparison.html.jinja").render(
        headline=_plain(headline.of(found)),
        counts=_plain(headline.counts(found)),
        heading=cells.HEADING,
        warnings=[_plain(one) for one in warnings],
        steps=[_plain(one) for one in advice.next_steps(found)],
        tables=[table for table in tables if table.lines],
        turns=[
            _plain(one)
            for one in (provenance.interleaving(found), *provenance.interleaving_notes(found))
            if one
        ],
        footer=_plain(provenance.footer(found)),
    )


def _lines(found: Sequence[cells.TableLine]) -> list[list[list[Markdown]]]:
    """Make plain text of every part of every cell of every line."""
    return [[[_plain(part) for part in cell] for cell in cells.of(line)] for line in found]


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


def _plain(parts: Phrase) -> Markdown:
    """Join a phrase as plain text, its foreign parts cleaned."""
    return Markdown("".join(map(_part, parts)))


def _part(part: str) -> str:
    if isinstance(part, Sentence):
        return escape.clean(part, limit=escape.MAX_SENTENCE_CHARS)
    return part if isinstance(part, Markdown | Command) else escape.clean(part)


def _measured(
    one: Measured, processes: Sequence[Numbers], shown: list[metrics.Metric]
) -> dict[str, object]:
    return {
        "workload": one.workload,
        "parameters": _parameters(one.parameters),
        "values": [_value(processes, metric) for metric in shown],
        "processes": len(one.processes),
    }


def _value(processes: Sequence[Numbers], metric: metrics.Metric) -> Words:
    found = [process[metric.name] for process in processes if metric.name in process]
    if not found:
        return units.NOTHING
    return units.value(evidence.centre(metric.kind, [found]), metric.unit)


def _failed(one: Failed) -> dict[str, str]:
    return {
        "workload": one.workload,
        "parameters": _parameters(one.parameters),
        "phase": one.phase.value,
        "reason": one.reason,
    }


def _parameters(parameters: dict[str, Scalar]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(parameters.items()))
