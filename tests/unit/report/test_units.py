import math
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.model.metrics import Unit
from ci_perf.report import units

SHOWN: dict[Callable[..., str], list[tuple[Any, ...]]] = {
    units.seconds: [
        (0, "0 s"),
        (0.0412, "41.2 ms"),
        (0.9999, "1.00 s"),
        (1234.5, "1234 s"),
        (3e-9, "3.00 ns"),
        (2e-12, "0.002 ns"),
    ],
    units.size: [
        (0, "0 B"),
        (1024, "1.00 KiB"),
        (2**30 - 1, "1.00 GiB"),
        (3.1 * 2**30, "3.10 GiB"),
    ],
    units.duration: [
        (0, "0 s"),
        (45.4, "45 s"),
        (59.7, "1 min"),
        (250, "4 min 10 s"),
        (3605, "1 h 5 s"),
        (7384, "2 h 3 min"),
    ],
    units.about: [(0.167, "17 %"), (0.0539, "5.4 %"), (0.0202, "2 %"), (1.56, "160 %")],
    units.round_up: [(0.1163, "12 %"), (0.12, "12 %"), (1.23, "130 %")],
    units.count: [(0, "0"), (2, "2"), (1.5, "1.5"), (1e4, "10,000")],
    units.percent: [
        (0.0419, "+4.2 %"),
        (-0.031, f"{units.MINUS}3.1 %"),
        (0, "0.0 %"),
        (0.0003, "+0.03 %"),
        (-0.00001, "0.0 %"),
        (1e30, "> +1,000,000 %"),
        (-1e30, f"< {units.MINUS}1,000,000 %"),
    ],
    units.limit: [(0.05, "5 %"), (0.0123, "1.23 %"), (1e9, "> 1,000,000 %"), (0, "exact")],
    units.points: [(0.05, "+5.0 points"), (-0.004, f"{units.MINUS}0.4 points"), (0, "0.0 points")],
    units.render_share: [(0, "0 %"), (0.002, "0.2 %"), (1, "100 %")],
    units.throughput: [
        (32, 0.0258, "image", "1.24k images/s"),
        (1, 0.5, "batch", "2.00 batches/s"),
        (3, 1, "query", "3.00 queries/s"),
        (3, 1, "day", "3.00 days/s"),
        (3, 1, "tokens", "3.00 tokens/s"),
        (1, 10, "epoch", "0.1 epochs/s"),
        (8, 0, "image", ""),
    ],
    units.change: [
        (1.061, 1.052, 1.07, "+6.1 % [+5.2, +7.0]"),
        (1.2, 0.9, 1e40, f"+20.0 % [{units.MINUS}10.0, > +1,000,000]"),
    ],
    units.render_count: [
        (0, "workload", "0 workloads"),
        (1, "workload", "1 workload"),
        (1, "launch", "launches", "1 launch"),
        (2, "launch", "launches", "2 launches"),
    ],
    units.difference: [
        (0, 2, Unit.COUNT, "+2"),
        (2, 0, Unit.COUNT, f"{units.MINUS}2"),
        (0, 600 * 2**20, Unit.BYTE, "+600 MiB"),
        (1, 1, None, "±0"),
    ],
    units.value: [
        (0.942, Unit.SHARE, "94.2 %"),
        (0.0, Unit.SHARE, "0 %"),
        (0.25, Unit.JOULE, "250 mJ"),
        (123_456_789_012, Unit.FLOP, "123 GFLOP"),
        (9.894e14, Unit.FLOP_PER_SECOND, "989 TFLOP/s"),
    ],
    units.plain: [
        (2.3025851, 2.31, "2.30259"),
        (2.3025851, 2.3025852, "2.3025851"),
        (-1.5, -1.5, f"{units.MINUS}1.5"),
    ],
    units.plural: [(unit, "items") for unit in ("@octocat", "a b", "x" * 21, "", "#1", "naïve")],
}


@pytest.mark.parametrize("show", SHOWN, ids=lambda show: show.__name__)
def test_a_number_is_shown_with_the_digits_and_the_unit_that_fit(show):
    assert [show(*given) for *given, _ in SHOWN[show]] == [shown for *_, shown in SHOWN[show]]


@given(st.floats(min_value=1e-9, max_value=1e4))
def test_shown_seconds_are_within_half_a_percent(number):
    text, unit = units.seconds(number).split()
    scale = {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]

    assert math.isclose(float(text) * scale, number, rel_tol=0.0051)


@pytest.mark.parametrize("unit", Unit)
def test_a_value_of_any_unit_can_be_shown(unit):
    assert units.value(1.5, unit)
    assert units.value(0.0, unit)


@given(st.floats(1e-50, 1e18), st.sampled_from([*Unit, None]))
def test_no_number_for_people_has_an_exponent(number, unit):
    shown = (
        units.value(number, unit),
        units.value(-number, unit),
        units.limit(number),
        units.about(number),
        units.change(1 + number, 1 / (1 + number), number),
        units.throughput(number, 1.0, "item"),
        units.throughput(1.0, number, "flop"),
    )

    assert not [text for text in shown if re.search(r"\de[+-]?\d|inf|nan", text)]
