"""Both devices to the nanosecond; what a real GPU must also do is in test_device_contract.py."""

import pytest

from ci_perf.measuring import device
from ci_perf.measuring.device import CudaDevice, Device
from tests.fakes.stream import Stream
from tests.runs import a_device_memory


def ns(*seconds):
    """Whole nanoseconds: the simulated clock knows no others."""
    return [round(value * 1e9, 3) for value in seconds]


def time_block(stream, step, count, kind=CudaDevice):
    return kind(stream, 0, stream.clock).time_block(step, count)


def test_a_device_bound_block_takes_what_its_kernels_take():
    stream = Stream(launch_ns=5_000, record_ns=1_000)

    block = time_block(stream, lambda: stream.kernel(2_000_000), 10)

    assert ns(block.step_s, block.device_s, block.issue_s) == [2_000_600, 2_000_500, 5_000]


def test_a_device_that_waits_for_the_host_is_timed_while_it_waits():
    stream = Stream(launch_ns=0, record_ns=0)

    def step():
        stream.host_work(3_000_000)
        stream.kernel(1_000_000)

    block = time_block(stream, step, 2)

    # The host is at it for 6 ms, and the device finishes the last kernel 1 ms later.
    assert ns(block.step_s, block.device_s, block.issue_s) == [3_500_000, 3_500_000, 3_000_000]


def timed_twice(create_ns):
    """Time two blocks; return the first, and the calls of the second."""
    stream = Stream(create_ns=create_ns)
    cuda = CudaDevice(stream, 0, stream.clock)
    first = cuda.time_block(lambda: stream.kernel(1_000), 5)
    stream.calls.clear()
    cuda.time_block(lambda: stream.kernel(1_000), 5)
    return first, stream.calls


def test_events_are_made_before_the_block_and_once():
    (quick, _), (slow, calls) = map(timed_twice, (0, 50_000_000))

    assert quick == slow
    assert calls.count("record") == 6


def test_a_block_waits_before_it_and_after_it_and_never_within():
    stream = Stream()

    time_block(stream, lambda: stream.kernel(1_000), 3)

    made = ["record"] * 4
    timed = ["record", "kernel", "record", "kernel", "record", "kernel", "record"]
    assert stream.calls == [*made, "synchronize", *timed, "synchronize"]


@pytest.mark.parametrize("waits", [0, 1], ids=["never", "only before the block"])
def test_a_timer_that_does_not_wait_is_caught(waits):
    class Hasty(CudaDevice):
        waited = 0

        def synchronize(self):
            if self.waited < waits:
                super().synchronize()
            self.waited += 1

    stream = Stream()

    with pytest.raises(RuntimeError, match="not ready"):
        time_block(stream, lambda: stream.kernel(1_000), 3, Hasty)


def test_a_stamp_costs_no_wait():
    stream = Stream(launch_ns=5_000, record_ns=0, create_ns=0)
    cuda = CudaDevice(stream, 0, stream.clock)
    begin = cuda.stamp()
    stream.kernel(2_000_000)
    end = cuda.stamp()
    cuda.synchronize()

    host_s, device_s = cuda.between(begin, end)

    assert ns(host_s, device_s) == [5_000, 2_005_000]


def test_a_step_that_the_clock_does_not_see_is_shorter_than_its_tick_but_not_nothing():
    stream = Stream(record_ns=0)

    block = time_block(stream, lambda: None, 3)

    assert ns(block.step_s, block.device_s, block.issue_s, *block.steps_s) == [1] * 6


def test_a_cpu_times_a_block_and_each_step_by_its_clock():
    ticks = iter([0, 3, 10, 12])

    block = Device(lambda: next(ticks)).time_block(lambda: None, 3)

    assert ns(block.step_s, *block.steps_s) == [4, 3, 7, 2]
    assert (block.device_s, block.issue_s) == (None, None)


def test_a_cpu_tells_the_time_between_two_stamps():
    ticks = iter([5, 25])
    cpu = Device(lambda: next(ticks))

    host_s, device_s = cpu.between(cpu.stamp(), cpu.stamp())

    assert (ns(host_s), device_s) == ([20], None)


def test_a_cpu_has_no_device_memory_rather_than_none_of_it():
    cpu = Device()

    assert cpu.memory() == ()
    assert device.highest(cpu.memory()) is None


@pytest.mark.parametrize(
    ("allocator", "allocated", "expected"),
    [
        ("cudaMallocAsync", 1000, (1000, 1000, None, None)),
        ("cudaMallocAsync", 0, (None, None, None, None)),
        ("native", 0, (0, 0, 0, 0)),
    ],
)
def test_what_an_allocator_does_not_count_is_absent_and_not_zero(allocator, allocated, expected):
    stream = Stream(allocator=allocator)
    if allocated:
        stream.allocate(allocated)

    (memory,) = CudaDevice(stream, 0, stream.clock).memory()

    peaks = memory.peak_allocated_bytes, memory.peak_reserved_bytes
    assert (*peaks, memory.alloc_retries, memory.out_of_memory) == expected


def test_every_card_that_a_process_serves_has_memory_of_its_own():
    stream = Stream()

    memory = CudaDevice(stream, 1, stream.clock, cards=3).memory()

    assert len(memory) == 3
    asked = [call for call in stream.calls if call.startswith("memory")]
    assert asked == ["memory of 1", "memory of 2", "memory of 3"]


def test_of_several_cards_the_highest_counts_for_each_number():
    first, second, highest = (
        a_device_memory(
            peak_allocated_bytes=allocated, peak_reserved_bytes=reserved, out_of_memory=None
        )
        for allocated, reserved in [(5, 9), (7, 8), (7, 9)]
    )

    assert device.highest([first, second]) == highest


def test_a_device_that_nobody_can_wait_for_is_refused():
    with pytest.raises(ValueError, match="device 'mps': expected 'cpu' or 'cuda:N'"):
        device.open_device("mps")
