"""Numbers as marks on a plane: x in per cent of the width, y in pixels; a template draws them.

A picture may have any width, and its marks and words keep their size: nothing is scaled.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

Side = Literal["base", "head"]
# Each is a symbol in page.html.jinja, told apart by its shape as well as by its colour.
Shape = Literal["base", "head", "history", "beyond-left", "beyond-right"]
# Each has a colour in page.css.
Kind = Literal["axis", "margin", "limit", "interval", "base", "head", "history", "pair", "divide"]

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
    """A rectangle as high as the picture, from one x to another."""

    x: float
    width: float
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Caption:
    """Words at a place; they end there where they lie in the right half of the picture."""

    x: float
    y: float
    text: str

    @property
    def ends(self) -> bool:
        """Whether the words end at x, instead of beginning there."""
        return self.x > 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """All marks of one picture; ``label`` says the same in words, for who cannot see it."""

    height: int
    label: str
    bands: tuple[Band, ...] = ()
    lines: tuple[Segment, ...] = ()
    marks: tuple[Symbol, ...] = ()
    captions: tuple[Caption, ...] = ()


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
        return round(self.first + share * (self.last - self.first), 2)

    def band(self, low: float, high: float, kind: Kind) -> Band:
        """Return the part between two numbers."""
        x = self.place(low)
        return Band(x=x, width=round(max(self.place(high) - x, 0.0), 2), kind=kind)


def vertical(numbers: Iterable[float], *, top: float, bottom: float) -> Scale | None:
    """Return a scale that holds all numbers, larger ones higher; `None` without a finite one."""
    known = [number for number in numbers if math.isfinite(number)]
    if not known:
        return None
    low, high = min(known), max(known)
    # Equal numbers lie in the middle, and so do those that differ by a rounding.
    spare = max((high - low) * _PADDING, abs(high) * 1e-6, 1e-12)
    return Scale(low - spare, high + spare, bottom, top)


def columns(groups: Sequence[int], *, gap: float = 1.0) -> list[list[float]]:
    """Return the x of each member of each group: members at equal distances, groups further apart.

    The distance before the first, after the last and between groups is `gap` members.
    """
    number = sum(groups) + gap * (sum(1 for group in groups if group) + 1)
    places: list[list[float]] = []
    at = gap
    for group in groups:
        places.append([round(100 * (at + index + 0.5) / number, 2) for index in range(group)])
        if group:
            at += group + gap
    return [[min(x, 99.5) for x in places_of_group] for places_of_group in places]
