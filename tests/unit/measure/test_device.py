"""Both devices to the nanosecond; what a real GPU must also do is in test_device_contract.py."""

import pytest

from ci_perf.measure import device
from ci_perf.measure.device import CpuDevice, CudaDevice
from tests.fakes.stream import Stream


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

    assert cpu.memory() is None


def test_a_device_that_nobody_can_wait_for_is_refused():
    with pytest.raises(ValueError, match="device 'mps': expected 'cpu' or 'cuda:N'"):
        device.open_device("mps")
