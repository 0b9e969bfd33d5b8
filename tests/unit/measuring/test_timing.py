import random
import statistics
import threading

import pytest

from ci_perf.measuring import timing
from ci_perf.measuring.device import CudaDevice, Device
from ci_perf.measuring.turn_client import TurnTaker
from ci_perf.model.suite import Protocol
from tests.fakes.stream import Stream


class Bench:
    """A machine whose only clock is advanced by the steps that run on it."""

    def __init__(self, *step_s):
        self.now_ns = 0
        self.steps = 0
        self._step_s = step_s

    def clock(self):
        return self.now_ns / 1e9

    def step(self):
        step_s = self._step_s[min(self.steps, len(self._step_s) - 1)]
        self.now_ns += round(step_s * 1e9)
        self.steps += 1

    @property
    def device(self):
        return Device(lambda: self.now_ns, lambda: self.now_ns)


class Meeting:
    """Where ranks, each a thread, find the largest of their values; nobody waits for ever."""

    def __init__(self, ranks):
        self._values = [0.0] * ranks
        self._barrier = threading.Barrier(ranks, timeout=10)

    def of(self, rank):
        def slowest(value):
            self._values[rank] = value
            self._barrier.wait()
            largest = max(self._values)
            self._barrier.wait()
            return largest

        return slowest


def warm_up(bench, *, slowest=timing.alone, in_pair=False, **settings):
    protocol = Protocol(**{"warmup_min_steps": 10, "warmup_window": 10, **settings})
    return timing.warm_up(
        bench.device, bench.step, protocol, slowest=slowest, in_pair=in_pair, clock=bench.clock
    )


def time_blocks(bench, *, step_s, start_s=2.0, slowest=timing.alone, turn_taker=None, **settings):
    return timing.time_blocks(
        bench.device,
        bench.step,
        Protocol(**settings),
        step_s=step_s,
        start_s=start_s,
        slowest=slowest,
        turn_taker=turn_taker or TurnTaker(bench.clock),
    )


class Granted:
    """Turns of a process whose partner has its own between any two, and enough after `blocks`."""

    is_shared = True

    def __init__(self, bench, *, blocks, partner_s=0.0):
        self.said = []
        self._bench = bench
        self._blocks = blocks
        self._partner_s = partner_s
        self._waited_s = 0.0

    def clock(self):
        return self._bench.clock() - self._waited_s

    def take(self):
        raise AssertionError("the timed region takes turns for blocks only")

    def take_for_block(self, stopped):
        self._bench.now_ns += round(self._partner_s * 1e9)
        self._waited_s += self._partner_s
        self.said.append(stopped is not None)
        return len(self.said) <= self._blocks or stopped is None


def together(function, *benches):
    """Run one function per rank, side by side; return what each of them returned."""
    meeting = Meeting(len(benches))
    found = {}

    def run(rank):
        found[rank] = function(benches[rank], slowest=meeting.of(rank))

    ranks = [threading.Thread(target=run, args=(rank,)) for rank in range(len(benches))]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    return [found[rank] for rank in range(len(benches))]


def noisy(seed, low, high):
    noise = random.Random(seed)
    return Bench(*(noise.uniform(low, high) for _ in range(2000)))


@pytest.mark.parametrize(
    ("step_s", "settings", "stopped", "steps"),
    [
        (0.1, {"warmup_min_s": 3.0}, "stable", 30),
        (0.1, {"warmup_min_s": 6.0, "in_pair": True}, "stable", 30),
        (1.0, {"warmup_min_s": 3.0, "warmup_min_steps": 25}, "stable", 30),
        # One window agrees with nobody.
        (0.1, {"warmup_min_s": 0.0, "warmup_min_steps": 1}, "stable", 20),
        # The cap does not wait for a window of long steps.
        (20.0, {"warmup_max_s": 30}, "cap", 2),
    ],
    ids=["least time", "half of it in a pair", "least steps", "two windows", "cap"],
)
def test_a_steady_step_is_warm_after(step_s, settings, stopped, steps):
    warmup, found_s = warm_up(Bench(step_s), **settings)

    assert (warmup.stopped, warmup.steps) == (stopped, steps)
    assert found_s == pytest.approx(step_s)


