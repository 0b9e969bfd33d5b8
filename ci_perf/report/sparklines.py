"""The last sessions of each row's base as a line of text, for places that show no picture."""

from collections.abc import Iterable, Sequence

from ci_perf.model.comparison import Change, Row
from ci_perf.report import phrases, table_rows, units
from ci_perf.report.escape import Words
from ci_perf.report.phrases import Phrase
from ci_perf.report.tables import Page, Table

SUMMARY: Phrase = (Words("The last sessions of the base"),)
_INTRODUCTION = Words(
    "Committed sessions since the last accepted change, oldest first, 20 at most."
)
_HEIGHT = Words(
    "A line is as high as its sessions differ, or as the limit of its row where that is more."
)
_HEADING = ("workload, metric", "sessions", "lowest to highest")
_LEVELS = "▁▂▃▄▅▆▇█"
# Fewer say nothing of how a metric goes.
_FEWEST = 5


def page(rows: Iterable[Row], *, shown: int) -> Page:
    """Show the lines of `shown` rows at most, worst first; empty where none has enough of them.

    What never moved, as exact counts do, is left out.
    """
    known = [
        row
        for row in table_rows.worst_first(rows)
        if isinstance(row, Change)
        and row.gate
        and len(row.history) >= _FEWEST
        and len(set(row.history)) > 1
    ]
    if not known:
        return ()
    left_out = f" {shown:,} of {len(known):,} rows are shown." if len(known) > shown else ""
    table = Table(_HEADING, list(map(_cells, known[:shown])), left=_HEADING[1:2])
    return ((_INTRODUCTION,), (_HEIGHT, Words(left_out)), table)


def line(numbers: Sequence[float], *, height: float) -> Words:
    """Draw numbers as bars of eight levels; `height` is the least difference of first and last."""
    low = min(numbers)
    step = max(max(numbers) - low, height) / (len(_LEVELS) - 1)
    return Words(
        "".join(_LEVELS[round((number - low) / step) if step else 0] for number in numbers)
    )


def _cells(row: Change) -> Sequence[Phrase]:
    unit = phrases.unit(row.metric)
    low, high = (units.value(end(row.history), unit) for end in (min, max))
    return (
        (row.workload, Words(" "), phrases.metric_title(row.metric)),
        (line(row.history, height=row.limit * max(row.history)),),
        (low if low == high else Words(f"{low} to {high}"),),
    )
