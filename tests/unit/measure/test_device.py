import pytest

from ci_perf.measure.device import CpuDevice, CudaDevice, Device


class Stream:
    """The slice of torch.cuda that we use: one in-order stream with a virtual clock.

    A kernel is only queued when it is launched; the device works through the queue while the host
    goes on, and the host catches up when it synchronises. An event that has not been reached yet
    has no time, as on a real device.
    """

    def __init__(self, launch_s):
        self.host = self.busy_until = 0.0
        self._launch_s = launch_s

    def kernel(self, seconds):
        self.host += self._launch_s
        self.busy_until = max(self.busy_until, self.host) + seconds

    def synchronize(self, _device=None):
        self.host = max(self.host, self.busy_until)

    def Event(self, *, enable_timing):  # noqa: N802  torch's name
        assert enable_timing
        return Event(self)


class Event:
    def __init__(self, stream):
        self._stream = stream

    def record(self):
        self.at = max(self._stream.busy_until, self._stream.host)

    def synchronize(self):
        self._stream.host = max(self._stream.host, self.at)

    def elapsed_time(self, end):
        if self._stream.host < end.at:
            raise RuntimeError("CUDA error: device not ready")
        return (end.at - self.at) * 1e3


def test_a_block_on_the_device_takes_what_its_kernels_take():
    stream = Stream(launch_s=5e-6)

    step_s = CudaDevice(stream, 0).time_block(lambda: stream.kernel(2e-3), 10)

    assert step_s == pytest.approx((10 * 2e-3 + 5e-6) / 10, abs=1e-9)


def test_work_queued_before_the_block_is_not_charged_to_it():
    stream = Stream(launch_s=0.0)
    stream.kernel(7.0)

    assert CudaDevice(stream, 0).time_block(lambda: stream.kernel(1.0), 1) == pytest.approx(1.0)


def test_a_launch_bound_step_takes_what_its_launches_take():
    stream = Stream(launch_s=5e-6)

    step_s = CudaDevice(stream, 0).time_block(lambda: stream.kernel(1e-6), 1000)

    assert step_s == pytest.approx(5e-6, rel=0.01)


def test_the_simulated_stream_catches_a_missing_synchronisation():
    stream = Stream(launch_s=0.0)
    start, end = stream.Event(enable_timing=True), stream.Event(enable_timing=True)
    start.record()
    stream.kernel(1.0)
    end.record()

    with pytest.raises(RuntimeError, match="not ready"):
        start.elapsed_time(end)


def test_a_cpu_has_no_device_memory_rather_than_none_of_it():
    device: Device = CpuDevice()

    assert device.memory() is None
