import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.judging import variability

FLOOR = 0.01
values = st.lists(st.floats(-30, 30), min_size=1, max_size=20)


def two_modes(*launches, floor=FLOOR):
    return variability.two_modes(launches, smallest_gap=floor)


def share_with_two_modes(launches, draw, times=400):
    return sum(two_modes(*(draw() for _ in range(launches))) is not None for _ in range(times)) / (
        times
    )


def test_launches_that_are_fast_or_slow_have_two_modes():
    modes = two_modes(0.001, 0.131, 0.0, 0.129, 0.002, 0.13)

    assert modes is not None
    assert (modes.low, modes.high) == pytest.approx((0.001, 0.13))
    assert (modes.low_launches, modes.high_launches) == (3, 3)


def test_identical_launches_within_each_mode_are_two_modes():
    assert two_modes(0.0, 0.0, 0.0, 0.05, 0.05, 0.05) is not None


def test_identical_launches_have_one():
    assert two_modes(*[0.3] * 10) is None


@pytest.mark.parametrize("gap", [0.005, FLOOR])
def test_a_gap_that_nobody_would_mind_is_none(gap):
    assert two_modes(0.0, 0.0, 0.0, gap, gap, gap) is None


def test_a_gap_that_the_spread_explains_is_none():
    assert two_modes(0.00, 0.02, 0.04, 0.10, 0.12, 0.14) is None


def test_one_launch_that_lies_apart_is_an_outlier():
    assert two_modes(0.0, 0.001, 0.002, 0.001, 0.0, 0.5) is None


def test_of_a_few_launches_nothing_is_said():
    assert two_modes(0.0, 0.0, 0.0, 0.5, 0.5) is None


@pytest.mark.parametrize(
    ("sizes", "is_excluded"), [((5, 5, 5), True), ((5, 5, 4), False), ((6,), True), ((), False)]
)
def test_two_modes_are_excluded_by_enough_launches_only(sizes, is_excluded):
    sessions = [[0.0] * size for size in sizes]

    assert variability.exclude_two_modes(sessions, smallest_gap=FLOOR) is is_excluded


def test_launches_spread_normally_seldom_look_like_two_modes():
    noise = random.Random(0)

    assert share_with_two_modes(6, lambda: noise.gauss(0, 0.05)) < 0.1
    assert share_with_two_modes(10, lambda: noise.gauss(0, 0.05)) < 0.03


def test_two_modes_far_apart_are_mostly_seen_in_ten_launches():
    noise = random.Random(0)

    assert share_with_two_modes(10, lambda: noise.gauss(0, 0.01) + noise.choice([0, 0.13])) > 0.9


def some_sessions(draw, sessions, launches):
    """Return sessions that lie far apart, as days do."""
    return [[day / 10 + draw() for _ in range(launches)] for day in range(sessions)]


def share_of_sessions_with_two_modes(draw, *, sessions=5, launches=5, times=400):
    return (
        sum(
            variability.have_two_modes(some_sessions(draw, sessions, launches), smallest_gap=FLOOR)
            for _ in range(times)
        )
        / times
    )


def test_short_sessions_show_two_modes_together():
    noise = random.Random(0)

    assert (
        share_of_sessions_with_two_modes(lambda: noise.gauss(0, 0.002) + noise.choice([0, 0.03]))
        > 0.9
    )


def test_short_sessions_that_are_spread_normally_seldom_look_like_it():
    noise = random.Random(0)

    assert share_of_sessions_with_two_modes(lambda: noise.gauss(0, 0.02)) < 0.05
    assert share_of_sessions_with_two_modes(lambda: noise.gauss(0, 0.02), sessions=3) < 0.1


def test_outliers_of_a_few_sessions_are_no_second_mode():
    steady = [0.0, 0.001, 0.002, 0.001, 0.0]

    assert not variability.have_two_modes([steady] * 3 + [[*steady, 0.5]] * 2, smallest_gap=FLOOR)


@pytest.mark.parametrize(("session", "are_seen"), [((0, 0, 1, 1), False), ((0, 0, 1, 1, 1), True)])
def test_two_modes_are_seen_in_fifteen_launches_and_no_fewer(session, are_seen):
    sessions = [[0.03 * mode for mode in session]] * 3

    assert variability.have_two_modes(sessions, smallest_gap=FLOOR) is are_seen


@given(values, st.randoms(use_true_random=False))
def test_the_order_of_launches_says_nothing(launches, order):
    shuffled = list(launches)
    order.shuffle(shuffled)

    assert two_modes(*launches) == two_modes(*shuffled)


@given(values)
def test_modes_are_finite_and_apart_by_more_than_what_nobody_minds(launches):
    modes = two_modes(*launches)

    if modes is not None:
        assert math.isfinite(modes.low)
        assert modes.high - modes.low > FLOOR
        assert modes.low_launches + modes.high_launches == len(launches)


@pytest.mark.parametrize("launches", [[], [math.nan] * 6, [5e9] * 6])
def test_what_cannot_be_a_logarithm_of_a_launch_is_refused(launches):
    with pytest.raises(ValueError, match="the launches of a session: expected"):
        variability.two_modes(launches, smallest_gap=FLOOR)
