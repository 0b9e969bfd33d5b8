"""The rule that decided a row, drawn: its interval beside half the limit and the limit."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Row
from ci_perf.model.metrics import Better
from ci_perf.report import cells, units
from ci_perf.report.page.pictures import Band, Caption, Kind, Picture, Scale, Segment, Symbol

_HEIGHT = 34
_MIDDLE = 17.0
_FIRST, _LAST = 2.0, 98.0
# The ends of the axis: so many times the widest limit of a row that can fail the job, or a bit
# beyond the farthest end of an interval of such a row, within bounds.
_LIMITS_TO_THE_END = 3.0
_BEYOND_THE_FARTHEST = 1.2
_LEAST, _MOST = 0.06, 6.0
_FINEST = 0.01
_TICKS = (5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005)
_TICKS_HEIGHT = 20
# In per cent of the width: "+20 %" in letters of 12 px on a phone.
_TICK_WIDTH = 12.0


@dataclass(frozen=True, slots=True)
class ChangeAxis:
    """One axis for all rows: changes as shares, from ``-end`` to ``end``; worse ones lie right.

    Its scale is the inverse hyperbolic sine: nearly linear up to ``fine``, nearly logarithmic
    beyond. So a limit of 2 % and a change of 30 % can both be seen.
    """

    end: float
    fine: float

    def place(self, change: float) -> float:
        """Return where a change lies; one beyond the ends lies at the end."""
        inside = min(max(change, -self.end), self.end)
        share = math.asinh(inside / self.fine) / math.asinh(self.end / self.fine)
        return Scale(-1, 1, _FIRST, _LAST).place(share)

    def draw_ticks(self) -> Picture:
        """Draw the numbers of the axis, as many as there is room for."""
        changes = tuple(self._ticks())
        return Picture(
            height=_TICKS_HEIGHT,
            label=f"axis from {units.percent(-self.end)} to {units.percent(self.end)}",
            captions=tuple(
                Caption(x=self.place(change), y=14, text=_tick(change), anchor="middle")
                for change in (0.0, *changes, *(-change for change in changes))
            ),
        )

    def _ticks(self) -> Iterator[float]:
        room = 100 - _TICK_WIDTH / 2
        for change in _TICKS:
            x = self.place(change)
            if change <= self.end and self.place(0) + _TICK_WIDTH <= x <= room:
                room = x - _TICK_WIDTH
                yield change

    def draw(self, row: Change) -> Picture | None:
        """Draw one row; `None` where its interval does not lie on the axis as a whole.

        Without an interval there is a mark alone, without a ratio nothing.
        """
        if row.interval is not None and max(map(abs, _list_ends(row))) > self.end:
            return None
        # Of what is noisy, a change beyond half the limit must be proven.
        alarm = row.limit / 2 if row.interval is not None else row.limit
        bands = [
            self._band(-self.end, -alarm, "gain"),
            self._band(alarm, self.end, "limit"),
            self._band(-row.limit, row.limit, "calm"),
        ]
        lines = [Segment(x1=self.place(0), y1=2, x2=self.place(0), y2=_HEIGHT - 2, kind="axis")]
        marks: list[Symbol] = []
        if row.interval is not None:
            low, high = map(self.place, _list_ends(row))
            lines.append(Segment(x1=low, y1=_MIDDLE, x2=high, y2=_MIDDLE, kind="interval"))
        if row.ratio is not None:
            marks.append(self._mark(row.ratio - 1))
        elif row.head != row.base:
            # From zero, or to zero: no share of anything.
            known = metrics.find_metric(row.metric)
            is_less_better = known is None or known.better is not Better.HIGHER
            is_worse = (row.head > row.base) is is_less_better
            marks.append(self._mark(math.inf if is_worse else -math.inf))
        return Picture(
            height=_HEIGHT,
            label=f"change {cells.show_change(row)}, limit {units.limit(row.limit)}",
            bands=tuple(band for band in bands if band.width),
            lines=tuple(lines),
            marks=tuple(marks),
        )

    def _band(self, low: float, high: float, kind: Kind) -> Band:
        x = self.place(low)
        return Band(x=x, width=round(max(self.place(high) - x, 0.0), 2), kind=kind)

    def _mark(self, change: float) -> Symbol:
        if change > self.end:
            return Symbol(x=_LAST, y=_MIDDLE, shape="beyond-right")
        if change < -self.end:
            return Symbol(x=_FIRST, y=_MIDDLE, shape="beyond-left")
        return Symbol(x=self.place(change), y=_MIDDLE, shape="head")


def _list_ends(row: Change) -> list[float]:
    """List the ends of an interval as changes; of an exact row, its change."""
    if row.interval is not None:
        return [row.interval.low - 1, row.interval.high - 1]
    return [] if row.ratio is None else [row.ratio - 1]


def make_axis(rows: Iterable[Row]) -> ChangeAxis:
    """Return the axis for these rows: it holds their limits, and intervals that can be drawn."""
    every = [row for row in rows if isinstance(row, Change)]
    gating = [row for row in every if row.gate] or every
    widest = max((row.limit for row in gating), default=0.0)
    changes = (abs(end) for row in gating for end in _list_ends(row))
    farthest = max((change for change in changes if change <= _MOST), default=0.0)
    wanted = max(_LIMITS_TO_THE_END * widest, _BEYOND_THE_FARTHEST * farthest, _LEAST)
    return ChangeAxis(end=min(wanted, _MOST), fine=min(max(widest, _FINEST), _MOST))


def _tick(change: float) -> str:
    """Write "+2 %", or "0"."""
    if not change:
        return "0"
    return f"{'+' if change > 0 else units.MINUS}{100 * abs(change):g} %"
