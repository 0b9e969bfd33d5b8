"""Both devices on a virtual clock: no machine here has to be quiet."""

import pytest

from ci_perf.measuring import timing
from ci_perf.measuring.device import CpuDevice, CudaDevice
from tests.fakes.stream import Stream

STEP_NS = 2_000_000
# What a cycle of the simulated device takes: it runs at 2 GHz.
CYCLE_NS = 0.5


class Ticking:
    """A clock of which every look takes a microsecond."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1e-6
        return self.now


def on_cuda(stream, step, share, *, step_ns):
    """Slow a step down on the simulated device, as `of` does on a real one."""
    device = CudaDevice(stream, 0, stream.clock)

    def sleep(cycles):
        stream.kernel(cycles * CYCLE_NS)

    def clock():
        stream.host_work(100)
        return stream.now / 1e9

    occupy = timing.occupying(device, share * step_ns / 1e9, sleep)
    return device, timing.slowed(step, share, occupy=occupy, clock=clock)


def test_a_step_that_is_not_to_be_slowed_is_left_as_it_is():
    def step():
        raise AssertionError("nobody asked for a step")

    assert timing.with_slowdown(step, 0.0, CpuDevice(), step_s=1.0) is step


@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_on_a_cpu_a_step_takes_its_share_longer(share):
    clock = Ticking()

    def step():
        clock.now += 2e-3

    slower = timing.slowed(step, share, clock=clock)
    before = clock.now
    for _ in range(10):
        slower()

    assert (clock.now - before) / 10 == pytest.approx((1 + share) * 2e-3, rel=0.005)


def test_a_longer_step_is_slowed_by_more():
    clock, lengths = Ticking(), iter([1e-3, 5e-3])

    def step():
        clock.now += next(lengths)

    slower = timing.slowed(step, 0.1, clock=clock)
    before = clock.now
    slower()
    middle = clock.now
    slower()

    assert middle - before == pytest.approx(1.1e-3, rel=0.01)
    assert clock.now - middle == pytest.approx(5.5e-3, rel=0.01)


def test_the_result_of_the_step_is_still_the_result():
    assert timing.with_slowdown(lambda: "loss", 0.05, CpuDevice(), step_s=1e-6)() == "loss"


def test_an_error_of_the_step_is_still_raised():
    def step():
        raise ValueError("boom")

    with pytest.raises(ValueError, match="boom"):
        timing.with_slowdown(step, 0.05, CpuDevice(), step_s=1e-6)()


def test_on_cuda_a_step_that_the_device_is_busy_with_takes_its_share_longer():
    stream = Stream()
    device, slower = on_cuda(stream, lambda: stream.kernel(STEP_NS), 0.05, step_ns=STEP_NS)

    block = device.time_block(slower, 100)

    assert block.step_s == pytest.approx(1.05 * STEP_NS / 1e9, rel=0.01)


def test_on_cuda_a_step_that_the_host_is_busy_with_takes_its_share_longer():
    stream = Stream()

    def step():
        stream.host_work(STEP_NS)
        stream.kernel(1_000)

    device, slower = on_cuda(stream, step, 0.05, step_ns=STEP_NS)

    block = device.time_block(slower, 100)

    assert block.step_s == pytest.approx(1.05 * STEP_NS / 1e9, rel=0.01)


def test_the_device_is_not_waited_for_after_a_slowed_step():
    stream = Stream()
    _, slower = on_cuda(stream, lambda: stream.kernel(STEP_NS), 0.05, step_ns=STEP_NS)
    stream.calls.clear()

    slower()

    assert stream.calls == ["kernel", "kernel"]


@pytest.mark.gpu
def test_a_real_gpu_takes_the_share_longer():
    import torch

    from ci_perf.measuring.device import open_device

    device = open_device("cuda:0")
    one = torch.randn(4096, 4096, device="cuda")

    def step():
        return one @ one

    device.time_block(step, 50)
    step_s = device.time_block(step, 50).step_s
    slower = timing.with_slowdown(step, 0.5, device, step_s=step_s)
    ratios = [
        device.time_block(slower, 50).step_s / device.time_block(step, 50).step_s for _ in range(5)
    ]

    assert sorted(ratios)[2] == pytest.approx(1.5, abs=0.15)
