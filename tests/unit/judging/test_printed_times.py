"""How many times a command prints: another number is other work, but not where it varies."""

import pytest

from ci_perf.judging import comparability
from ci_perf.model import metrics


def launches(*counts):
    return [{metrics.PRINTED_TIMES.name: count} for count in counts]


@pytest.mark.parametrize(
    ("base", "head", "found"),
    [
        ((10, 10, 10), (1, 1, 1), "10 → 1;"),
        ((10, 10, 10), (1, 2, 1), "10 → 1 to 2;"),
        ((10, 10, 10), (20,), "10 → 20;"),
        ((10, 10, 10), (10, 9, 11), ""),
        ((97, 101, 99), (33, 32, 33), ""),  # of a loop that the clock ends
        ((10,), (1, 1), ""),  # may be chance
        ((100, 100), (91, 91), ""),
        ((100, 100), (89, 89), "100 → 89;"),
        ((100, 100), (109, 109), ""),
        ((100, 100), (111, 111), "100 → 111;"),
        ((), (1, 1, 1), ""),  # older launches say nothing
        ((10, 10, 10), (), ""),
    ],
)
def test_a_number_on_which_the_base_agrees_and_that_the_head_never_has(base, head, found):
    said = comparability.describe_other_times(launches(*base), launches(*head))

    assert found in said
    assert bool(said) is bool(found)
