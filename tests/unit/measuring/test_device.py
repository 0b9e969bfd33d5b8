"""Both devices to the nanosecond; what a real GPU must also do is in test_device_contract.py."""

import pytest

from ci_perf.measuring import device
from ci_perf.measuring.device import CpuDevice, CudaDevice
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


def test_each_step_lies_between_two_events():
    stream = Stream(launch_ns=5_000, record_ns=0)
    kernels = iter([1_000_000, 3_000_000, 2_000_000])

    block = time_block(stream, lambda: stream.kernel(next(kernels)), 3)

    assert ns(*block.steps_s) == [1_005_000, 3_000_000, 2_000_000]


def test_a_launch_bound_step_is_as_long_as_the_host_takes_to_queue_it():
    stream = Stream(launch_ns=5_000, record_ns=1_000)

    block = time_block(stream, lambda: [stream.kernel(1_000) for _ in range(100)], 10)

    assert ns(block.issue_s, block.step_s, block.device_s) == [500_000, 501_100, 501_000]


def test_the_host_is_timed_on_an_empty_queue():
    stream = Stream(launch_ns=5_000)
    stream.kernel(9_000_000)

    block = time_block(stream, lambda: stream.kernel(2_000_000), 3)

    assert ns(block.issue_s) == [5_000]


def test_a_device_that_waits_for_the_host_is_timed_while_it_waits():
    stream = Stream(launch_ns=0, record_ns=0)

    def step():
        stream.host_work(3_000_000)
        stream.kernel(1_000_000)

    block = time_block(stream, step, 2)

    # The host is at it for 6 ms, and the device finishes the last kernel 1 ms later.
    assert ns(block.step_s, block.device_s, block.issue_s) == [3_500_000, 3_500_000, 3_000_000]


def test_events_are_made_before_the_block():
    cheap, dear = Stream(create_ns=0), Stream(create_ns=50_000_000)

    blocks = [
        time_block(stream, lambda stream=stream: stream.kernel(1_000), 5)
        for stream in (cheap, dear)
    ]

    assert blocks[0] == blocks[1]


def test_a_block_waits_before_it_and_after_it_and_never_within():
    stream = Stream()

    time_block(stream, lambda: stream.kernel(1_000), 3)

    made = ["record"] * 4
    timed = ["record", "kernel", "record", "kernel", "record", "kernel", "record"]
    assert stream.calls == [*made, "synchronize", *timed, "synchronize"]


def test_a_timer_that_forgets_to_wait_is_caught():
    class Hasty(CudaDevice):
        def synchronize(self):
            """Forget it."""

    stream = Stream()

    with pytest.raises(RuntimeError, match="not ready"):
        time_block(stream, lambda: stream.kernel(1_000), 3, Hasty)


def test_a_timer_that_waits_only_before_the_block_is_caught():
    class Once(CudaDevice):
        waited = False

        def synchronize(self):
            if not self.waited:
                super().synchronize()
            self.waited = True

    stream = Stream()

    with pytest.raises(RuntimeError, match="not ready"):
        time_block(stream, lambda: stream.kernel(1_000), 3, Once)


def test_a_second_block_makes_no_new_events():
    stream = Stream()
    cuda = CudaDevice(stream, 0, stream.clock)
    cuda.time_block(lambda: stream.kernel(1_000), 5)
    stream.calls.clear()

    cuda.time_block(lambda: stream.kernel(1_000), 5)

    assert stream.calls.count("record") == 6


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

    block = CpuDevice(lambda: next(ticks)).time_block(lambda: None, 3)

    assert ns(block.step_s, *block.steps_s) == [4, 3, 7, 2]


def test_a_cpu_has_no_device_times_rather_than_short_ones():
    block = CpuDevice().time_block(lambda: None, 3)

    assert (block.device_s, block.issue_s) == (None, None)


def test_a_cpu_tells_the_time_between_two_stamps():
    ticks = iter([5, 25])
    cpu = CpuDevice(lambda: next(ticks))

    host_s, device_s = cpu.between(cpu.stamp(), cpu.stamp())

    assert (ns(host_s), device_s) == ([20], None)


def test_a_cpu_has_no_device_memory_rather_than_none_of_it():
    cpu: device.Device = CpuDevice()

    assert cpu.memory() == ()
    assert device.highest(cpu.memory()) is None


def test_what_another_allocator_does_not_count_is_absent_and_not_zero():
    stream = Stream(allocator="cudaMallocAsync")
    cuda = CudaDevice(stream, 0, stream.clock)
    stream.allocate(1000)

    (memory,) = cuda.memory()

    assert (memory.peak_allocated_bytes, memory.peak_reserved_bytes) == (1000, 1000)
    assert (memory.alloc_retries, memory.out_of_memory) == (None, None)


def test_peaks_that_another_allocator_does_not_tell_are_absent():
    stream = Stream(allocator="cudaMallocAsync")

    (memory,) = CudaDevice(stream, 0, stream.clock).memory()

    assert memory.peak_allocated_bytes is None
    assert memory.peak_reserved_bytes is None


def test_torchs_own_allocator_may_count_nothing():
    stream = Stream()

    (memory,) = CudaDevice(stream, 0, stream.clock).memory()

    assert (memory.peak_allocated_bytes, memory.out_of_memory) == (0, 0)


def test_every_card_that_a_process_serves_has_memory_of_its_own():
    stream = Stream()

    memory = CudaDevice(stream, 1, stream.clock, cards=3).memory()

    assert len(memory) == 3
    asked = [call for call in stream.calls if call.startswith("memory")]
    assert asked == ["memory of 1", "memory of 2", "memory of 3"]


def test_of_several_cards_the_highest_counts_for_each_number():
    first = a_device_memory(peak_allocated_bytes=5, peak_reserved_bytes=9, out_of_memory=None)
    second = a_device_memory(peak_allocated_bytes=7, peak_reserved_bytes=8, out_of_memory=None)

    found = device.highest([first, second])

    assert found == a_device_memory(
        peak_allocated_bytes=7, peak_reserved_bytes=9, out_of_memory=None
    )


def test_a_device_that_nobody_can_wait_for_is_refused():
    with pytest.raises(ValueError, match="device 'mps': expected 'cpu' or 'cuda:N'"):
        device.open_device("mps")
