"""The order of launches, and what is made of them: ratios of neighbours, with their interval."""

import math

import pytest
from scipy import stats

from benchmarks import container
from benchmarks.container import HERE, THERE, Interval, Launch


def a_round(*step_s, index=0):
    """Return a round whose launches took this long, in the order in which they are made."""
    return [
        Launch(where=where, step_s=one, whole_s=10 * one)
        for where, one in zip(container.order(index), step_s, strict=True)
    ]


def an_interval(low, high):
    return Interval(ratio=math.sqrt(low * high), low=low, high=high)


def test_each_place_is_first_in_every_other_round():
    assert container.order(0) == (HERE, THERE, THERE, HERE)
    assert container.order(1) == (THERE, HERE, HERE, THERE)
    assert container.order(2) == container.order(0)


@pytest.mark.parametrize(("index", "step_s"), [(0, (1, 2, 6, 2)), (1, (2, 1, 2, 6))])
def test_each_launch_is_held_against_its_neighbour(index, step_s):
    found = container.apart([a_round(*step_s, index=index)], "step_s")

    assert sorted(map(math.exp, found)) == pytest.approx([2, 3])


def test_a_machine_that_becomes_slower_all_the_time_favours_neither():
    rounds = [a_round(1, 2, 4, 8), a_round(1, 2, 4, 8, index=1)]

    assert container.interval(container.apart(rounds, "whole_s")).ratio == pytest.approx(1)


def test_launches_of_one_place_are_the_control():
    rounds = [a_round(1, 7, 7, 2), a_round(7, 1, 3, 7, index=1)]

    found = container.alike(rounds, "step_s")

    assert [math.exp(one) for one in found] == pytest.approx([2, 3])


def test_the_interval_is_that_of_scipy():
    logs = [0.01, 0.03, -0.02, 0.05]
    low, high = stats.t.interval(0.95, 3, loc=0.0175, scale=stats.sem(logs))

    found = container.interval(logs)

    assert (found.low, found.high) == pytest.approx((math.exp(low), math.exp(high)))
    assert found.ratio == pytest.approx(math.exp(0.0175))


def test_what_is_launched_at_a_time_is_one_value_for_all_workloads():
    assert container.together([[1.0, 2.0], [3.0, 6.0]]) == [2.0, 4.0]


@pytest.mark.parametrize(
    ("found", "control", "answer"),
    [
        (an_interval(0.99, 1.01), an_interval(0.99, 1.01), "holds"),
        (an_interval(1.05, 1.06), an_interval(0.99, 1.01), "refuted"),
        (an_interval(0.90, 0.95), an_interval(0.99, 1.01), "refuted"),
        (an_interval(1.05, 1.06), an_interval(0.99, 1.10), "within A/A"),
        (an_interval(0.90, 1.20), an_interval(0.99, 1.10), "too noisy to show"),
    ],
)
def test_a_claim_is_refuted_only_beyond_what_the_machine_does_by_itself(found, control, answer):
    assert container.verdict(found, control, claim=0.02) == answer
