"""A comparison for the person at a terminal: the same sentences and rows, in colour if wanted."""

import re
from collections.abc import Iterable
from io import StringIO

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ci_perf.features.explain.report import HEADING, describe_rows
from ci_perf.model.comparison import Comparison, Severity, Uncompared
from ci_perf.report import (
    advice,
    cells,
    escape,
    first_numbers,
    gate_words,
    headline,
    notices,
    phrases,
    profiles,
    provenance,
    rules,
    table_rows,
    tables,
    units,
)
from ci_perf.report.cells import TableRow
from ci_perf.report.escape import Command, Markdown, Sentence, Words
from ci_perf.report.phrases import Phrase
from ci_perf.report.tables import Column, Table, TerminalLine

_STYLE = {
    Severity.FAILED: "bold red",
    Severity.NUMERICS_CHANGED: "bold red",
    Severity.REGRESSED: "bold red",
    Severity.LIKELY_SLOWER: "bold yellow",
    Severity.WARNING: "yellow",
    Severity.INCONCLUSIVE: "yellow",
    Severity.NEW: "cyan",
    Severity.IMPROVED: "green",
}
# More rows than this scroll the verdict away; the other formats have them all.
_SHOWN = 200
_SHOWN_OF_PROFILES = 10
# Folding a long word may put "::" first on a line, where a CI would take it for a command.
_WORKFLOW_COMMAND = re.compile(r"^((?:\s|\x1b\[[0-9;]*m)*)::")


_COLUMNS = (
    Column(""),
    Column("workload, metric", is_name=True),
    Column("base → head", is_number=True),
    Column("change [interval]", is_number=True),
    Column("limit", is_number=True),
    Column("evidence"),
)
_CHANGE = 3
# Columns from which on drawings leave room for the evidence.
_WIDE = 120
# Where a number may go on in a second line: before its interval.
_SECOND_LINE = re.compile(r" (?=[\[(])")


def render(comparison: Comparison, *, width: int, color: bool, is_ascii: bool = False) -> str:
    """Show the verdict, what to do, and what changed. Foreign text cannot steer the terminal.

    `is_ascii`: intervals are drawn of ASCII alone.
    """
    return _printed(_parts(comparison, width, is_ascii=is_ascii), width=width, color=color)


def _printed(parts: Iterable[RenderableType], *, width: int, color: bool) -> str:
    stream = StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        legacy_windows=False,
        # What the environment says of colours and widths has been decided by the caller.
        _environ={},
    )
    console.print(Group(*parts))
    lines = (
        _WORKFLOW_COMMAND.sub(r"\1: :", line.rstrip()) for line in stream.getvalue().split("\n")
    )
    return "\n".join(lines).rstrip("\n") + "\n"


def first_line(comparison: Comparison) -> str:
    """Say the verdict in one plain line, for a log; the whole report is in a file."""
    return _text(headline.of(comparison)).plain


def _parts(comparison: Comparison, width: int, *, is_ascii: bool) -> Iterable[RenderableType]:
    yield _text(headline.of(comparison), style="bold")
    yield Padding(_text(headline.counts(comparison)), (0, 0, 1, 0))
    yield from _gate(comparison)
    for step in advice.next_steps(comparison):
        yield Padding(_text(step), (0, 0, 0, 2))
    for warning in (*notices.of(comparison), *notices.validity(comparison)):
        yield _text(warning, style="yellow")
    yield from _numbers(comparison, width, is_ascii=is_ascii)
    yield from _explained(comparison, width)
    for failure in table_rows.failed(comparison.rows)[:_SHOWN]:
        yield Padding(_failure(failure), (0, 0, 1, 0))
    if quiet := table_rows.quiet_summary(comparison.rows):
        yield _text(quiet)
    if profiles.summary(comparison.profiles):
        page = profiles.page(comparison.profiles, shown=_SHOWN_OF_PROFILES)
        yield Padding(Group(*tables.renderables(page, width=width)), (1, 0))
    yield _text(provenance.environment_summary(comparison), style="dim")
    for line in (provenance.interleaving(comparison), *provenance.interleaving_notes(comparison)):
        if line:
            yield _text(line, style="dim")
    yield _text(provenance.footer(comparison), style="dim")


def _numbers(comparison: Comparison, width: int, *, is_ascii: bool) -> Iterable[RenderableType]:
    """Show what changed, then what was measured for the first time."""
    changed = table_rows.changed(row for row in comparison.rows if not first_numbers.is_first(row))
    if changed:
        yield Padding(_table(changed[:_SHOWN], width, is_ascii=is_ascii), (1, 0))
    if len(changed) > _SHOWN:
        yield Text(f"… and {len(changed) - _SHOWN:,} more rows: {phrases.ALL_ROWS} shows all.")
    if first := first_numbers.from_comparison(comparison, shown=_SHOWN):
        yield from tables.renderables([first], width=width)


