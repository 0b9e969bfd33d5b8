"""Verdicts on changes that are known, with noise made by hand, from a seed."""

import math
import random

import pytest

from ci_perf.errors import CiPerfError, UsageError
from ci_perf.judging import calibration, qualification
from ci_perf.judging.policy import LOOKS
from tests.plans import a_plan, a_planned
from tests.runs import a_failed, a_measured, a_run

ROUNDS = 18


def uniform(seed=0):
    return random.Random(seed).random


def three_arms(name, spread=0.0, size=0.05, *, rounds=ROUNDS, drift=0.0):
    """The arms of one workload: launches with this spread, on a machine that slows down."""
    noise, launches = random.Random(name), {}
    for position, (arm, shift) in enumerate((("", 0.0), ("+slower", size), ("+same", 0.0))):
        steps = [
            1e-3 * (1 + shift) * math.exp(noise.gauss(0, spread) + drift * (3 * turn + position))
            for turn in range(rounds)
        ]
        launches[arm] = a_measured(name + arm, *steps)
    return list(launches.values())


def qualified(*measured, plan=None, size=0.05, known=None, seed=0):
    names = {one.workload.partition("+")[0]: None for one in measured}
    return qualification.qualify(
        a_run(*measured, suite="smoke+qualify"),
        plan or a_plan(*names),
        size=size,
        calibration=known,
        uniform=uniform(seed),
    )


# --- the plan


def test_every_workload_stands_three_times_and_the_slowed_one_in_the_middle():
    found = qualification.arms(a_plan("a", "b"), 0.05)

    assert [(one.id, one.slowdown) for one in found.workloads] == [
        ("a", 0.0),
        ("a+slower", 0.05),
        ("a+same", 0.0),
        ("b", 0.0),
        ("b+slower", 0.05),
        ("b+same", 0.0),
    ]


def test_a_run_with_slowed_workloads_is_of_no_suite_that_has_baselines():
    assert qualification.arms(a_plan("a"), 0.05).suite == "smoke+qualify"


def test_a_name_that_leaves_no_room_for_ours_is_refused_before_anything_is_launched():
    with pytest.raises(UsageError, match="found 195; shorten"):
        qualification.arms(a_plan("a" * 195), 0.05)


# --- verdicts


def test_a_quiet_machine_notices_the_change_and_raises_no_false_alarm():
    (found,) = qualified(*three_arms("w", 0.002)).workloads.values()

    assert (found.same.call, found.slower.call) == ("unchanged", "regressed")
    assert (found.same.regressed, found.same.improved) == (0.0, 0.0)
    assert found.slower.regressed == 1.0
    assert found.slower.estimate == pytest.approx(math.log(1.05), rel=0.05)


def test_a_noisy_machine_says_that_it_does_not_know():
    (found,) = qualified(*three_arms("w", 0.2)).workloads.values()

    assert found.same.inconclusive > 0.9
    assert found.slower.inconclusive > 0.5
    assert found.same.pairs > LOOKS[-2]


def test_even_a_noisy_machine_seldom_raises_a_false_alarm():
    arms = [arm for i in range(10) for arm in three_arms(f"w{i}", 0.1)]

    same = [one.same for one in qualified(*arms).workloads.values()]

    assert sum(one.regressed + one.improved for one in same) / len(same) < 0.01


def test_a_change_within_the_limit_of_the_suite_is_not_expected_to_be_found():
    plan = a_plan("w", limit=0.25)

    (found,) = qualified(*three_arms("w", 0.002), plan=plan).workloads.values()

    assert found.limit == 0.25
    assert found.slower.call == "unchanged"


def test_a_machine_that_slows_down_steadily_does_not_look_like_a_change():
    arms = three_arms("w", 0.002, drift=0.005)

    (found,) = qualified(*arms).workloads.values()

    assert found.same.call == "unchanged"
    assert found.slower.estimate == pytest.approx(math.log(1.05), abs=0.003)


def test_what_the_calibration_knows_of_the_spread_saves_pairs():
    arms = three_arms("w", 0.01)
    run = a_run(*(a_measured("w", *_steps(0.01, 6)),))
    known = calibration.calibrate(run, a_plan("w"), uniform())

    without, with_prior = qualified(*arms), qualified(*arms, known=known)

    assert with_prior.workloads["w"].same.pairs < without.workloads["w"].same.pairs


def _steps(spread, launches):
    noise = random.Random(1)
    return [1e-3 * math.exp(noise.gauss(0, spread)) for _ in range(launches)]


def test_the_statistic_of_the_plan_speaks():
    blocks = [[0.5e-3, 1e-3, 1e-3]] * ROUNDS
    slow = [[0.6e-3, 1e-3, 1e-3]] * ROUNDS
    arms = [
        a_measured(f"w{arm}", *steps)
        for arm, steps in (("", blocks), ("+slower", slow), ("+same", blocks))
    ]
    plan = a_plan(a_planned("w", statistic="min"))

    (found,) = qualified(*arms, plan=plan).workloads.values()

    assert found.slower.estimate == pytest.approx(math.log(1.2), rel=0.01)


def test_the_shares_of_the_replays_add_up():
    for one in qualified(*three_arms("w", 0.03)).workloads.values():
        for found in (one.same, one.slower):
            shares = (found.regressed, found.improved, found.unchanged, found.inconclusive)
            assert sum(shares) == pytest.approx(1.0)


def test_the_same_launches_always_give_the_same_document():
    arms = three_arms("w", 0.03)

    assert qualified(*arms) == qualified(*arms)


# --- what is missing


def test_a_workload_of_which_an_arm_failed_is_left_out():
    *others, _ = three_arms("bad")

    found = qualified(*three_arms("good"), *others, a_failed("bad+same"))

    assert list(found.workloads) == ["good"]


def test_without_a_whole_workload_nothing_can_be_said():
    with pytest.raises(CiPerfError, match="found none of 1; see the reasons above"):
        qualified(three_arms("bad")[0], a_failed("bad+slower"), plan=a_plan("bad"))
