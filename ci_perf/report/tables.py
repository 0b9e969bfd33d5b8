"""A page of sentences and tables, as Markdown and for a terminal, where nothing is ever cut."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO

import rich.table
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ci_perf.report import escape
from ci_perf.report.escape import MAX_SENTENCE_CHARS, Command, Markdown, Sentence

# A narrower name is folded too often to be read.
_NAME_WIDTH = 24
_WORDS_WIDTH = 24
# One blank on either side of a cell.
_PADDING = 2


# Cells and parts of sentences: our own words, or foreign text, which is shown and never obeyed.
Phrase = Sequence[str]


@dataclass(frozen=True, slots=True)
class Table:
    """A heading, and rows of as many cells; the first column is a name, `left` others are words.

    A cell is one text, or a phrase of several.
    """

    heading: Sequence[str]
    rows: Sequence[Sequence[str | Phrase]]
    left: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Listing:
    """Foreign lines that stand below each other as they are."""

    text: str


Page = Sequence[Phrase | Table | Listing]


@dataclass(frozen=True, slots=True)
class Column:
    """A column. A name or words may be folded, a number never.

    A terminal narrower than ``from_width`` does not show it; 0 is always shown.
    """

    title: str
    is_number: bool = False
    is_name: bool = False
    from_width: int = 0


@dataclass(frozen=True, slots=True)
class TerminalLine:
    """One line of a table: a cell for each column."""

    cells: Sequence[Text]
    style: str = ""


def markdown(page: Page) -> str:
    """Render for GitHub; the first sentence stands out."""
    parts = [_markdown_part(part) for part in page]
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
        elif isinstance(part, Listing):
            yield Padding(Text(_lines_of(part)), (1, 0))
        else:
            yield Text("".join(map(_plain, part)), style="" if index else "bold")


def _markdown_part(part: Phrase | Table | Listing) -> str:
    if isinstance(part, Table):
        return _markdown_table(part)
    if isinstance(part, Listing):
        return escape.fence(_lines_of(part), info="text")
    return _markdown_phrase(part)


def _lines_of(listing: Listing) -> str:
    return "\n".join(map(escape.visible, listing.text.splitlines()))


def _phrase(cell: str | Phrase) -> Phrase:
    return (cell,) if isinstance(cell, str) else cell


def _markdown_phrase(phrase: Phrase) -> str:
    return "".join(map(_markdown_text, phrase))


def _markdown_text(text: str) -> Markdown:
    if isinstance(text, Markdown):
        return text
    if isinstance(text, Command):
        return escape.command(text)
    return escape.sentence(text) if isinstance(text, Sentence) else escape.code(text)


def _markdown_table(table: Table) -> str:
    rules = [":--" if _is_left(table, i) else "--:" for i in range(len(table.heading))]
    lines = [
        table.heading,
        rules,
        *([_markdown_phrase(_phrase(cell)) for cell in r] for r in table.rows),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _terminal_table(table: Table, width: int) -> RenderableType:
    """Lay out a table; where there is no room for one, every row is a sentence."""
    shown = [
        Column(title, is_number=not _is_left(table, index), is_name=index == 0)
        for index, title in enumerate(table.heading)
    ]
    lines = [
        TerminalLine([Text("".join(map(_plain, _phrase(cell)))) for cell in row])
        for row in table.rows
    ]
    return grid(shown, lines, width) or Group(*(_sentence(table, row) for row in lines))


def _sentence(table: Table, row: TerminalLine) -> Text:
    name, *others = (cell.plain for cell in row.cells)
    said = (f"{title} {cell}" for title, cell in zip(table.heading[1:], others, strict=True))
    return Text(f"{name}: {', '.join(said)}")


def _is_left(table: Table, index: int) -> bool:
    return index == 0 or table.heading[index] in table.left


def _plain(text: str) -> str:
    if isinstance(text, Markdown):
        return str(text)
    if isinstance(text, Command):
        return escape.clean(text, limit=len(text) + 1)
    return escape.clean(
        text, limit=MAX_SENTENCE_CHARS if isinstance(text, Sentence) else escape.MAX_CHARS
    )


# --- how wide the columns are on a terminal


def grid(
    columns: Sequence[Column], lines: Sequence[TerminalLine], width: int
) -> rich.table.Table | None:
    """Lay out a table of at most `width`; `None` if the columns that are always shown need more.

    Every width is given to rich: left alone, it may make a table wider than the terminal, and cut.
    """
    shown = _columns_with_room(columns, lines, width)
    if shown is None:
        return None
    table = rich.table.Table(box=None, padding=(0, 1), header_style="dim")
    for at, space in zip(shown, _widths(shown, columns, lines, width), strict=True):
        table.add_column(
            # A `Text`, for in a plain title "[interval]" would be markup.
            Text(columns[at].title),
            justify="right" if columns[at].is_number else "left",
            overflow="fold",
            width=space,
        )
    for line in lines:
        table.add_row(*(line.cells[at] for at in shown), style=line.style)
    return table


def _columns_with_room(
    columns: Sequence[Column], lines: Sequence[TerminalLine], width: int
) -> list[int] | None:
    """Choose columns by their places; those that need the widest terminal go first."""
    shown = [at for at, column in enumerate(columns) if width >= column.from_width]
    while _total(_least(columns[at], _cells(lines, at)) for at in shown) > width:
        going = max(shown, key=lambda at: columns[at].from_width)
        if not columns[going].from_width:
            return None
        shown.remove(going)
    return shown


def _widths(
    shown: Sequence[int], columns: Sequence[Column], lines: Sequence[TerminalLine], width: int
) -> list[int]:
    """Give each column what it needs; if that is too much, shrink the widest that can."""
    widths = [_most(columns[at], _cells(lines, at)) for at in shown]
    least = [_least(columns[at], _cells(lines, at)) for at in shown]
    while _total(widths) > width:
        place = max(
            (place for place in range(len(shown)) if widths[place] > least[place]),
            key=lambda place: (widths[place], place),
        )
        widths[place] -= 1
    return widths


def _total(widths: Iterable[int]) -> int:
    every = list(widths)
    return sum(every) + _PADDING * len(every)


def _cells(lines: Sequence[TerminalLine], at: int) -> list[Text]:
    return [line.cells[at] for line in lines]


def _most(column: Column, cells: Sequence[Text]) -> int:
    return max(map(cell_len, [column.title, *_lines(cells)]))


def _least(column: Column, cells: Sequence[Text]) -> int:
    """Return the width below which a column cannot be read; a title folds between its words."""
    title = max(map(cell_len, column.title.split()), default=0)
    if column.is_number:
        return max(title, *map(cell_len, _lines(cells)), 0)
    most = max(map(cell_len, _lines(cells)), default=0)
    if column.is_name:
        return max(title, min(most, _NAME_WIDTH))
    words = [word for line in _lines(cells) for word in line.split()]
    return max(title, min(_WORDS_WIDTH, max(map(cell_len, words), default=0)))


def _lines(cells: Sequence[Text]) -> list[str]:
    return [line for cell in cells for line in cell.plain.split("\n")]