def _gate(comparison: Comparison) -> Iterable[RenderableType]:
    if lines := gate_words.lines(comparison.gate_changes):
        yield Text(gate_words.TITLE, style="bold yellow")
        yield Padding(Group(*map(_text, lines)), (0, 0, 1, 2))


def _text(parts: Phrase, style: str = "") -> Text:
    """Make text of a phrase: a `Text` obeys neither markup nor escape codes."""
    return Text.assemble(*(_part(part) for part in parts), style=style)


def _part(part: str) -> str | tuple[str, str]:
    if isinstance(part, Command):
        return (part, "bold cyan")
    if isinstance(part, Sentence):
        return escape.clean(part, limit=escape.MAX_SENTENCE_CHARS)
    return part if isinstance(part, Markdown) else escape.clean(part)


def _table(rows: list[cells.TableLine], width: int, *, is_ascii: bool) -> RenderableType:
    """Lay out the lines; on a narrow terminal numbers take two lines, or rows become sentences."""
    lines, brief = (
        [
            TerminalLine(list(map(_below, cells.of(line, is_brief=is_brief))), _style(line))
            for line in rows
        ]
        for is_brief in (False, True)
    )
    if any(row.first.rule for row in rows) and width >= _WIDE:
        show = rules.ascii_only if is_ascii else str
        drawn = [
            _with_rule(line, show(row.first.rule)) for line, row in zip(lines, rows, strict=True)
        ]
        if table := tables.grid(_COLUMNS, drawn, width):
            return Group(table, Padding(Text(show(rules.LEGEND), style="dim"), (0, 1)))
    for shown in (lines, list(map(_in_two_lines, lines)), list(map(_in_two_lines, brief))):
        table = tables.grid(_COLUMNS, shown, width)
        if table is not None:
            return table
    return Group(*(_sentence(row) for line in rows for row in line.rows))


def _with_rule(line: TerminalLine, drawing: str) -> TerminalLine:
    """Draw the interval of a row below its change."""
    if not drawing:
        return line
    cells_of_line = list(line.cells)
    cells_of_line[_CHANGE] = Text("\n").join([line.cells[_CHANGE], Text(drawing)])
    return TerminalLine(cells_of_line, line.style)


def _below(cell: cells.Cell) -> Text:
    """Put the parts of a cell below each other."""
    return Text("\n").join(map(_text, cell))


def _style(line: cells.TableLine) -> str:
    return _STYLE.get(line.first.severity, "")


def _in_two_lines(line: TerminalLine) -> TerminalLine:
    shown = [
        Text(_SECOND_LINE.sub("\n", cell.plain)) if column.is_number else cell
        for column, cell in zip(_COLUMNS, line.cells, strict=True)
    ]
    return TerminalLine(shown, line.style)


def _sentence(row: TableRow) -> Padding:
    """Say in a sentence what a table has no room for."""
    space = Words(" " if row.metric else "")
    said: Phrase = (row.icon, Words(" "), row.workload, space, row.metric, Words(": "))
    values = units.both(row.base, row.head)
    if row.change != units.NOTHING:
        limit = f"limit {row.limit}"
        values = Words(f"{values}, {row.change}, {limit}")
    parts = (
        Words("" if values == units.NOTHING else values),
        row.evidence,
        row.remark,
        Sentence(row.note),
    )
    for index, part in enumerate(filter(None, parts)):
        said += (Words("; "), part) if index else (part,)
    return Padding(_text(said, style=_STYLE.get(row.severity, "")), (0, 0, 0, 1))


def _explained(comparison: Comparison, width: int) -> Iterable[RenderableType]:
    """Show what the head does differently in the rows that moved: a title, a table, a note."""
    for explained in describe_rows(comparison.rows):
        yield Text.assemble(_text(explained.title, style="bold"), _text(explained.rest))
        if explained.lines:
            lines = [tuple(map(phrases.plain, cells)) for cells in explained.lines]
            evidence, where, what, _, _ = HEADING
            heading = (evidence, where, what, "per step", "share")
            table = Table(heading, lines, left=(where, what))
            yield from tables.renderables([table], width=width)
        if explained.note:
            yield _text(explained.note)


def _failure(row: Uncompared) -> Group:
    peaks = phrases.exhausted(row)
    said = (row.workload, Words(" failed: "), row.note, *((Words(". "), *peaks) if peaks else ()))
    title = _text(said, style="bold red")
    return Group(title, Padding(Text(escape.tail(row.output)), (0, 0, 0, 2)))
