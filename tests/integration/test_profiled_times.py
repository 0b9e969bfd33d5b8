"""How long operators and functions take by a launch that profiles: sizes are compared, in turns."""

import time

import pytest
import torch

from ci_perf.measuring.profiling import operators
from ci_perf.measuring.profiling.origins import AuthorCode
from ci_perf.measuring.profiling.thread_clock import Reservoir, ThreadClock
from tests import profiled
from tests.launches import BUILD, HEAD, result_of

SIZES = f"""{HEAD}
import torch
small, large = torch.randn(64, 64), torch.randn(512, 512)
def step():
    for _ in range(10):
        small @ small
    large @ large
{BUILD}"""


def test_each_call_has_the_time_of_its_arguments(tmp_path):
    profile = result_of(profiled.launcher(tmp_path / "repository")(SIZES))
    small, large = sorted(profile.operators, key=lambda use: -use.calls)

    assert (small.calls, large.calls) == (10, 1)
    assert large.call_s > 10 * small.call_s  # 512 times the work
    assert profile.step_s > 0
    assert profile.missing == {}


def test_what_our_python_costs_is_not_in_the_time_of_a_call(tmp_path):
    code = AuthorCode(str(tmp_path))
    values = torch.ones(10)
    with operators.watch(code, lambda: "", end=time.monotonic() + 60) as counted:
        values.add(1)
    (operation,) = counted.calls
    samples = Reservoir()
    with operators.time_calls(code, lambda: "", {operation: samples}, wait=None):
        start = time.perf_counter()
        for _ in range(1000):
            values.add(1)
        watched_s = (time.perf_counter() - start) / 1000

    assert samples.count == 1000
    assert 0 < (samples.quartile_s() or 0.0) < 0.5 * watched_s


def test_a_device_is_waited_for_before_and_after_each_call(tmp_path):
    waited = []

    def wait():
        time.sleep(0.01)
        waited.append(1)

    values = torch.ones(3)
    times = {}
    code = AuthorCode(str(tmp_path))
    with operators.watch(code, lambda: "", end=time.monotonic() + 60) as counted:
        values.exp()
    times = {operation: Reservoir() for operation in counted.calls}
    with operators.time_calls(code, lambda: "", times, wait=wait):
        values.exp()
        values.cos()  # is not asked for

    (samples,) = times.values()
    assert (len(waited), samples.count) == (2, 1)
    assert 0.01 <= (samples.quartile_s() or 0.0) < 1


def test_a_core_that_others_had_between_two_laps_is_not_taken_off_the_second(tmp_path):
    scheduled = tmp_path / "schedstat"
    scheduled.write_text("0 0 0")
    with scheduled.open("rb") as file:
        clock = ThreadClock(file.fileno())
        time.sleep(0.001)
        scheduled.write_text("0 1000000000 0")
        clock.restart()
        time.sleep(0.005)

        assert clock.lap().waiting >= 4_000_000


def test_a_million_times_take_little_memory_and_keep_their_quartile():
    samples = Reservoir()
    for number in range(200_000):
        samples.add(number)

    assert samples.count == 200_000
    assert len(samples._kept) == 1000
    assert samples.quartile_s() == pytest.approx(50_000e-9, rel=0.2)
    assert Reservoir().quartile_s() is None


def test_what_it_takes_to_watch_a_call_is_taken_off_but_half_remains():
    samples = Reservoir()
    samples.add(3_000)

    assert samples.quartile_s(less_s=1e-6) == pytest.approx(2e-6)
    assert samples.quartile_s(less_s=5e-6) == pytest.approx(1.5e-6)
    assert 0 < operators.watching_s() < 1e-3
