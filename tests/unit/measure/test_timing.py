import random

import pytest

from ci_perf.measure import timing
from ci_perf.measure.device import CpuDevice
from ci_perf.model.suite import Protocol


class Bench:
    """A machine whose only clock is advanced by the steps that run on it."""

    def __init__(self, *step_s):
        self.now = 0.0
        self.steps = 0
        self._step_s = step_s

    def clock(self):
        return self.now

    def step(self):
        self.now += self._step_s[min(self.steps, len(self._step_s) - 1)]
        self.steps += 1

    @property
    def device(self):
        return CpuDevice(self.clock)


def warm_up(bench, **settings):
    return timing.warm_up(bench.device, bench.step, Protocol(**settings), clock=bench.clock)


def time_blocks(bench, *, step_s, **settings):
    return timing.time_blocks(
        bench.device, bench.step, Protocol(**settings), step_s=step_s, clock=bench.clock
    )


def test_a_steady_step_is_warm_after_the_least_time():
    warmup, step_s = warm_up(Bench(0.1), warmup_min_s=3.0)

    assert (warmup.stopped, warmup.steps) == ("stable", 30)
    assert step_s == pytest.approx(0.1)


def test_warm_up_goes_on_while_steps_get_faster():
    bench = Bench(*(1.0 / (n + 1) for n in range(60)), 0.01)

    warmup, step_s = warm_up(bench, warmup_min_s=0.1, warmup_max_s=30)

    assert warmup.stopped == "stable"
    assert warmup.steps >= 80  # the first windows that agree lie behind the last slow step
    assert step_s == pytest.approx(0.01)


def test_a_step_that_never_settles_stops_at_the_cap_and_says_so():
    bench = Bench(*(1.1**n for n in range(200)))

    warmup, _ = warm_up(bench, warmup_min_s=0.1, warmup_max_s=30)

    assert warmup.stopped == "cap"


def test_blocks_are_long_enough_for_the_clock_and_count_seconds_per_step():
    timed = time_blocks(Bench(0.001), step_s=0.001, block_min_s=0.05, timed_min_s=0.1)

    assert timed.steps_per_block == 50
    assert timed.block_s == pytest.approx([0.001] * len(timed.block_s))


def test_a_quiet_workload_stops_at_the_least_time_and_blocks():
    timed = time_blocks(Bench(0.125), step_s=0.125, timed_min_blocks=30, timed_min_s=5.0)

    assert (timed.stopped, len(timed.block_s)) == ("quiet", 40)


def test_a_noisy_workload_stops_when_more_blocks_teach_nothing():
    noise = random.Random(3)
    noisy = [noise.uniform(0.8, 1.4) for _ in range(400)]

    timed = time_blocks(
        Bench(*noisy), step_s=1.0, timed_min_blocks=10, timed_min_s=1, timed_max_s=1000
    )

    assert timed.stopped == "settled"
    assert 20 <= len(timed.block_s) <= 100


def test_a_slow_workload_stops_at_the_cap_with_one_block_at_least():
    timed = time_blocks(Bench(100.0), step_s=100.0, timed_max_s=60)

    assert (timed.stopped, len(timed.block_s)) == ("cap", 1)
