import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_perf.features.history import change_points


def levels(*centres, spread=1e-3, each=6, seed=1):
    noise = random.Random(seed)
    return [noise.gauss(centre, spread) for centre in centres for _ in range(each)]


@pytest.mark.parametrize(
    ("series", "places"),
    [
        (levels(0.0), []),
        (levels(0.0, 0.02), [6]),
        (levels(0.0, 0.02, -0.01), [6, 12]),
        ([0.0] * 12, []),
        ([0.0] * 6 + [0.1] * 6, [6]),
        ([0.0] * 8 + [0.0005] * 8, []),  # rounding
    ],
)
def test_a_change_of_level_is_found_where_it_is(series, places):
    assert change_points.places(series) == places


def test_fewer_than_six_sessions_have_none():
    assert change_points.places([0.0, 0.0, 0.0, 1.0, 1.0]) == []
    assert change_points.places([]) == []


def test_a_change_of_level_does_not_hide_itself_as_noise():
    still, moved = levels(0.0, 0.0), levels(0.0, 1.0)

    assert change_points.noise(moved) == pytest.approx(change_points.noise(still), rel=0.5)


@given(st.lists(st.floats(-1, 1), max_size=20))
def test_places_are_in_order_and_each_level_has_two_sessions(series):
    found = change_points.places(series)

    bounds = [0, *found, len(series)]
    assert not found or all(b - a >= 2 for a, b in itertools.pairwise(bounds))
    assert change_points.places([-value for value in series]) == found
