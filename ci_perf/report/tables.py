"""A page of sentences and tables, for a terminal and as Markdown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ci_perf.report import columns, escape
from ci_perf.report.columns import Column, Line
from ci_perf.report.escape import Markdown

# Cells and parts of sentences: our own words, or foreign text, which is shown and never obeyed.
Phrase = Sequence[str]


@dataclass(frozen=True, slots=True)
class Table:
    """A heading, and rows of as many cells; the first column is a name, `left` others are words."""

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Sequence[str] = ()


Page = Sequence[Phrase | Table]


def markdown(page: Page) -> str:
    """Render for GitHub; the first sentence stands out."""
    parts = [
        _markdown_table(part) if isinstance(part, Table) else _markdown_phrase(part)
        for part in page
    ]
    return "\n\n".join([f"**{parts[0]}**", *parts[1:]]) + "\n"


def terminal(page: Page, *, width: int, color: bool) -> str:
    """Render for a terminal of `width` columns; the first sentence stands out."""
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
    console.print(Group(*renderables(page, width=width)))
    return "\n".join(line.rstrip() for line in stream.getvalue().split("\n")).strip("\n") + "\n"


def renderables(page: Page, *, width: int) -> Iterator[RenderableType]:
    """Yield what rich prints of a page, on a terminal of `width` columns."""
    for index, part in enumerate(page):
        if isinstance(part, Table):
            yield Padding(_terminal_table(part, width), (1, 0))
        else:
            yield Text("".join(map(_plain, part)), style="" if index else "bold")


def _markdown_phrase(phrase: Phrase) -> str:
    return "".join(part if isinstance(part, Markdown) else escape.code(part) for part in phrase)


def _markdown_table(table: Table) -> str:
    rules = [":--" if _is_left(table, i) else "--:" for i in range(len(table.heading))]
    lines = [table.heading, rules, *([_markdown_phrase([cell]) for cell in r] for r in table.rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _terminal_table(table: Table, width: int) -> RenderableType:
    """Lay out a table; where there is no room for one, every row is a sentence."""
    shown = [
        Column(title, is_number=not _is_left(table, index), is_name=index == 0)
        for index, title in enumerate(table.heading)
    ]
    lines = [Line([Text(_plain(cell)) for cell in row]) for row in table.rows]
    return columns.grid(shown, lines, width) or Group(*(_sentence(table, row) for row in lines))


def _sentence(table: Table, row: Line) -> Text:
    name, *others = (cell.plain for cell in row.cells)
    said = (f"{title} {cell}" for title, cell in zip(table.heading[1:], others, strict=True))
    return Text(f"{name}: {', '.join(said)}")


def _is_left(table: Table, index: int) -> bool:
    return index == 0 or table.heading[index] in table.left


def _plain(text: str) -> str:
    return str(text) if isinstance(text, Markdown) else escape.clean(text)
