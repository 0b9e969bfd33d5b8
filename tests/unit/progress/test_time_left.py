import pytest

from ci_perf.progress.sentences import TimeEstimate
from tests.clocks import Clock


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def known(clock):
    """Two workloads with three processes each, of which nothing has been seen."""
    made = TimeEstimate(clock)
    made.expect({"a": 3, "b": 3})
    return made


def passes(known, clock, name, seconds):
    known.begin(name)
    clock.now += seconds
    known.end()


def test_before_anything_has_ended_nobody_knows(known, clock):
    known.begin("a")
    clock.now += 5

    assert known.left_s() is None


def test_a_workload_that_was_not_seen_takes_as_long_as_those_that_were(known, clock):
    passes(known, clock, "a", 10)

    assert known.left_s() == pytest.approx(2 * 10 + 3 * 10)


def test_a_workload_that_was_seen_takes_as_long_as_it_took(known, clock):
    passes(known, clock, "a", 10)
    passes(known, clock, "b", 2)
    passes(known, clock, "a", 20)

    assert known.left_s() == pytest.approx(1 * 15 + 2 * 2)


def test_what_runs_now_counts_for_what_is_left_of_it(known, clock):
    passes(known, clock, "a", 10)
    known.begin("a")
    clock.now += 4

    assert known.left_s() == pytest.approx(6 + 10 + 3 * 10)


def test_what_runs_longer_than_thought_takes_no_time_from_the_rest(known, clock):
    passes(known, clock, "a", 10)
    known.begin("a")
    clock.now += 400

    assert known.left_s() == pytest.approx(10 + 3 * 10)


def test_a_workload_that_failed_is_waited_for_no_longer_and_teaches_nothing(known, clock):
    passes(known, clock, "a", 10)
    known.begin("b")
    clock.now += 600
    known.give_up()

    assert known.left_s() == pytest.approx(2 * 10)


def test_at_the_end_nothing_is_left(known, clock):
    for name in "ababab":
        passes(known, clock, name, 1)

    assert known.left_s() == 0
