"""What the history of a machine suspects."""

import pytest

from ci_perf.features.watch.suspects import find_better, is_accepted
from ci_perf.model.baseline import MAX_SESSIONS
from tests.branches import a_committed, a_recorded

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


FIRST = a_committed(a_recorded("r1"))
MOVED = {"step_time_s": 1}


@pytest.mark.parametrize(
    ("before", "after", "accepted"),
    [
        (FIRST, a_committed(a_recorded("r1"), a_recorded("r2")), False),
        (FIRST, a_committed(a_recorded("r1"), a_recorded("r2", epochs=MOVED)), True),
        (FIRST, a_committed(a_recorded("r2")), True),
        (FIRST, a_committed(*(a_recorded(f"n{at}") for at in range(MAX_SESSIONS))), False),
        (None, FIRST, False),
        (None, a_committed(a_recorded("r1"), a_recorded("r2", epochs=MOVED)), True),
    ],
    ids=["appended", "another epoch", "anew", "nights", "a file that came later", "accepted later"],
)
def test_only_what_somebody_accepts_is_accepted(before, after, accepted):
    assert is_accepted(before, after, "step_time_s") is accepted
