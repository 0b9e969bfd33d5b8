"""Whose pair is next, and what a budget allows."""

import pytest

from ci_perf.judging.policy import MOST_PAIRS
from ci_perf.session import schedule
from ci_perf.session.schedule import PAIRS_FOR_ALARM, Kernels, Waiting
from tests.plans import a_planned


def played(needed, launch_s=None, **known):
    """Launch pairs until each workload has what it needs; return whose they were."""
    pairs, turns = dict.fromkeys(needed, 0), []
    while waiting := {
        name: Waiting(count, needed[name] - count, (launch_s or {}).get(name, 1.0))
        for name, count in pairs.items()
        if count < min(needed[name], MOST_PAIRS)
    }:
        turns.append(schedule.next_workload(waiting, **known))
        pairs[turns[-1]] += 1
    return turns


def test_the_worst_suspect_is_launched_until_it_is_decided():
    assert played({"a": 6, "b": 2, "c": 3}) == ["a"] * 6 + ["b"] * 2 + ["c"] * 3


def test_once_a_loss_is_proven_the_cheapest_expected_decision_comes_first():
    needed = {"a": 6, "b": 2}

    assert played(needed, is_proven=True) == ["b"] * 2 + ["a"] * 6
    assert played({"a": 2, "b": 2}, {"a": 30.0, "b": 1.0}, is_proven=True) == ["b"] * 2 + ["a"] * 2


def test_what_the_early_look_has_not_proven_waits_once_a_loss_is_proven():
    waiting = {"open": Waiting(3, 15.0, 1.0), "new": Waiting(0, 4.0, 1.0)}

    assert schedule.next_workload(waiting) == "open"
    assert schedule.next_workload(waiting, is_proven=True) == "new"


def test_another_family_comes_before_the_rest_of_one_that_is_proven():
    waiting = {
        "sizes.n=2": Waiting(0, 2.0, 1.0, of_proven=True),
        "other": Waiting(0, 4.0, 9.0),
        "begun": Waiting(3, 4.0, 9.0),
    }

    assert schedule.next_workload(waiting, is_proven=True) == "other"


def test_of_the_last_cases_those_that_are_likely_to_move_come_first():
    cases = [a_planned(f"{name}.n={n}", parameters={"n": n}) for name in "ab" for n in (1, 2, 3)]

    assert schedule.list_telling_cases([*cases, a_planned("alone")]) == ["a.n=3", "b.n=3"]
    assert schedule.list_telling_cases(cases, {"b.n=3"}) == ["b.n=3", "a.n=3"]


def test_what_six_pairs_leave_open_waits_for_the_others():
    turns = played({"a": 9, "b": 6})

    assert turns == ["a"] * 6 + ["b"] * 6 + ["a"] * 3


def test_what_is_on_its_way_to_a_look_reaches_it_whatever_its_pairs_say():
    """Expected pairs change with each pair: ten suspects had two or three pairs, and no verdict."""
    waiting = {
        "begun": Waiting(pairs=4, expected=40.0, launch_s=1.0),
        "cheap": Waiting(pairs=3, expected=1.0, launch_s=1.0),
        "new": Waiting(pairs=0, expected=2.0, launch_s=1.0),
    }

    assert schedule.next_workload(waiting) == "begun"


def test_among_equals_the_worst_one_is_the_first():
    assert played({"worst": 2, "other": 2})[0] == "worst"


def test_of_equals_those_with_other_kernels_come_first_and_then_those_that_a_launch_tells():
    waiting = {
        "same": Waiting(0, 2.0, 1.0),
        "unknown": Waiting(0, 2.0, 1.0, kernels=Kernels.UNKNOWN),
        "other": Waiting(0, 2.0, 9.0, kernels=Kernels.OTHER),
        "begun": Waiting(1, 2.0, 1.0),
    }
    turns = []
    while waiting:
        turns.append(schedule.next_workload(waiting, is_proven=True))
        del waiting[turns[-1]]

    assert turns == ["begun", "other", "unknown", "same"]


ENOUGH_FOR_ONE_S = (1 + 2 * PAIRS_FOR_ALARM) * 10.0


@pytest.mark.parametrize(
    ("budget_s", "pairs", "answerable"),
    [
        (0.0, 0, 0),
        (29.0, 0, 0),  # one launch that warms the caches, and two
        (30.0, 1, 0),
        (89.0, 3, 0),
        (90.0, 4, 0),  # all of the first one
        (180.0, 8, 1),
        (2 * ENOUGH_FOR_ONE_S, 2 * PAIRS_FOR_ALARM, 2),
        (1e6, 2 * MOST_PAIRS, 2),
    ],
)
def test_a_forecast_is_what_launches_of_ten_seconds_leave_room_for(budget_s, pairs, answerable):
    found = schedule.forecast({"a": 10.0, "b": 10.0}, budget_s, {"a": 1, "b": 1})

    assert (found.pairs, found.answerable, found.suspects) == (pairs, answerable, 2)


@pytest.mark.parametrize(("budget_s", "most_s"), [(100.0, 100.0), (1e6, 20.0 * MOST_PAIRS + 10)])
def test_pairs_take_at_most_the_budget_and_what_there_can_be(budget_s, most_s):
    assert schedule.forecast({"a": 10.0}, budget_s, {"a": 1}).most_s == most_s


def test_what_would_be_enough_is_enough_and_no_more():
    launches_s = {"a": 3.0, "b": 10.0, "c": 0.5}
    warm_ups = {"a": 1, "b": 0, "c": 1}
    enough_s = schedule.forecast(launches_s, 0.0, warm_ups).enough_s

    assert schedule.forecast(launches_s, enough_s, warm_ups).answerable == 3
    assert schedule.forecast(launches_s, enough_s - 0.1, warm_ups).answerable == 2