def test_warm_up_goes_on_while_steps_get_faster():
    bench = Bench(*(1.0 / (n + 1) for n in range(60)), 0.01)

    warmup, step_s = warm_up(bench, warmup_min_s=0.1, warmup_max_s=30)

    assert warmup.stopped == "stable"
    assert warmup.steps >= 80  # the first windows that agree lie behind the last slow step
    assert step_s == pytest.approx(0.01)


def test_single_slow_steps_do_not_keep_a_step_from_being_warm():
    bench = Bench(*(5.0 if n % 10 == 3 else 0.1 for n in range(200)))

    warmup, step_s = warm_up(bench, warmup_min_s=1.0, warmup_max_s=1000)

    assert (warmup.stopped, warmup.steps) == ("stable", 20)
    assert step_s == pytest.approx(0.1)


def test_a_window_of_short_steps_is_not_waited_for_step_by_step():
    stream = Stream(launch_ns=5_000)
    device = CudaDevice(stream, 0, stream.clock)

    timing.warm_up(
        device,
        lambda: stream.kernel(10_000),
        Protocol(warmup_window=100, warmup_min_s=0.0),
        clock=lambda: stream.now / 1e9,
    )

    assert stream.calls.count("kernel") == 200
    # The first step alone, then what is left of the first window, then the second window.
    assert stream.calls.count("synchronize") == 2 * 3


@pytest.mark.parametrize(
    ("step_s", "settings", "stopped", "blocks", "steps_per_block"),
    [
        (0.001, {"block_min_s": 0.05, "timed_min_s": 2.0}, "enough", 40, 50),
        # A step that takes next to nothing does not fill the memory.
        (1e-7, {"block_min_s": 10.0, "timed_min_s": 0.0}, "enough", 5, 10_000),
        (0.125, {"timed_min_blocks": 30, "timed_min_s": 5.0}, "enough", 40, 1),
        (0.125, {"timed_min_blocks": 30, "timed_min_s": 1.0}, "enough", 30, 1),
        (100.0, {"timed_max_s": 60}, "cap", 1, 1),
        # Blocks without a length are not more than a result can hold.
        (1e-6, {"block_min_s": 0.0, "timed_min_s": 60.0}, "cap", 10_000, 1),
    ],
    ids=["block", "longest block", "least time", "least blocks", "cap", "most blocks"],
)
def test_a_quiet_workload_is_timed_for(step_s, settings, stopped, blocks, steps_per_block):
    timed = time_blocks(Bench(step_s), step_s=step_s, **settings)

    assert (timed.stopped, len(timed.block_s)) == (stopped, blocks)
    assert timed.steps_per_block == steps_per_block
    assert timed.block_s == pytest.approx([step_s] * blocks)
    assert (timed.device_s, timed.issue_s) == (None, None)


def in_turns(bench, *, step_s=1.0, blocks=0, partner_s=0.0, timed_min_s=0.0, **settings):
    turns = Granted(bench, blocks=blocks, partner_s=partner_s)
    settings |= {"timed_min_s": timed_min_s, "turn_taker": turns}
    return time_blocks(bench, step_s=step_s, **settings)


@pytest.mark.parametrize(
    ("step_s", "settings", "blocks"),
    [
        # Of its own clock, each block takes 0.25 s: the step before it is not timed.
        (0.125, {"timed_min_blocks": 3, "timed_min_s": 5.0, "partner_s": 0.25}, 10),
        (1.0, {"timed_min_blocks": 2, "timed_min_s": 20.0, "partner_s": 1000.0}, 5),
        # Its partner has enough, and it does not.
        (1.0, {"timed_min_blocks": 5}, 5),
    ],
)
def test_each_of_a_resident_pair_times_for_half_of_the_least_time(step_s, settings, blocks):
    timed = in_turns(Bench(step_s), step_s=step_s, **settings)

    assert (timed.stopped, len(timed.block_s)) == ("enough", blocks)


@pytest.mark.parametrize(("start_s", "fewest", "most"), [(1.0, 5, 25), (100.0, 10, 200)])
def test_a_launch_that_costs_more_to_start_times_for_longer(start_s, fewest, most):
    limits = {"timed_min_s": 1, "timed_max_s": 1000}

    timed = time_blocks(noisy(3, 0.9, 1.1), step_s=1.0, start_s=start_s, **limits)

    assert timed.stopped == "enough"
    assert fewest <= len(timed.block_s) <= most


