"""Whose pair is next, and what a budget allows."""

import itertools

import pytest

from ci_perf.judging.policy import LOOKS, MOST_PAIRS
from ci_perf.session import schedule
from ci_perf.session.schedule import PAIRS_FOR_ALARM


def played(order, until=MOST_PAIRS):
    """Launch pairs until each workload has had `until`; return whose they were."""
    pairs, turns = dict.fromkeys(order, 0), []
    while left := [name for name in order if pairs[name] < until]:
        turns.append(schedule.next_workload(left, pairs))
        pairs[turns[-1]] += 1
    return turns


def test_a_suspect_has_what_an_alarm_needs_before_the_next_one_begins():
    turns = played(["worst", "other"], until=PAIRS_FOR_ALARM)

    assert turns == ["worst"] * PAIRS_FOR_ALARM + ["other"] * PAIRS_FOR_ALARM


def test_afterwards_suspects_go_from_look_to_look_in_turns():
    runs = [(name, len(list(turns))) for name, turns in itertools.groupby(played(["a", "b"]))]

    steps = [after - before for before, after in itertools.pairwise((0, *LOOKS))]
    assert runs == [(name, step) for step in steps for name in ("a", "b")]


ENOUGH_FOR_ONE_S = (1 + 2 * PAIRS_FOR_ALARM) * 10.0


@pytest.mark.parametrize(
    ("budget_s", "pairs", "answerable"),
    [
        (0.0, 0, 0),
        (29.0, 0, 0),  # one launch that warms the caches, and two
        (30.0, 1, 0),
        (ENOUGH_FOR_ONE_S, PAIRS_FOR_ALARM, 1),
        (ENOUGH_FOR_ONE_S + 50.0, PAIRS_FOR_ALARM + 2, 1),
        (2 * ENOUGH_FOR_ONE_S, 2 * PAIRS_FOR_ALARM, 2),
        (1e6, 2 * MOST_PAIRS, 2),
    ],
)
def test_a_forecast_is_what_launches_of_ten_seconds_leave_room_for(budget_s, pairs, answerable):
    found = schedule.forecast({"a": 10.0, "b": 10.0}, budget_s)

    assert (found.pairs, found.answerable, found.suspects) == (pairs, answerable, 2)


def test_what_would_be_enough_is_enough_and_no_more():
    launches_s = {"a": 3.0, "b": 10.0, "c": 0.5}
    enough_s = schedule.forecast(launches_s, 0.0).enough_s

    assert schedule.forecast(launches_s, enough_s).answerable == 3
    assert schedule.forecast(launches_s, enough_s - 0.1).answerable == 2
