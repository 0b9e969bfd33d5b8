import contextlib

import pytest

from ci_perf.measuring.device import Device
from ci_perf.measuring.step_phases import Watcher
from ci_perf.measuring.user_code import WorkloadError
from tests.clocks import Clock


class NsClock(Clock):
    """Counts nanoseconds, and advances by seconds."""

    def advance(self, seconds):
        self.now += round(seconds * 1e9)


@pytest.fixture
def clock():
    return NsClock()


def watch(clock, watcher, step, steps=4):
    return watcher.watch(Device(clock), step, steps)


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


def test_a_part_counts_each_second_once_also_when_it_raises_or_comes_twice(clock):
    watcher = Watcher()

    def step():
        for _ in range(2):
            with watcher.phase("sum"):
                clock.advance(1.0)
        with watcher.phase("within"), watcher.phase("within"):
            clock.advance(3.0)
        with contextlib.suppress(StopIteration), watcher.phase("raises"):
            clock.advance(4.0)
            raise StopIteration

    parts = watch(clock, watcher, step).phases
    assert {name: part.host_s for name, part in parts.items()} == pytest.approx(
        {"sum": 2.0, "within": 3.0, "raises": 4.0}
    )


def test_a_step_without_named_parts_has_none_and_a_part_is_nothing_while_nobody_watches(clock):
    watcher = Watcher()

    with watcher.phase("data"):
        clock.advance(1.0)

    assert watch(clock, watcher, lambda: clock.advance(1.0)) is None


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


def test_a_part_whose_step_fails_is_watched_no_longer(clock):
    watcher = Watcher()

    def step():
        with watcher.phase("data"):
            raise RuntimeError("boom")

    with pytest.raises(RuntimeError, match="boom"):
        watch(clock, watcher, step)
    assert watcher.phase("data") is watcher.phase("h2d")


@pytest.mark.parametrize(
    ("names", "why"),
    [
        *(
            (name, r"context\.phase: expected one word")
            for name in (["a b"], [""], [3], ["x" * 300])
        ),
        ([f"part{n}" for n in range(60)], "expected at most 50 names, found 'part50'"),
    ],
)
def test_parts_without_proper_names_or_too_many_are_refused(clock, names, why):
    watcher = Watcher()

    def step():
        for name in names:
            with watcher.phase(name):
                clock.advance(1.0)

    with pytest.raises(WorkloadError, match=why):
        watch(clock, watcher, step)