def test_a_gpu_has_its_own_times_of_every_block():
    stream = Stream(launch_ns=5_000, record_ns=0)

    timed = timing.time_blocks(
        CudaDevice(stream, 0, stream.clock),
        lambda: stream.kernel(1_000_000),
        Protocol(timed_min_blocks=7, timed_min_s=0.0),
        step_s=0.001,
        start_s=2.0,
        turn_taker=TurnTaker(lambda: stream.now / 1e9),
    )

    assert len(timed.block_s) == 7
    assert timed.device_s == pytest.approx([0.0010001] * 7)
    assert timed.issue_s == pytest.approx([5e-6] * 7)


def test_quantiles_are_those_of_single_steps_and_not_of_blocks():
    bench = Bench(*(2.0 if n % 10 == 9 else 1.0 for n in range(200)))

    timed = time_blocks(bench, step_s=1.0, block_min_s=10.0, timed_min_s=0.0, timed_min_blocks=10)

    assert set(timed.block_s) == {1.1}
    assert (timed.steps.p05, timed.steps.p50, timed.steps.p95) == (1.0, 1.0, 2.0)


def test_quantiles_of_many_steps_are_right_to_a_thousandth():
    noise = random.Random(7)
    values = [noise.lognormvariate(-5, 0.4) for _ in range(20_000)]

    timed = time_blocks(Bench(*values), step_s=0.01, timed_min_blocks=4000, timed_max_s=1e6)

    seen = values[: len(timed.block_s) * timed.steps_per_block]
    exact = statistics.quantiles(seen, n=20)
    found = (timed.steps.p05, timed.steps.p50, timed.steps.p95)
    assert found == pytest.approx((exact[0], exact[9], exact[18]), rel=2e-3)


def test_ranks_of_different_speed_are_warm_after_the_same_step():
    ranks = together(
        lambda bench, slowest: warm_up(bench, slowest=slowest, warmup_tolerance=0.05),
        noisy(1, 0.05, 0.06),
        noisy(2, 0.20, 0.26),
    )

    assert ranks[0] == ranks[1]
    assert 0.20 < ranks[0][1] < 0.26


def test_ranks_of_different_speed_stop_after_the_same_block():
    ranks = together(
        lambda bench, slowest: time_blocks(bench, step_s=0.05, slowest=slowest),
        noisy(1, 0.05, 0.06),
        noisy(2, 0.05, 0.09),
    )

    assert ranks[0] == ranks[1]


def test_the_slowest_rank_speaks_for_each_block():
    odd, even = (Bench(*(1.0 + (n % 2 == parity) for n in range(99))) for parity in (0, 1))
    limits = {"timed_min_blocks": 4, "timed_min_s": 0.0}

    ranks = together(
        lambda bench, slowest: time_blocks(bench, step_s=1.0, slowest=slowest, **limits), odd, even
    )

    assert [rank.block_s for rank in ranks] == [(2.0,) * 4] * 2


def test_ranks_that_expected_different_steps_make_blocks_of_the_same_length():
    expected, limits = iter([0.001, 0.01]), {"block_min_s": 0.1, "timed_max_s": 1.0}

    ranks = together(
        lambda bench, slowest: time_blocks(bench, step_s=next(expected), slowest=slowest, **limits),
        *(Bench(0.01), Bench(0.01)),
    )

    assert [rank.steps_per_block for rank in ranks] == [10, 10]


def test_the_first_step_of_each_shared_turn_is_not_timed():
    bench = Bench(*(9.0 if n % 5 == 0 else 1.0 for n in range(20)))

    timed = in_turns(bench, blocks=3, block_min_s=4.0, timed_min_blocks=3)

    assert bench.steps == 15
    assert timed.block_s == (1.0,) * 3
    assert timed.steps.p95 == 1.0


def test_a_process_that_has_enough_goes_on_until_its_partner_has_enough_and_keeps_its_reason():
    bench = Bench(1.0)
    turns = Granted(bench, blocks=12)

    timed = time_blocks(bench, step_s=1.0, timed_min_blocks=3, timed_min_s=0.0, turn_taker=turns)

    assert (timed.stopped, len(timed.block_s)) == ("enough", 12)
    assert turns.said == [False] * 3 + [True] * 10
