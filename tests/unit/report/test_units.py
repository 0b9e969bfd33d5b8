import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.model.metrics import Unit
from ci_perf.report import units


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0 s"),
        (0.0412, "41.2 ms"),
        (0.04, "40.0 ms"),
        (0.9999, "1.00 s"),
        (0.99951e-3, "1.00 ms"),
        (12.345, "12.3 s"),
        (1234.5, "1234 s"),
        (5.67e-6, "5.67 µs"),
        (3e-9, "3.00 ns"),
        (2e-12, "0.002 ns"),
    ],
)
def test_seconds_have_three_digits_and_the_unit_that_fits(number, shown):
    assert units.seconds(number) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (1000 * 2**20, "1000 MiB"),
        (2**30 - 1, "1.00 GiB"),
        (3.1 * 2**30, "3.10 GiB"),
    ],
)
def test_bytes_are_counted_in_powers_of_two(number, shown):
    assert units.size(number) == shown


@pytest.mark.parametrize(
    ("number", "shown"),
    [
        (0, "0 s"),
        (45.4, "45 s"),
        (59.7, "1 min"),
        (250, "4 min 10 s"),
        (1200, "20 min"),
        (3605, "1 h 5 s"),
        (7384, "2 h 3 min"),
    ],
)
def test_a_wait_is_told_in_two_parts(number, shown):
    assert units.duration(number) == shown


@pytest.mark.parametrize(
    ("share", "shown"), [(0.167, "17 %"), (0.0539, "5.4 %"), (0.0202, "2 %"), (1.56, "160 %")]
)
def test_an_estimate_has_two_digits(share, shown):
    assert units.about(share) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.1163, "12 %"), (0.12, "12 %"), (0.04, "4 %"), (0.0101, "1.1 %"), (1.23, "130 %")],
)
def test_what_must_suffice_is_rounded_up(share, shown):
    assert units.rounded_up(share) == shown


@given(st.floats(min_value=1e-9, max_value=1e4))
def test_shown_seconds_are_within_half_a_percent(number):
    text, unit = units.seconds(number).split()
    scale = {"s": 1, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]

    assert math.isclose(float(text) * scale, number, rel_tol=0.0051)


@pytest.mark.parametrize(("number", "shown"), [(0, "0"), (2, "2"), (1.5, "1.5"), (1e4, "10,000")])
def test_counts_are_whole_unless_a_median_is_not(number, shown):
    assert units.count(number) == shown


@pytest.mark.parametrize(
    ("items", "step_s", "unit", "shown"),
    [
        (32, 0.0258, "image", "1.24k images/s"),
        (1, 0.5, "batch", "2.00 batches/s"),
        (3, 1, "query", "3.00 queries/s"),
        (3, 1, "day", "3.00 days/s"),
        (3, 1, "tokens", "3.00 tokens/s"),
        (1, 10, "epoch", "0.1 epochs/s"),
        (8, 0, "image", ""),
    ],
)
def test_throughput_is_spoken_in_the_items_of_the_workload(items, step_s, unit, shown):
    assert units.throughput(items, step_s, unit) == shown


@pytest.mark.parametrize("unit", ["@octocat", "a b", "x" * 21, "", "#1", "naïve"])
def test_a_unit_that_is_no_simple_word_is_called_items(unit):
    assert units.plural(unit) == "items"


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.0419, "+4.2 %"),
        (-0.031, f"{units.MINUS}3.1 %"),
        (0, "0.0 %"),
        (0.0003, "+0.03 %"),
        (-0.00001, "0.0 %"),
        (1.234, "+123 %"),
        (99.5, "+9,950 %"),
        (1e4, "+1,000,000 %"),
        (1e30, "> +1,000,000 %"),
        (-1e30, f"< {units.MINUS}1,000,000 %"),
    ],
)
def test_a_change_has_a_sign_and_a_real_minus(share, shown):
    assert units.percent(share) == shown


def test_an_interval_stands_beside_its_change():
    assert units.change(1.061, 1.052, 1.07) == "+6.1 % [+5.2, +7.0]"
    assert units.change(1.2, 0.9, 1e40) == f"+20.0 % [{units.MINUS}10.0, > +1,000,000]"


def test_one_is_counted_in_the_singular():
    assert [units.numbered(n, "workload") for n in (0, 1, 2000)] == [
        *("0 workloads", "1 workload", "2,000 workloads")
    ]
    assert [units.numbered(n, "launch", "launches") for n in (1, 2)] == ["1 launch", "2 launches"]


@pytest.mark.parametrize(
    ("base", "head", "unit", "shown"),
    [
        (0, 2, Unit.COUNT, "+2"),
        (2, 0, Unit.COUNT, f"{units.MINUS}2"),
        (0, 600 * 2**20, Unit.BYTE, "+600 MiB"),
        (1, 1, None, "±0"),
    ],
)
def test_an_absolute_difference_has_a_sign(base, head, unit, shown):
    assert units.difference(base, head, unit) == shown


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.05, "5 %"), (0.0123, "1.23 %"), (20, "2,000 %"), (1e9, "> 1,000,000 %"), (0, "exact")],
)
def test_a_limit_is_a_plain_percentage(share, shown):
    assert units.limit(share) == shown


@pytest.mark.parametrize(
    ("number", "unit", "text"),
    [
        (0.942, Unit.SHARE, "94.2 %"),
        (0.0, Unit.SHARE, "0 %"),
        (1.0, Unit.SHARE, "100 %"),
        (0.25, Unit.JOULE, "250 mJ"),
        (512.5, Unit.WATT, "512 W"),
        (1980.0, Unit.MEGAHERTZ, "1980 MHz"),
        (1.98e6, Unit.CYCLE, "1.98 M cycles"),
        (17, Unit.CYCLE, "17.0 cycles"),
        (123_456_789_012, Unit.FLOP, "123 GFLOP"),
        (9.894e14, Unit.FLOP_PER_SECOND, "989 TFLOP/s"),
        (1240, Unit.ITEM_PER_SECOND, "1.24k items/s"),
    ],
)
def test_every_unit_has_its_scale(number, unit, text):
    assert units.value(number, unit) == text


@pytest.mark.parametrize("unit", Unit)
def test_a_value_of_any_unit_can_be_shown(unit):
    assert units.value(1.5, unit)
    assert units.value(0.0, unit)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.05, "+5.0 points"), (-0.004, "\N{MINUS SIGN}0.4 points"), (0, "0.0 points")],
)
def test_a_difference_of_shares_is_in_points(share, text):
    assert units.points(share) == text


def test_a_computed_number_is_shown_until_it_differs_from_the_other():
    assert units.plain(2.3025851, 2.31) == "2.30259"
    assert units.plain(2.3025851, 2.3025852) == "2.3025851"
    assert units.plain(-1.5, -1.5) == "\N{MINUS SIGN}1.5"


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.0, "0 %"), (0.002, "0.2 %"), (0.0955, "9.6 %"), (0.312, "31 %"), (1.0, "100 %")],
)
def test_a_share_of_some_hundred_cases_has_no_more_digits_than_it_is_worth(share, shown):
    assert units.counted(share) == shown
