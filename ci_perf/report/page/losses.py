"""The losses of the first steps, base and head in one picture."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ci_perf.model.comparison import Numerics, Row
from ci_perf.report.page import pictures
from ci_perf.report.page.pictures import Caption, Picture, Scale, Segment, Side, Symbol

_HEIGHT = 114
_TOP, _BOTTOM = 18.0, 92.0
_MOST_STEPS = 60
# A single loss is no curve.
_FEWEST_STEPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Curves:
    """The losses of one workload."""

    workload: str
    picture: Picture


def curves(rows: Iterable[Row]) -> list[Curves]:
    """Draw the losses of each workload that has some, in the order of the rows."""
    drawn = ((row.workload, _picture(row)) for row in rows if isinstance(row, Numerics))
    return [Curves(workload=name, picture=picture) for name, picture in drawn if picture]


def _picture(row: Numerics) -> Picture | None:
    most = min(row.losses, _MOST_STEPS)
    base, head = row.base[:most], row.head[:most]
    every = [*base, *head]
    steps = max(len(base), len(head))
    down = pictures.vertical(every, top=_TOP, bottom=_BOTTOM)
    if down is None or steps < _FEWEST_STEPS:
        return None
    across = Scale(0, steps - 1, 6.0, 96.0)
    lines: list[Segment] = []
    marks: list[Symbol] = []
    _draw(base, "base", across, down, lines, marks)
    _draw(head, "head", across, down, lines, marks)
    low, high = f"{min(every):.6g}", f"{max(every):.6g}"
    return Picture(
        height=_HEIGHT,
        label=f"{steps} losses of base and head, from {low} to {high}",
        lines=tuple(lines),
        marks=tuple(marks),
        captions=(Caption(x=0.5, y=11, text=high), Caption(x=0.5, y=_HEIGHT - 2, text=low)),
    )


def _draw(
    values: Sequence[float],
    side: Side,
    across: Scale,
    down: Scale,
    lines: list[Segment],
    marks: list[Symbol],
) -> None:
    places = [(across.place(at), down.place(value)) for at, value in enumerate(values)]
    lines += [
        Segment(x1=x1, y1=y1, x2=x2, y2=y2, kind=side)
        for (x1, y1), (x2, y2) in itertools.pairwise(places)
    ]
    marks += [Symbol(x=x, y=y, shape=side) for x, y in places]
