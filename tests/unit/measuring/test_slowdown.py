"""Both devices on a virtual clock: no machine here has to be quiet."""

import pytest

from ci_perf.measuring import timing
from ci_perf.measuring.device import CudaDevice, Device
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

    occupy = timing.occupy_device(device, share * step_ns / 1e9, sleep)
    return device, timing.slow_step(step, share, occupy=occupy, clock=clock)


def test_a_step_that_is_not_to_be_slowed_is_left_as_it_is():
    def step():
        raise AssertionError("nobody asked for a step")

    assert timing.with_slowdown(step, 0.0, Device(), step_s=1.0) is step


@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
def test_on_a_cpu_each_step_takes_its_share_longer(share):
    clock, lengths_s = Ticking(), [2e-3, 10e-3, 2e-3]
    lengths = iter(lengths_s)

    def step():
        clock.now += next(lengths)

    slower = timing.slow_step(step, share, clock=clock)
    for length_s in lengths_s:
        before = clock.now
        slower()

        assert clock.now - before == pytest.approx((1 + share) * length_s, rel=0.005)


def test_the_result_or_error_of_the_step_is_still_its_result_or_error():
    def step():
        raise ValueError("boom")

    assert timing.with_slowdown(lambda: "loss", 0.05, Device(), step_s=1e-6)() == "loss"
    with pytest.raises(ValueError, match="boom"):
        timing.with_slowdown(step, 0.05, Device(), step_s=1e-6)()


@pytest.mark.parametrize(
    ("host_ns", "device_ns"), [(0, STEP_NS), (STEP_NS, 1_000)], ids=["device-bound", "host-bound"]
)
def test_on_cuda_a_step_takes_its_share_longer_and_nobody_waits(host_ns, device_ns):
    stream = Stream()

    def step():
        stream.host_work(host_ns)
        stream.kernel(device_ns)

    device, slower = on_cuda(stream, step, 0.05, step_ns=STEP_NS)
    stream.calls.clear()
    slower()
    assert stream.calls == ["kernel", "kernel"]

    block = device.time_block(slower, 100)
    assert block.step_s == pytest.approx(1.05 * STEP_NS / 1e9, rel=0.01)


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
