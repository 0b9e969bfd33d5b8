"""A page for a terminal, where nothing is cut. Apart, because only a terminal needs rich."""

import re
from collections.abc import Iterator, Sequence
from io import StringIO
from typing import Literal

import rich.table
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ci_perf.report import phrases
from ci_perf.report.escape import Command, Phrase
from ci_perf.report.tables import (
    Bullets,
    Fold,
    Listing,
    Page,
    Paragraph,
    Table,
    as_phrase,
    clean_lines,
)

# A narrower name is folded too often to be read.
_NAME_WIDTH = 24
_WORDS_WIDTH = 24
# One blank on either side of a cell.
_PADDING = 2
# Cells that a sentence leaves out.
_EMPTY = ("", "\N{EN DASH}")
# Where a number may go on in a second line: before its interval.
_SECOND_LINE = re.compile(r" (?=[\[(])")
# Folding a long word may put "::" first on a line, where a CI would take it for a command.
_WORKFLOW_COMMAND = re.compile(r"^((?:\s|\x1b\[[0-9;]*m)*)::", re.MULTILINE)


def render(page: Page, *, width: int, color: bool) -> str:
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
    first, *others = page
    if not isinstance(first, Paragraph | Bullets | Table | Listing | Fold):
        first = Paragraph(first, "headline")
    console.print(Group(*_lay_out([first, *others], width)))
    lines = "\n".join(line.rstrip() for line in stream.getvalue().split("\n"))
    lines = re.sub(r"\n{3,}", "\n\n", _WORKFLOW_COMMAND.sub(r"\1: :", lines))
    return lines.strip("\n") + "\n"


def _lay_out(page: Page, width: int) -> Iterator[RenderableType]:
    for block in page:
        match block:
            case Paragraph():
                styles = {"headline": "bold", "title": "bold", "small": "dim"}
                text = _make_text(block.words, styles[block.style])
                yield Padding(text, (1, 0, 0, 0)) if block.style == "title" else text
            case Bullets():
                bullets = rich.table.Table.grid(padding=(0, 1))
                for line in block.lines:
                    bullets.add_row("-", _make_text(line))
                yield Padding(bullets, (0, 0, 1, 0))
            case Table():
                yield Padding(_lay_out_table(block, width), (1, 0))
            case Listing():
                yield Padding(Text(clean_lines(block)), (0, 0, 1, 0))
            case Fold():
                yield _make_text(block.summary)
                if block.is_open:
                    yield from _lay_out(block.blocks, width)
            case _:
                yield _make_text(block)


def _make_text(phrase: Phrase, style: str = "") -> Text:
    """Make text of a phrase: a `Text` obeys neither markup nor escape codes."""
    parts = (
        (
            phrases.plain((part,)).replace("\N{NO-BREAK SPACE}", " "),
            "bold cyan" if isinstance(part, Command) else "",
        )
        for part in phrase
    )
    return Text.assemble(*parts, style=style)


def _lay_out_table(table: Table, width: int) -> RenderableType:
    """Lay out a table; with less room numbers take two lines, then every row is a sentence.

    Every width is given to rich: left alone, it may make a table wider than the terminal, and cut.
    """
    rows = [[_make_text(as_phrase(cell)) for cell in row] for row in table.rows]
    styles = table.styles or [""] * len(rows)
    narrow = [
        [
            cell if table.is_left(place) else Text(_SECOND_LINE.sub("\n", cell.plain))
            for place, cell in enumerate(row)
        ]
        for row in rows
    ]
    for shown, can_shrink in ((rows, False), (narrow, True)):
        if (widths := _find_widths(table, shown, width, can_shrink=can_shrink)) is None:
            continue
        grid = rich.table.Table(box=None, padding=(0, 1), header_style="dim")
        for place, (title, space) in enumerate(zip(table.heading, widths, strict=True)):
            justify: Literal["left", "right"] = "left" if table.is_left(place) else "right"
            # A `Text`, for in a plain title "[interval]" would be markup.
            grid.add_column(Text(title), justify=justify, overflow="fold", width=space)
        for row, style in zip(shown, styles, strict=True):
            grid.add_row(*row, style=style)
        return grid
    return Group(
        *(_make_sentence(table, row, style) for row, style in zip(rows, styles, strict=True))
    )


def _make_sentence(table: Table, row: Sequence[Text], style: str) -> Text:
    cells = [", ".join(cell.plain.split("\n")) for cell in row]
    name, *others = zip(table.heading, cells, strict=True)
    said = ", ".join(f"{title} {cell}" for title, cell in others if cell not in _EMPTY)
    return Text(f"{name[1]}: {said}", style=style)


def _find_widths(
    table: Table, rows: Sequence[Sequence[Text]], width: int, *, can_shrink: bool
) -> list[int] | None:
    """Give each column what it needs; if that is too much, and it `can_shrink`, shrink the widest.

    `None` where there is no room for what must stand in one line.
    """
    room = width - _PADDING * len(table.heading)
    widths: list[int] = []
    least: list[int] = []
    for place, title in enumerate(table.heading):
        cells = [line for row in rows for line in row[place].plain.split("\n")]
        most = max(map(cell_len, cells), default=0)
        widths.append(max(cell_len(title), most))
        # A title folds between its words, a name or words between or within theirs.
        if not place:
            most = min(most, _NAME_WIDTH)
        elif table.is_left(place):
            words = (cell_len(word) for cell in cells for word in cell.split())
            most = min(_WORDS_WIDTH, max(words, default=0))
        least.append(max([most, *map(cell_len, title.split())]))
    if sum(least if can_shrink else widths) > room:
        return None
    while sum(widths) > room:
        place = max(
            (place for place in range(len(widths)) if widths[place] > least[place]),
            key=lambda place: (widths[place], place),
        )
        widths[place] -= 1
    return widths
