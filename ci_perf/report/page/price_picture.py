"""Machines on a plane: what an hour costs, and how fast they are for it."""

import itertools
import math
from collections.abc import Iterator, Sequence

from ci_perf.model.hardware import Hardware, HardwareClass
from ci_perf.report.escape import clean
from ci_perf.report.page import environment
from ci_perf.report.page.pictures import (
    Caption,
    Curve,
    Picture,
    Scale,
    Segment,
    Symbol,
    curve,
)

_HEIGHT = 340
# Of the width in per cent, and of the height in pixels: where the axes and their words have room.
_LEFT, _RIGHT, _TOP, _BOTTOM = 9.0, 92.0, 24.0, 292.0
_SVG_WIDTH = 720
_MIDDLE = 50.0
_TICKS = 5
# Beyond the farthest value.
_SPARE = 1.12
# Of a caption, in pixels; and half of a symbol.
_LINE, _SYMBOL, _STEP, _MIDDLE_OF_LETTERS = 15.0, 9.0, 1.0, 4.0
# As many as half of a phone's width holds.
_NAME_CHARS = 22


def picture(hardware: Hardware) -> Picture | None:
    """Draw the classes that have a speed and a price; `None` where none has.

    The line through the origin is that of the most speed for the money: what lies below it buys
    less.
    """
    known = [each for each in hardware.classes if each.speed and each.price]
    if not known:
        return None
    prices = Scale(0.0, _SPARE * max(map(_price, known)), _LEFT, _RIGHT)
    speeds = Scale(0.0, _SPARE * max(map(_most, known)), _BOTTOM, _TOP)
    return Picture(
        height=_HEIGHT,
        label=_label(hardware, known),
        curves=(_best(known, prices, speeds),),
        lines=(*_axes(), *itertools.chain(*(_interval(each, prices, speeds) for each in known))),
        marks=tuple(
            Symbol(x=prices.place(_price(each)), y=speeds.place(_speed(each)), shape="head")
            for each in known
        ),
        captions=(
            *_ticks(prices, speeds),
            *_names(known, prices, speeds),
            Caption(x=0.0, y=12.0, text=f"speed, as a multiple of {_name(hardware.classes[0])}"),
            Caption(x=_RIGHT, y=_HEIGHT - 8.0, text=f"{hardware.currency} per hour", anchor="end"),
        ),
    )


def svg(drawn: Picture) -> str:
    """Return the picture as a file of its own."""
    template = environment().get_template("picture.svg.jinja")
    return template.render(picture=drawn, width=_SVG_WIDTH).strip() + "\n"


def _price(each: HardwareClass) -> float:
    assert each.price is not None
    return each.price.per_hour


def _speed(each: HardwareClass) -> float:
    assert each.speed is not None
    return each.speed.value


def _most(each: HardwareClass) -> float:
    """Return the end of the range, where it is not so far away that it would hide the others."""
    assert each.speed is not None
    high = each.speed.high
    return _speed(each) if high is None else min(high, 2 * _speed(each))


def _name(each: HardwareClass) -> str:
    return clean(each.name, limit=_NAME_CHARS)


def _label(hardware: Hardware, known: Sequence[HardwareClass]) -> str:
    said = "; ".join(
        f"{_name(each)}: {_price(each):g} {hardware.currency} per hour, speed {_speed(each):.3g}"
        for each in known
    )
    return f"Price against speed. {said}. On the line lies the most speed for the money."


def _axes() -> Iterator[Segment]:
    yield Segment(x1=_LEFT, y1=_BOTTOM, x2=_RIGHT, y2=_BOTTOM, kind="axis")
    yield Segment(x1=_LEFT, y1=_TOP, x2=_LEFT, y2=_BOTTOM, kind="axis")


def _interval(each: HardwareClass, prices: Scale, speeds: Scale) -> Iterator[Segment]:
    assert each.speed is not None
    if each.speed.low is not None and each.speed.high is not None:
        x = prices.place(_price(each))
        y1, y2 = speeds.place(each.speed.low), speeds.place(each.speed.high)
        yield Segment(x1=x, y1=y1, x2=x, y2=y2, kind="interval")


def _best(known: Sequence[HardwareClass], prices: Scale, speeds: Scale) -> Curve:
    """Draw the line of equal value through the best class, up to where it leaves the picture."""
    best = max(_speed(each) / _price(each) for each in known)
    end = min(prices.high, speeds.high / best)
    ends = ((0.0, 0.0), (end, end * best))
    path = curve((prices.place(price), speeds.place(speed)) for price, speed in ends)
    return Curve(path=path, kind="axis")


def _ticks(prices: Scale, speeds: Scale) -> Iterator[Caption]:
    for number in _round_numbers(prices.high):
        x = prices.place(number)
        yield Caption(x=x, y=_BOTTOM + 18, text=f"{number:g}", anchor="middle")
    for number in _round_numbers(speeds.high):
        if number:
            y = speeds.place(number) + 4
            yield Caption(x=_LEFT - 1, y=y, text=f"{number:g}", anchor="end")


def _round_numbers(high: float) -> Iterator[float]:
    """Yield about five numbers from 0 on, each a multiple of 1, 2 or 5 times a power of ten."""
    rough = high / _TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    for index in range(int(high / step) + 1):
        yield round(index * step, 12)


def _names(known: Sequence[HardwareClass], prices: Scale, speeds: Scale) -> Iterator[Caption]:
    """Name each class beside its symbol, towards the middle, and never on another name.

    A name moves away from the line of most speed for the money: up on its left, down on its right.
    """
    taken: list[float] = []
    for each in sorted(known, key=lambda each: -_speed(each)):
        x, y = prices.place(_price(each)), speeds.place(_speed(each)) + _MIDDLE_OF_LETTERS
        is_right = x > _MIDDLE
        gap = _SYMBOL / _SVG_WIDTH * 100
        while any(abs(y - other) < _LINE for other in taken):
            y += -_STEP if is_right else _STEP
        taken.append(y)
        yield Caption(
            x=round(x - gap if is_right else x + gap, 1),
            y=round(y, 1),
            text=_name(each),
            anchor="end" if is_right else "start",
        )
