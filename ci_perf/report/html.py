"""A run or a comparison as a fragment of HTML for notebooks, escaped by jinja2's autoescape."""

from collections.abc import Iterable

from ci_perf.features.explain.report import HEADING, describe_rows
from ci_perf.model.comparison import Comparison
from ci_perf.model.run import Run
from ci_perf.report import (
    advice,
    cells,
    gate_words,
    headline,
    notices,
    page,
    provenance,
    side_by_side,
    table_rows,
)
from ci_perf.report.cells import TableLine
from ci_perf.report.escape import Words
from ci_perf.report.tables import Page, Phrase, Table


def run(measured: Run) -> str:
    """Show the latency, throughput, memory and FLOPs of each workload."""
    return _render(side_by_side.page([(f"run {measured.id}", measured)]))


def comparison(judged: Comparison) -> str:
    """Show what the Markdown report shows, but for what only a pull request needs."""
    parts: list[Phrase | Table] = [headline.of(judged), headline.counts(judged)]
    parts += advice.next_steps(judged)
    parts += [
        (Words(gate_words.TITLE), Words(": "), *line)
        for line in gate_words.lines(judged.gate_changes)
    ]
    parts += [*notices.of(judged), *notices.validity(judged)]
    parts.append(_table(table_rows.changed(judged.rows)))
    for explained in describe_rows(judged.rows):
        parts += [
            (*explained.title, *explained.rest),
            Table(HEADING, explained.lines),
        ]
        parts.append(explained.note)
    if quiet := list(table_rows.quiet(judged.rows)):
        parts += [table_rows.quiet_summary(judged.rows), _table(quiet)]
    parts += [provenance.interleaving(judged), *provenance.interleaving_notes(judged)]
    parts.append(provenance.footer(judged))
    return _render([part for part in parts if not isinstance(part, Table) or part.rows])


def _table(lines: Iterable[TableLine]) -> Table:
    return Table(cells.HEADING, [list(map(_joined, cells.of(line))) for line in lines])


def _joined(cell: cells.Cell) -> Phrase:
    """Put the parts of a cell below each other."""
    return [text for part in cell for text in (Words("\n"), *part)][1:]


def _render(shown: Page) -> str:
    return page.environment().get_template("fragment.html.jinja").render(page=shown)
