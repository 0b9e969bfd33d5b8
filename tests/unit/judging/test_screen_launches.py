"""How often the head is launched before pairs, and what a look at its pairs will cost."""

import math
import random
import statistics

import pytest

from ci_perf.judging import screen
from ci_perf.judging.metric_values import History
from ci_perf.judging.policy import MOST_PAIRS, SCREENED_LAUNCHES, PolicyKind, policy_of
from ci_perf.judging.screen import Known
from ci_perf.judging.variability import Day
from tests.confirmations import TIME, a_confirmation


def known(*, session_sd, launch_sd, sessions=5, seed=1):
    """The history of one workload."""
    noise = random.Random(seed)
    levels = [noise.gauss(0, session_sd) for _ in range(sessions)]
    history = [[level + noise.gauss(0, launch_sd) for _ in range(5)] for level in levels]
    return Known(PolicyKind.TIME, TIME, History(current=history))


def suite(**noise):
    return {str(seed): [known(seed=seed, **noise)] for seed in range(20)}


def test_where_sessions_agree_a_launch_is_enough():
    chosen = screen.head_launches(suite(session_sd=0.002, launch_sd=0.001))

    assert set(chosen.values()) == {1}


def test_where_a_launch_more_lets_the_screen_answer_it_is_launched():
    chosen = screen.head_launches(suite(session_sd=0.003, launch_sd=0.006))

    assert statistics.mean(chosen.values()) > 1.5


@pytest.mark.parametrize(
    ("launch_sd", "launches"), [(0.003, {1}), (0.005, {1, 2}), (0.008, {2, 3})]
)
def test_launches_are_as_many_as_cost_less_than_the_pairs_that_they_save(launch_sd, launches):
    chosen = screen.head_launches(suite(session_sd=0.003, launch_sd=launch_sd))

    assert set(chosen.values()) == launches


def test_where_no_screen_can_answer_pairs_follow_the_first_launch():
    chosen = screen.head_launches(suite(session_sd=0.03, launch_sd=0.003))

    assert set(chosen.values()) == {1}


def test_what_has_no_history_is_launched_as_often_as_a_screen_may():
    chosen = screen.head_launches({"new": [], "old": [known(session_sd=0.002, launch_sd=0.001)]})

    assert chosen["new"] == SCREENED_LAUNCHES


def test_where_nothing_has_a_history_pairs_follow_the_first_launch():
    assert screen.head_launches({"a": [], "b": []}) == {"a": 1, "b": 1}


def test_metrics_of_one_workload_are_screened_by_the_same_launches():
    memory = Known(
        PolicyKind.HOST_MEMORY,
        policy_of(PolicyKind.HOST_MEMORY),
        known(session_sd=0.1, launch_sd=0.1).history,
    )
    workloads = {
        name: [memory, *of_time]
        for name, of_time in suite(session_sd=0.003, launch_sd=0.006).items()
    }

    assert set(screen.head_launches(workloads).values()) == {1}, (
        "the memory needs pairs in any case"
    )


@pytest.mark.parametrize("spread", [0.003, 0.006, 0.01])
def test_the_pairs_to_expect_are_those_that_simulated_confirmations_take(spread):
    noise, taken = random.Random(3), []
    for _ in range(400):
        confirmation = a_confirmation(
            prior_variance=spread**2 / 2, prior_df=30.0, day=Day(1.0, 30.0), one_mode=True
        )
        outcome = None
        while outcome is None:
            outcome = confirmation.add(noise.gauss(0, spread))
        taken.append(outcome.pairs)

    expected = screen.estimate_pairs(TIME, spread**2, 30.0)
    assert expected == pytest.approx(statistics.mean(taken), rel=0.25)


def test_more_noise_needs_more_pairs_up_to_the_last_look():
    expected = [screen.estimate_pairs(TIME, spread**2, 30.0) for spread in (0.001, 0.01, 0.1)]

    assert expected == sorted(expected)
    assert expected[0] == pytest.approx(1, abs=0.1)
    assert expected[-1] == MOST_PAIRS
    assert math.isfinite(screen.estimate_pairs(TIME, 0.0, 0.0))


def test_a_look_that_one_workload_in_fifty_reaches_still_counts():
    first, second = (screen.estimate_pairs(TIME, spread**2, 30.0) for spread in (0.004, 0.0044))

    assert first == 1
    assert second == pytest.approx(1.017, abs=0.001)
