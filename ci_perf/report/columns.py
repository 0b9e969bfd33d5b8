"""Which columns of a table a terminal has room for, and how wide each is: nothing is ever cut."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

# A name that is folded more often than this is read no more.
_NAME_WIDTH = 24
_WORDS_WIDTH = 24
# One blank on either side of a cell.
_PADDING = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column. A name or words may be folded, a number never; what says least goes first.

    ``from_width`` is 0 for what must be there.
    """

    title: str
    is_number: bool = False
    is_name: bool = False
    from_width: int = 0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table: a cell for each column."""

    cells: Sequence[Text]
    style: str = ""


def grid(columns: Sequence[Column], lines: Sequence[Line], width: int) -> Table | None:
    """Lay out a table of at most `width`; `None` where what must be there has no room.

    Every width is given to rich: left alone, it may make a table wider than the terminal, and cut.
    """
    shown = _shown(columns, lines, width)
    if shown is None:
        return None
    table = Table(box=None, padding=(0, 1), header_style="dim")
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


def _shown(columns: Sequence[Column], lines: Sequence[Line], width: int) -> list[int] | None:
    """Choose columns by their places; those that need the widest terminal go first."""
    shown = [at for at, one in enumerate(columns) if width >= one.from_width]
    while _total(_least(columns[at], _cells(lines, at)) for at in shown) > width:
        going = max(shown, key=lambda at: columns[at].from_width)
        if not columns[going].from_width:
            return None
        shown.remove(going)
    return shown


def _widths(
    shown: Sequence[int], columns: Sequence[Column], lines: Sequence[Line], width: int
) -> list[int]:
    """Give each column what it needs, and take what there is not from the last that can spare."""
    found = [_most(columns[at], _cells(lines, at)) for at in shown]
    for place in reversed(range(len(shown))):
        least = _least(columns[shown[place]], _cells(lines, shown[place]))
        excess = max(0, _total(found) - width)
        found[place] -= min(excess, found[place] - least)
    return found


def _total(widths: Iterable[int]) -> int:
    found = list(widths)
    return sum(found) + _PADDING * len(found)


def _cells(lines: Sequence[Line], at: int) -> list[Text]:
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
