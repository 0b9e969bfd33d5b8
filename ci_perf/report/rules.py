"""The rule that decided a row, as a line of text: its interval beside its limit and half of it."""

from ci_perf.model.comparison import Change
from ci_perf.report.escape import Words

# Columns on either side of zero.
_HALF = 15
WIDTH = 2 * _HALF + 1
# Each row has its own scale, so that its rule is never too small to be seen.
_LIMITS_TO_THE_END = 2.5

LEGEND = Words(
    "◆ change, ━ its interval, │ zero, ┊ half the limit, ( ) limit, ▶ beyond the scale, which each "
    "row has of its own; right is worse. Whole bar within the limit: unchanged."
)
# What a float adds to a change is on no side.
_ROUNDING = 1e-9
_TO_ASCII = str.maketrans("◆━┿┊│▶◀·", "*=+:|><.")


def text(row: Change) -> Words:
    """Draw a row in `WIDTH` columns, worse to the right; nothing where it has no interval."""
    if row.interval is None or row.ratio is None:
        return Words("")
    end, half = _LIMITS_TO_THE_END * row.limit, row.limit / 2
    ticks = {-row.limit: "(", row.limit: ")", -half: "┊", half: "┊"}
    places = {size: _place(size / end) for size in ticks}
    columns = ["·"] * WIDTH
    for size, mark in ticks.items():
        columns[places[size]] = mark
    columns[_HALF] = "│"
    low, middle, high = (
        _on_its_side(ratio - 1, end, places)
        for ratio in (row.interval.low, row.ratio, row.interval.high)
    )
    for column in range(low, high + 1):
        columns[column] = "━" if columns[column] == "·" else "┿"
    columns[middle] = "◆"
    if row.ratio - 1 > end:
        columns[-1] = "▶"
    elif row.ratio - 1 < -end:
        columns[0] = "◀"
    return Words("".join(columns))


def ascii_only(drawn: str) -> str:
    """Return a drawing, or the legend, for a terminal that shows nothing else."""
    return drawn.translate(_TO_ASCII)


def _place(share: float) -> int:
    """Return the column of a share of the scale; what is beyond lies at its end."""
    return _HALF + round(_HALF * min(max(share, -1.0), 1.0))


def _on_its_side(size: float, end: float, places: dict[float, int]) -> int:
    """Place a change on the side of each tick on which it lies, however close."""
    column = _place(size / end)
    for tick, place in places.items():
        if size > tick + _ROUNDING:
            column = max(column, place + 1)
        elif size < tick - _ROUNDING:
            column = min(column, place - 1)
    return min(max(column, 0), WIDTH - 1)
