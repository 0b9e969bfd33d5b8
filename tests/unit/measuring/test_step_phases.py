import contextlib

import pytest

from ci_perf.measuring.device import CpuDevice
from ci_perf.measuring.step_phases import Watcher
from ci_perf.measuring.user_code import WorkloadError


class Clock:
    """Advances only when a step says so; counts nanoseconds."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now

    def advance(self, seconds):
        self.now += round(seconds * 1e9)


@pytest.fixture
def clock():
    return Clock()


def watch(clock, watcher, step, steps=4):
    return watcher.watch(CpuDevice(clock), step, steps)


def test_each_part_of_a_step_takes_what_it_takes(clock):
    watcher = Watcher()

    def step():
        with watcher.phase("data"):
            clock.advance(1.0)
        with watcher.phase("forward"):
            clock.advance(3.0)
        clock.advance(0.5)

    found = watch(clock, watcher, step)

    assert found.step_s == pytest.approx(4.5)
    assert {name: phase.host_s for name, phase in found.phases.items()} == pytest.approx(
        {"data": 1.0, "forward": 3.0}
    )
    assert list(found.phases) == ["data", "forward"]


def test_a_part_that_comes_twice_in_a_step_profile_as_its_sum(clock):
    watcher = Watcher()

    def step():
        for _ in range(2):
            with watcher.phase("data"):
                clock.advance(1.0)

    assert watch(clock, watcher, step).phases["data"].host_s == pytest.approx(2.0)


def test_a_step_without_named_parts_has_none(clock):
    assert watch(clock, Watcher(), lambda: clock.advance(1.0)) is None


def test_a_part_is_nothing_while_nobody_watches(clock):
    watcher = Watcher()

    with watcher.phase("data"):
        clock.advance(1.0)

    assert watch(clock, watcher, lambda: None) is None


def test_what_the_watching_itself_brings_about_is_not_counted(clock):
    """Compiled code is compiled anew in the first step that is watched."""
    watcher, steps = Watcher(), []

    def step():
        steps.append(None)
        with watcher.phase("forward"):
            clock.advance(100.0 if len(steps) == 1 else 1.0)

    found = watch(clock, watcher, step, steps=4)

    assert len(steps) == 5
    assert (found.step_s, found.phases["forward"].host_s) == pytest.approx((1.0, 1.0))


def test_a_part_that_ends_in_an_exception_counts(clock):
    watcher = Watcher()

    def step():
        with contextlib.suppress(StopIteration), watcher.phase("data"):
            clock.advance(2.0)
            raise StopIteration

    assert watch(clock, watcher, step).phases["data"].host_s == pytest.approx(2.0)


def test_a_part_within_itself_counts_once(clock):
    watcher = Watcher()

    def step():
        with watcher.phase("data"), watcher.phase("data"):
            clock.advance(2.0)

    assert watch(clock, watcher, step).phases["data"].host_s == pytest.approx(2.0)


def test_a_part_whose_step_fails_is_watched_no_longer(clock):
    watcher = Watcher()

    def step():
        with watcher.phase("data"):
            raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        watch(clock, watcher, step)
    assert watcher.phase("data") is watcher.phase("h2d")


@pytest.mark.parametrize("name", ["two words", "", 3, "x" * 300])
def test_a_part_without_a_proper_name_is_refused(clock, name):
    watcher = Watcher()

    def step():
        with watcher.phase(name):
            clock.advance(1.0)

    with pytest.raises(WorkloadError, match=r"context\.phase: expected one word"):
        watch(clock, watcher, step)


def test_too_many_parts_are_refused(clock):
    watcher = Watcher()

    def step():
        for number in range(60):
            with watcher.phase(f"part{number}"):
                clock.advance(1.0)

    with pytest.raises(WorkloadError, match="expected at most 50 names, found 'part50'"):
        watch(clock, watcher, step)
