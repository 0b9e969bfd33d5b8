"""What the history of a machine suspects."""

import pytest

from ci_perf.features.watch.suspects import find_better

LOW, HIGH = 0.0, 1.0


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ([LOW, LOW, LOW, LOW], []),
        ([LOW, LOW, LOW, LOW, HIGH], [3, 0]),
        ([LOW, LOW, HIGH, HIGH, HIGH], [1, 0]),
        ([HIGH, HIGH, LOW, LOW], []),
        ([LOW, HIGH, HIGH, LOW, LOW, LOW, LOW, LOW, HIGH], [7, 4, 0]),
        ([LOW, HIGH], [0]),
    ],
    ids=["calm", "tonight", "two nights ago", "faster", "again", "one session"],
)
def test_the_newest_better_session_comes_first_and_the_oldest_last(values, places):
    assert find_better(values, 0.5) == places


def test_one_lucky_session_is_not_the_last_good_one():
    assert find_better([LOW, LOW, HIGH, HIGH, 0.4, HIGH], 0.5)[0] == 1
