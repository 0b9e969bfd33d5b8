import math

import pytest

from ci_perf.judging import comparability


def at_clock(ratio, pairs=3, more_cycles=0.0):
    """Return times and cycles of pairs in which the head's cycles passed at another clock."""
    times = [(0.0, more_cycles - math.log(ratio))] * pairs
    return times, [(20.0, 20.0 + more_cycles)] * pairs


@pytest.mark.parametrize(("ratio", "differs"), [(1.009, False), (1.011, True), (0.985, True)])
def test_clocks_differ_from_one_percent_on(ratio, differs):
    assert comparability.clocks_differ(*at_clock(ratio)) is differs


def test_more_cycles_at_the_same_clock_are_another_program():
    assert not comparability.clocks_differ(*at_clock(1.0, more_cycles=0.5))
    assert comparability.clocks_differ(*at_clock(1.02, more_cycles=0.5))


def test_nothing_is_said_where_cycles_are_known_of_some_pairs_only():
    times, cycles = at_clock(1.5)

    assert not comparability.clocks_differ(times, cycles[:2])
    assert not comparability.clocks_differ([], [])
