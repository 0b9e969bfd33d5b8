"""What every CUDA device must do: a simulated stream anywhere, torch's own under the mark gpu.

No absolute time stands here, only how times compare: the same holds on any GPU.
"""

import statistics
from dataclasses import dataclass
from typing import Any

import pytest

from ci_perf.measuring.device import CudaDevice, Device, open_device
from tests.fakes.stream import Stream

MIB = 2**20


@dataclass
class Bench:
    """A device, and work for it. ``kernel(n)`` keeps it busy n times as long as ``kernel(1)``.

    One kernel is long against its launch, a tiny one is short. ``allocate`` returns how to free.
    """

    device: Device
    kernel: Any
    tiny_kernel: Any
    allocate: Any


def simulated():
    stream = Stream(launch_ns=5_000)
    return Bench(
        device=CudaDevice(stream, 0, stream.clock),
        kernel=lambda times: stream.kernel(times * 5_000_000),
        tiny_kernel=lambda: stream.kernel(1_000),
        allocate=stream.allocate,
    )


def real():
    import torch

    cuda = open_device("cuda:0")
    number = torch.zeros(1, device="cuda:0")
    bench = Bench(
        device=cuda,
        kernel=lambda times: torch.cuda._sleep(times * 10_000_000),  # cycles: some milliseconds
        tiny_kernel=lambda: number.add_(1),
        allocate=allocate_for_real,
    )
    # Kernels are loaded lazily, and a GPU that was idle takes a while to reach its clocks.
    cuda.time_block(lambda: (bench.kernel(10), bench.tiny_kernel()), 20)
    torch.cuda.empty_cache()
    return bench


def allocate_for_real(size):
    import torch

    held = [torch.empty(size, dtype=torch.uint8, device="cuda:0")]
    return held.clear


@pytest.fixture(params=["simulated", pytest.param("real", marks=pytest.mark.gpu)])
def bench(request):
    return {"simulated": simulated, "real": real}[request.param]()


def test_a_block_that_keeps_the_device_busy_is_its_steps_and_queued_long_before_it_is_done(bench):
    block = bench.device.time_block(lambda: bench.kernel(1), 10)

    assert block.issue_s < 0.2 * block.step_s
    assert block.device_s == pytest.approx(block.step_s, rel=0.1)
    assert len(block.steps_s) == 10
    assert sum(block.steps_s) == pytest.approx(10 * block.device_s, rel=0.01)


def test_a_launch_bound_step_takes_as_long_as_it_takes_to_queue(bench):
    def step():
        for _ in range(500):
            bench.tiny_kernel()

    blocks = [bench.device.time_block(step, 10) for _ in range(10)]

    assert statistics.median(block.issue_s / block.step_s for block in blocks) > 0.5


def test_a_step_with_more_work_takes_longer(bench):
    work = iter([1, 1, 8, 1])

    block = bench.device.time_block(lambda: bench.kernel(next(work)), 4)

    assert block.steps_s.index(max(block.steps_s)) == 2
    assert block.steps_s[2] > 4 * block.steps_s[1]


def test_work_that_was_queued_before_is_not_charged_to_a_block(bench):
    alone = bench.device.time_block(lambda: bench.kernel(1), 4)
    bench.kernel(50)

    block = bench.device.time_block(lambda: bench.kernel(1), 4)

    assert block.step_s < 3 * alone.step_s
    assert block.device_s < 3 * alone.device_s


def test_the_events_of_a_long_block_serve_a_short_one(bench):
    bench.device.time_block(lambda: bench.kernel(1), 20)

    alone = bench.device.time_block(lambda: bench.kernel(2), 1)
    again = bench.device.time_block(lambda: bench.kernel(2), 5)

    assert alone.device_s == pytest.approx(again.device_s, rel=0.5)


def test_a_block_after_one_that_failed_is_like_any_other(bench):
    before = bench.device.time_block(lambda: bench.kernel(1), 4)
    work = iter([50, 50])
    with pytest.raises(StopIteration):
        bench.device.time_block(lambda: bench.kernel(next(work)), 4)

    after = bench.device.time_block(lambda: bench.kernel(1), 4)

    assert after.step_s < 3 * before.step_s
    assert max(after.steps_s) < 3 * max(before.steps_s)


def test_stamps_next_to_each_other_part_a_step_and_tell_queueing_from_doing(bench):
    first = bench.device.stamp()
    bench.kernel(2)
    second = bench.device.stamp()
    bench.kernel(6)
    third = bench.device.stamp()
    bench.device.synchronize()

    _, short_s = bench.device.between(first, second)
    host_s, long_s = bench.device.between(second, third)

    assert 2 * short_s < long_s < 5 * short_s
    assert host_s < 0.2 * long_s


def test_stamps_cannot_be_read_before_the_device_got_there(bench):
    begin = bench.device.stamp()
    bench.kernel(50)
    end = bench.device.stamp()

    with pytest.raises(RuntimeError, match=r"not ready|must be completed"):
        bench.device.between(begin, end)


def test_a_peak_before_the_reset_is_forgotten(bench):
    bench.allocate(64 * MIB)()
    bench.device.reset_peaks()
    start = bench.device.memory()[0]

    bench.allocate(16 * MIB)()

    end = bench.device.memory()[0]
    assert end.peak_allocated_bytes - start.peak_allocated_bytes == 16 * MIB
    assert 0 < end.peak_allocated_bytes <= end.peak_active_bytes <= end.peak_reserved_bytes


def test_what_is_held_at_the_reset_counts(bench):
    free = bench.allocate(64 * MIB)
    bench.device.reset_peaks()

    memory = bench.device.memory()[0]

    free()
    assert memory.peak_allocated_bytes >= 64 * MIB
