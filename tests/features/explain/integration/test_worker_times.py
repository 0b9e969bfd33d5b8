"""How long operators and functions take by a launch that profiles: sizes are compared, in turns."""

import time

import pytest
import torch

from ci_perf.features.explain.worker import operators
from ci_perf.features.explain.worker.origins import AuthorCode
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
    with operators.count_calls(code, end=time.monotonic() + 60) as counted:
        values.add(1)
    (operation,) = counted
    samples = []
    with operators.time_calls(code, {operation: samples}, wait=None):
        start = time.perf_counter()
        for _ in range(1000):
            values.add(1)
        watched_s = (time.perf_counter() - start) / 1000

    assert len(samples) == 1000
    assert 0 < (operators.call_s(samples, 0.0) or 0.0) < 0.5 * watched_s


def test_a_device_is_waited_for_before_and_after_each_call(tmp_path):
    waited = []

    def wait():
        time.sleep(0.01)
        waited.append(1)

    values = torch.ones(3)
    code = AuthorCode(str(tmp_path))
    with operators.count_calls(code, end=time.monotonic() + 60) as counted:
        values.exp()
    times = {operation: [] for operation in counted}
    with operators.time_calls(code, times, wait=wait):
        values.exp()
        values.cos()  # is not asked for

    (samples,) = times.values()
    assert (len(waited), len(samples)) == (2, 1)
    assert 0.01 <= samples[0] < 1


def test_what_it_takes_to_watch_a_call_is_taken_off_but_half_remains():
    assert operators.call_s([3e-6], 1e-6) == pytest.approx(2e-6)
    assert operators.call_s([3e-6], 5e-6) == pytest.approx(1.5e-6)
    assert operators.call_s([], 0.0) is None
    assert 0 < operators.measure_watching_s() < 1e-3
