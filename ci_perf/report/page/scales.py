"""The rule that decided a row, drawn: its interval beside the limit and the margin."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Row
from ci_perf.model.metrics import Better
from ci_perf.report import cells, units
from ci_perf.report.page.pictures import Picture, Scale, Segment, Symbol

_HEIGHT = 34
_MIDDLE = 17.0
_FIRST, _LAST = 2.0, 98.0
# The ends of the axis: so many times the widest limit that can fail the job, within bounds.
_LIMITS_TO_THE_END = 3.0
_LEAST, _MOST = 0.06, 1.5


@dataclass(frozen=True, slots=True)
class ChangeAxis:
    """One axis for all rows: changes as shares, from ``-end`` to ``end``; worse ones lie right."""

    end: float

    @property
    def words(self) -> str:
        """Name both ends."""
        return f"{units.percent(-self.end)} to {units.percent(self.end)}"

    def picture(self, row: Change) -> Picture:
        """Draw one row. Without an interval there is a mark alone, without a ratio nothing."""
        scale = Scale(-self.end, self.end, _FIRST, _LAST)
        bands = [
            scale.band(-self.end, -row.limit, "limit"),
            scale.band(row.limit, self.end, "limit"),
            scale.band(-row.margin, row.margin, "margin"),
        ]
        lines = [Segment(x1=scale.place(0), y1=2, x2=scale.place(0), y2=_HEIGHT - 2, kind="axis")]
        marks: list[Symbol] = []
        if row.interval is not None:
            low, high = scale.place(row.interval.low - 1), scale.place(row.interval.high - 1)
            lines += [
                Segment(x1=low, y1=_MIDDLE, x2=high, y2=_MIDDLE, kind="interval"),
                *(
                    Segment(x1=x, y1=_MIDDLE - 6, x2=x, y2=_MIDDLE + 6, kind="interval")
                    for x, change in ((low, row.interval.low - 1), (high, row.interval.high - 1))
                    if abs(change) <= self.end
                ),
            ]
        if row.ratio is not None:
            marks.append(self._mark(row.ratio - 1, scale))
        elif row.head != row.base:
            # From zero, or to zero: no share of anything.
            marks.append(self._mark(math.inf if _is_worse(row) else -math.inf, scale))
        return Picture(
            height=_HEIGHT,
            label=_label(row),
            bands=tuple(band for band in bands if band.width),
            lines=tuple(lines),
            marks=tuple(marks),
        )

    def _mark(self, change: float, scale: Scale) -> Symbol:
        if change > self.end:
            return Symbol(x=_LAST, y=_MIDDLE, shape="beyond-right")
        if change < -self.end:
            return Symbol(x=_FIRST, y=_MIDDLE, shape="beyond-left")
        return Symbol(x=scale.place(change), y=_MIDDLE, shape="head")


def _is_worse(row: Change) -> bool:
    known = metrics.BY_NAME.get(row.metric)
    is_more = row.head > row.base
    return is_more is not (known is not None and known.better is Better.HIGHER)


def of(rows: Iterable[Row]) -> ChangeAxis:
    """Return the axis for these rows: wide enough for the limits, and no wider than is readable."""
    changes = [row for row in rows if isinstance(row, Change)]
    gating = [row for row in changes if row.gate] or changes
    widest = max((max(row.limit, row.margin) for row in gating), default=0.0)
    return ChangeAxis(min(max(_LIMITS_TO_THE_END * widest, _LEAST), _MOST))


def _label(row: Change) -> str:
    limit = "every difference counts" if row.limit <= 0 else f"limit {units.limit(row.limit)}"
    margin = f", margin {units.limit(row.margin)}" if row.margin != row.limit else ""
    return f"change {cells.change(row)}, {limit}{margin}"
