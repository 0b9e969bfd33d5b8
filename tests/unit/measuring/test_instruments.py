"""Instruments after the timed region get the time that is left, and can only lose themselves."""

import math

import pytest

from ci_perf.measuring.device import Device
from ci_perf.measuring.distributed import Group
from ci_perf.measuring.fingerprint import take
from ci_perf.measuring.instruments import Instruments, Stopwatch, TimeLeft
from ci_perf.model.process import Phase
from ci_perf.workload import Workload
from tests.clocks import Clock


class NsClock(Clock):
    """Counts seconds, and tells nanoseconds, too."""

    def pass_ns(self):
        return round(self.now * 1e9)


class TwoRanks(Group):
    """This rank, and one that is so many seconds behind it."""

    world_size = 2

    def __init__(self, behind_s=0.0):
        self.behind_s = behind_s

    def maximum(self, value):
        return value + self.behind_s


@pytest.fixture
def clock():
    return NsClock(1000.0)


def after(clock, *, passed_s, step_s, limit_s=600.0, group=None):
    """Instruments that begin once so much of the time limit has passed."""
    left = TimeLeft(limit_s, clock)
    clock.now += passed_s
    return Instruments(left, step_s, group or Group())


def fails(error=None):
    raise error or RuntimeError("not\n  under a mode")


def test_steps_that_fit_into_half_of_what_is_left_are_made(clock):
    instruments = after(clock, passed_s=500.0, step_s=10.0)

    assert instruments.take("memory", lambda: "peaks", steps=5) == "peaks"
    assert instruments.absent == {}
    assert instruments.take("memory", fails, steps=6) is None
    assert instruments.absent == {
        "memory": "6 steps of 10 s were too long for the 100 s that were left of the time limit "
        "(600 s, `timeout_s` in suite.toml)"
    }


def test_each_pass_has_what_the_ones_before_it_have_left_and_one_without_steps_needs_none(clock):
    instruments = after(clock, passed_s=500.0, step_s=10.0)

    def slow_pass():
        clock.now += 95.0

    instruments.take("memory", slow_pass, steps=5)
    instruments.take("work", fails, steps=1)

    assert list(instruments.absent) == ["work"]
    assert "the 5 s that were left" in instruments.absent["work"]
    assert instruments.take("knobs", lambda: {"threads": 1}, steps=0) == {"threads": 1}


def test_an_instrument_that_fails_or_ends_the_program_loses_only_itself(clock):
    instruments = after(clock, passed_s=1.0, step_s=0.1)

    assert instruments.take("memory", fails, steps=5) is None
    assert instruments.take("work", lambda: 3, steps=1) == 3
    assert instruments.absent == {"memory": "RuntimeError: not under a mode"}
    for error in (SystemExit(0), KeyboardInterrupt()):
        name = type(error).__name__
        assert instruments.take(name, lambda error=error: fails(error), steps=5) is None
        assert name in instruments.absent


def test_of_several_ranks_the_one_that_fails_in_a_step_ends_for_the_others_wait_for_it(clock):
    instruments = after(clock, passed_s=1.0, step_s=0.1, group=TwoRanks())

    with pytest.raises(RuntimeError):
        instruments.take("memory", fails, steps=5)
    assert instruments.take("teardown", fails, steps=0) is None


def test_of_several_ranks_the_slowest_says_what_is_left(clock):
    assert after(clock, passed_s=1.0, step_s=10.0).take("work", lambda: 3, steps=1) == 3
    slow = after(clock, passed_s=1.0, step_s=10.0, group=TwoRanks(behind_s=590.0))
    assert slow.take("work", lambda: 3, steps=1) is None


@pytest.mark.parametrize(("step_s", "losses"), [(1.0, 4), (25.0, 4), (40.0, 0)])
def test_a_fingerprint_is_whole_or_absent(clock, step_s, losses):
    """A quarter of what is left is for its steps: warm-up and timing are still to come."""

    def step():
        clock.now += step_s

    left = TimeLeft(300.0, clock)
    workload = Workload(step=step, loss=lambda: 0.5, varies="atomics")
    cpu = Device(clock.pass_ns)

    found = take(workload, cpu, 4, left.before_timing(Group()))

    assert (len(found.losses), found.varies) == (losses, "atomics")
    assert ("were too long" in found.absent) == (losses == 0)


@pytest.mark.parametrize(("at_once", "start_s"), [(0, 5.0), (1, 5.0), (4, 2.0), (math.inf, 1.0)])
def test_of_an_import_that_others_share_a_launch_has_cost_its_share(tmp_path, at_once, start_s):
    stopwatch = Stopwatch(tmp_path / "phase")
    stopwatch.seconds = {Phase.IMPORT: 4.0, Phase.BUILD: 1.0}

    assert stopwatch.start_s(at_once) == start_s
