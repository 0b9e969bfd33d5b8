"""Numbers as marks on a plane: x in per cent of the width, y in pixels; a template draws them.

A picture may have any width, and its marks and words keep their size: nothing is scaled.
"""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

# Each is a symbol in page.html.jinja, told apart by its shape as well as by its colour.
Shape = Literal["base", "head", "history", "beyond-left", "beyond-right"]
# Each has a colour in page.css.
Kind = Literal[
    "axis",
    "calm",
    "limit",
    "gain",
    "interval",
    "base",
    "head",
    "history",
    "pair",
    "centre",
    "spread",
    "level",
    "accepted",
    "seen",
]
Anchor = Literal["start", "middle", "end"]

# A curve has coordinates of its own: so many stand for the whole width.
CURVE_WIDTH = 1000

# Of the height, above and below the outermost values.
_PADDING = 0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """One value."""

    x: float
    y: float
    shape: Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A straight line between two places."""

    x1: float
    y1: float
    x2: float
    y2: float
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A rectangle from one x to another; as high as the picture, unless a height is given."""

    x: float
    width: float
    kind: Kind
    y: float = 0.0
    height: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A line through many places, or the border of an area, as `curve` writes it."""

    path: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """Words that begin at x, unless their anchor says more."""

    x: float
    y: float
    text: str
    anchor: Anchor = "start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """All marks of one picture; ``label`` says the same in words, for who cannot see it."""

    height: int
    label: str
    bands: tuple[Band, ...] = ()
    curves: tuple[Curve, ...] = ()
    lines: tuple[Segment, ...] = ()
    marks: tuple[Symbol, ...] = ()
    captions: tuple[Caption, ...] = ()

    @property
    def paths(self) -> dict[str, str]:
        """All lines of a kind as one path, and all dots of committed sessions as another.

        In these there may be thousands: a path takes a third of the bytes of single elements.
        """
        drawn: dict[str, list[str]] = defaultdict(list)
        for line in self.lines:
            drawn[line.kind].append(f"M{line.x1:g} {line.y1:g}L{line.x2:g} {line.y2:g}")
        for mark in self.marks:
            if mark.shape == "history":
                drawn["history"].append(f"M{mark.x:g} {mark.y:g}h0")
        return {kind: "".join(parts) for kind, parts in drawn.items()}

    @property
    def symbols(self) -> list[Symbol]:
        """All other marks."""
        return [mark for mark in self.marks if mark.shape != "history"]


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps numbers from ``low`` to ``high`` to places from ``first`` to ``last``."""

    low: float
    high: float
    first: float
    last: float

    def place(self, number: float) -> float:
        """Return where a number lies; one beyond the ends lies at the end."""
        inside = min(max(number, self.low), self.high)
        share = (inside - self.low) / (self.high - self.low)
        return round(self.first + share * (self.last - self.first), 1)


def vertical(numbers: Iterable[float], *, top: float, bottom: float) -> Scale | None:
    """Return a scale that holds all numbers, larger ones higher; `None` without a finite one."""
    known = [number for number in numbers if math.isfinite(number)]
    if not known:
        return None
    low, high = min(known), max(known)
    # Equal numbers lie in the middle, and so do those that differ by a rounding.
    spare = max((high - low) * _PADDING, abs(high) * 1e-6, 1e-12)
    return Scale(low - spare, high + spare, bottom, top)


def curve(places: Iterable[tuple[float, float]]) -> str:
    """Join places, x in per cent of the width, by a line in whole coordinates, which are short."""
    whole = [(round(x * CURVE_WIDTH / 100), round(y)) for x, y in places]
    steps = (
        f"{right - left}{' ' if below >= above else ''}{below - above}"
        for (left, above), (right, below) in itertools.pairwise(whole)
    )
    return f"M{whole[0][0]} {whole[0][1]}" + (f"l{' '.join(steps)}" if whole[1:] else "h0")


def columns(groups: Sequence[int]) -> list[list[float]]:
    """Return the x of each member of each group: members at equal distances, groups further apart.

    The distance before the first, after the last and between groups is that of a member.
    """
    number = sum(groups) + sum(1 for group in groups if group) + 1
    places: list[list[float]] = []
    at = 1
    for group in groups:
        places.append([round(100 * (at + index + 0.5) / number, 1) for index in range(group)])
        if group:
            at += group + 1
    return [[min(x, 99.5) for x in places_of_group] for places_of_group in places]
