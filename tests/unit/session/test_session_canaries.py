"""When a session asks its canaries, and which machine it refuses."""

import pytest

from ci_perf.errors import WrongNodeError
from ci_perf.model.fleet import Expectation
from ci_perf.model.node_check import CanaryBound, MachineBounds, NodeCheck
from ci_perf.model.validity import Status
from tests.clocks import Clock
from tests.runs import CPU, GPU
from tests.sessions import BOOM, Answers


class Undescribed(Answers):
    """A launcher on a machine that cannot say what it is."""

    def describe(self, _device, _threads, _devices, _interrupted=None):
        return BOOM


def test_canaries_stand_before_between_and_after_the_rounds(measure):
    launcher = Answers()

    run = measure(launcher, "a", "b", processes=3)

    canaries, rounds = ["canaries"], [[f"a {i}", f"b {i}"] for i in range(3)]
    assert launcher.asked == [
        "describe 1",
        *canaries,
        *rounds[0],
        *canaries,
        *rounds[1],
        *canaries,
        *rounds[2],
        *canaries,
    ]
    assert [c.position for c in run.canaries] == ["before", "between", "between", "after"]
    assert run.validity.status is Status.VALID


def test_no_canary_stands_between_or_after_rounds_that_take_seconds(measure):
    run = measure(Answers(), "a", processes=3, canaries_every_s=3600.0)

    assert [canary.position for canary in run.canaries] == ["before"]


def test_canaries_stand_after_long_rounds_however_soon_after_the_ones_between(measure):
    clock = Clock()

    class Slow(Answers):
        def launch(self, task, interrupted=None):
            clock.now += 10
            return super().launch(task, interrupted)

    run = measure(Slow(), "a", "b", processes=5, canaries_every_s=30.0, clock=clock)

    positions = [canary.position for canary in run.canaries]
    assert positions == ["before", "between", "between", "after"]


def at_most(most_s, machine=CPU):
    """What a node must be whose canary may take so long."""
    bound = CanaryBound(usual_s=1e-3, most_s=most_s, sessions=3)
    return NodeCheck(bounds=(MachineBounds(machine=machine, canaries={"matmul": bound}),))


@pytest.mark.parametrize(
    ("expect", "why"),
    [
        (Expectation(cpu_model="other"), "cpu_model: expected 'other', found 'AMD"),
        (Expectation(device="cuda"), "device: expected 'cuda', found 'cpu'"),
    ],
)
def test_a_machine_that_a_unit_does_not_expect_launches_nothing(measure, expect, why):
    launcher = Answers()

    with pytest.raises(WrongNodeError, match=why):
        measure(launcher, "a", node=NodeCheck(expect=expect))
    assert launcher.asked == ["describe 1"]


def test_a_machine_that_cannot_be_described_is_not_the_one_that_a_unit_expects(measure):
    with pytest.raises(WrongNodeError, match="ImportError: no such thing"):
        measure(Undescribed(), "a", node=NodeCheck(expect=Expectation(gpu_count=1)))


def test_a_machine_that_is_slower_than_its_class_launches_nothing(measure):
    launcher = Answers(canaries=[{"matmul": 1.4e-3}, {"matmul": 1.3e-3}])

    with pytest.raises(WrongNodeError, match=r"matmul: expected at most 1.25 ms, as 3 .*1.3 ms"):
        measure(launcher, "a", node=at_most(1.25e-3))
    assert launcher.asked == ["describe 1", "canaries", "canaries"]


@pytest.mark.parametrize(
    ("first", "node"),
    [
        ({"matmul": 1.2e-3}, at_most(1.25e-3)),
        ({"matmul": 2e-4}, at_most(1.25e-3)),
        ({"another": 9.0}, at_most(1.25e-3)),
        ({}, at_most(1.25e-3)),
        (BOOM, at_most(1.25e-3)),
        ({"matmul": 9.0}, at_most(1.25e-3, machine=GPU)),
    ],
    ids=["near", "faster", "another canary", "no torch", "failed", "another kind of machine"],
)
def test_a_machine_of_which_nothing_says_that_it_is_slower_measures(measure, first, node):
    launcher = Answers(canaries=[first])

    assert measure(launcher, "a", node=node).measured


def test_a_machine_that_was_disturbed_for_a_moment_measures(measure):
    launcher = Answers(canaries=[{"matmul": 9.0}])

    run = measure(launcher, "a", node=at_most(1.25e-3))

    assert launcher.asked[:4] == ["describe 1", "canaries", "canaries", "canaries"]
    assert {canary.median_s for canary in run.canaries} == {1e-3}


def test_without_canaries_none_is_asked(measure):
    launcher = Answers()

    run = measure(launcher, "a", canaries=False)

    assert "canaries" not in launcher.asked
    assert run.canaries == ()


def test_a_machine_without_canaries_is_asked_once_and_is_not_blamed(measure):
    launcher = Answers(canaries=[{}])

    run = measure(launcher, "a")

    assert launcher.asked.count("canaries") == 1
    assert run.validity.status is Status.VALID


def test_a_canary_that_fails_is_told_and_stops_nothing(measure):
    launcher = Answers(canaries=[{"matmul": 1e-3}, BOOM])

    run = measure(launcher, "a", processes=3)

    (reason,) = run.validity.reasons
    assert (reason.code, reason.status) == ("canary_failed", Status.DEGRADED)
    assert "between" in reason.detail
    assert "ImportError: no such thing" in reason.detail
    assert launcher.asked.count("canaries") == 2
    assert [c.position for c in run.canaries] == ["before"]
    assert len(run.measured[0].processes) == 3
