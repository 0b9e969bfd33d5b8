import pytest

from ci_perf.progress.sentences import TimeEstimate
from tests.clocks import Clock


def left_s(ended, running=(), *, fails=False):
    """Return what is left of two workloads with three processes each, after these have ended."""
    clock = Clock()
    known = TimeEstimate(clock)
    known.expect({"a": 3, "b": 3})
    for name, seconds in ended:
        known.begin(name)
        clock.now += seconds
        known.end()
    for name, seconds in running:
        known.begin(name)
        clock.now += seconds
    if fails:
        known.give_up()
    return known.left_s()


@pytest.mark.parametrize(
    ("ended", "running", "left"),
    [
        ([], [("a", 5)], None),
        ([("a", 10)], [], 2 * 10 + 3 * 10),
        ([("a", 10), ("b", 2), ("a", 20)], [], 1 * 15 + 2 * 2),
        ([("a", 10)], [("a", 4)], 6 + 10 + 3 * 10),
        ([("a", 10)], [("a", 400)], 10 + 3 * 10),
        ([(name, 1) for name in "ababab"], [], 0),
    ],
    ids=[
        "before anything has ended nobody knows",
        "what was not seen takes as long as what was",
        "what was seen takes as long as it took",
        "what runs now counts for what is left of it",
        "what runs longer than thought takes no time from the rest",
        "at the end",
    ],
)
def test_what_is_left_follows_from_what_has_ended(ended, running, left):
    assert left_s(ended, running) == (None if left is None else pytest.approx(left))


def test_a_workload_that_failed_is_waited_for_no_longer_and_teaches_nothing():
    assert left_s([("a", 10)], [("b", 600)], fails=True) == pytest.approx(2 * 10)
