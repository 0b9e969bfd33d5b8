import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.judging import variability


def launches(tick, *, middle=0.05, spread=0.002, count=16, seed=1):
    noise = random.Random(seed)
    return [round(noise.gauss(middle, spread) / tick) * tick for _ in range(count)]


def relative(values):
    known = list(values)
    return variability.relative_tick(known, known)


def share(values):
    """The tick in the unit of the values."""
    return math.expm1(relative(values)) * min(values)


@pytest.mark.parametrize("tick", [0.001, 1 / 1024, 0.0005, 0.0156 / 20])
def test_the_tick_of_a_clock_is_found(tick):
    assert share(launches(tick)) == pytest.approx(tick, rel=1e-5)


def test_of_two_different_values_only_a_power_of_ten_is_believed():
    assert share([0.05, 0.051, 0.05]) == pytest.approx(0.001)
    assert share([1.0, 1.05, 1.0]) == pytest.approx(0.01)


def test_five_different_values_show_any_tick():
    values = [0.03 * count for count in (10, 11, 12, 13, 14)]

    assert share(values) == pytest.approx(0.03)
    assert share(values[:4]) == pytest.approx(0.01)


def test_float_arithmetic_hides_no_tick():
    values = [0.1 * count for count in (10, 11, 12, 13, 17)]

    assert 1.2000000000000002 in values
    assert share(values) == pytest.approx(0.1)


@pytest.mark.parametrize("values", [[], [0.05], [0.05] * 8])
def test_where_all_values_are_the_same_nobody_knows(values):
    assert relative(values) == 0.0


def test_a_launch_that_hangs_hides_no_tick():
    assert relative([0.998, 0.999, 1.0, 1.002, 1.003, 100.0]) == pytest.approx(0.001, rel=0.01)


def test_a_tick_far_below_the_smallest_limit_is_none():
    assert relative(launches(1e-6)) == 0.0


@given(st.integers(0, 10_000))
def test_measured_times_have_none(seed):
    noise = random.Random(seed)

    assert relative(noise.gauss(0.05, 0.002) for _ in range(8)) == 0.0


def test_the_tick_is_compared_with_the_smallest_value():
    assert relative([0.05, 0.051]) == pytest.approx(math.log1p(0.02))
