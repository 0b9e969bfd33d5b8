"""The slice of torch that probes use, on simulated streams with a virtual clock in nanoseconds.

Products take as long as their rates say, `kernel_ns` is what any other kernel takes. What runs is
traced as Kineto would, while a profiler runs. A tensor holds one number for all of its places.
"""

import contextlib
import json
import math
import types
from pathlib import Path

from tests.fakes.stream import Stream
from tests.kineto import Trace

GIB = 2**30
BARE_UUID = "00000000-0000-0000-0000-000000000000"


class OutOfMemoryError(RuntimeError):
    pass


class Cuda(Stream):
    """`torch.cuda` with several streams; what the host does between two calls takes no time."""

    OutOfMemoryError = OutOfMemoryError

    def __init__(self, *, clock_mhz=1980, kernel_ns=2_000, total=8 * GIB, **more):
        self._queues, self._current = {0: 0}, 0
        self.clock_mhz, self.kernel_ns, self.total = clock_mhz, kernel_ns, total
        self.name, self.uuid = "NVIDIA H200", BARE_UUID
        self.blocking = False
        self.trace = self.graph_of_capture = None
        self.ooms = 0
        self.memory: object = None
        self.waited = lambda: None
        super().__init__(**more)

    @property
    def _free_at(self):
        return self._queues[self._current]

    @_free_at.setter
    def _free_at(self, moment):
        self._queues[self._current] = moment

    def kernel(self, duration_ns, effect=lambda: None):
        if self.graph_of_capture is not None:
            self.graph_of_capture.work.append((duration_ns, effect))
            return
        launched, begin = self.now, max(self._free_at, self.now + self._launch_ns)
        super().kernel(duration_ns)
        effect()
        if self.trace:
            lasts = self._launch_ns / 1e3
            self.trace.operator("aten::add_", launched / 1e3, launched / 1e3 + lasts)
            self.trace.kernel(launched / 1e3, begin / 1e3, self._free_at / 1e3)
        if self.blocking:
            self.synchronize(0)

    def synchronize(self, _device):
        begin = self.now
        self.now = self.synchronised_at = max(self.now, *self._queues.values())
        self.calls.append("synchronize")
        if self.trace:
            self.trace.wait(begin / 1e3, self.now / 1e3, call="DeviceSynchronize")
        self.waited()

    def _sleep(self, cycles):
        self.kernel(cycles / self.clock_mhz * 1e3)

    def Stream(self, _device):  # noqa: N802  torch's name
        self._queues[len(self._queues)] = 0
        return types.SimpleNamespace(number=len(self._queues) - 1, wait_stream=lambda _other: None)

    @contextlib.contextmanager
    def stream(self, other):
        before, self._current = self._current, other.number
        yield
        self._current = before

    def current_stream(self):
        number = self._current

        def wait_stream(other):
            self._queues[number] = max(self._queues[number], self._queues[other.number])

        return types.SimpleNamespace(number=number, wait_stream=wait_stream)

    def CUDAGraph(self):  # noqa: N802  torch's name
        return Graph(self)

    @contextlib.contextmanager
    def graph(self, graph):
        self.graph_of_capture = graph
        yield
        self.graph_of_capture = None

    def device_count(self):
        return 1

    def get_device_properties(self, _device):
        return types.SimpleNamespace(name=self.name, uuid=self.uuid, total_memory=self.total)

    def take(self, size):
        if self._in_use + size > self.total:
            self.ooms += 1
            raise OutOfMemoryError
        return self.allocate(size)

    def memory_allocated(self, _device):
        return self._in_use

    def mem_get_info(self, _device):
        return self.total - self._cached, self.total

    def empty_cache(self):
        self._cached = self._in_use

    def memory_stats(self, device):
        return super().memory_stats(device) | {"num_ooms": self.ooms}

    def reset_accumulated_memory_stats(self, _device):
        self.ooms = 0


class Graph:
    def __init__(self, cuda):
        self._cuda = cuda
        self.work = []

    def replay(self):
        def effect():
            for _, of_kernel in self.work:
                of_kernel()

        self._cuda.kernel(sum(duration for duration, _ in self.work), effect)


class Tensor:
    """Every operator on it is a kernel."""

    def __init__(self, torch, shape, dtype, value=1.0):
        self.torch, self.shape, self.dtype, self.value = torch, shape, dtype, value
        size = math.prod(shape)
        self._free = torch.cuda.take(size) if torch.counts_memory else lambda: None

    def __del__(self):
        if hasattr(self, "_free"):
            self._free()

    def _changed(self, change):
        def effect():
            self.value = change(self.value)

        self.torch.cuda.kernel(self.torch.cuda.kernel_ns, effect)
        return self

    def add_(self, number):
        return self._changed(lambda value: value + number)

    def mul_(self, number):
        return self._changed(lambda value: value * number)

    def copy_(self, other):
        return self._changed(lambda _: other.value)

    def clone(self):
        return Tensor(self.torch, self.shape, self.dtype, self.value)

    def to(self, dtype):
        return Tensor(self.torch, self.shape, dtype)

    def __sub__(self, other):
        return Tensor(self.torch, self.shape, self.dtype, self.value - other.value)

    def abs(self):
        return Tensor(self.torch, self.shape, self.dtype, abs(self.value))

    def max(self):
        return self

    def item(self):
        self.torch.cuda.synchronize(0)
        return self.value


class Torch:
    """`torch` itself; FLOP/s by precision are `rates`, and `ones_gain` of them those of ones."""

    def __init__(self, cuda=None, *, counts_memory=False, **rates):
        self.cuda = cuda or Cuda()
        self.counts_memory = counts_memory
        self.rates = {"fp32": 50e12, "tf32": 400e12, "fp16": 700e12, "bf16": 700e12} | rates
        self.slowdown = lambda: 1.0
        self.ones_gain = 1.0
        self.float32, self.float16, self.bfloat16 = "fp32", "fp16", "bf16"
        self.uint8 = "uint8"
        self._precision, self._autocast = "highest", None
        self.profiler = Profiler(self.cuda)

    def Generator(self, device):  # noqa: N802  torch's name
        del device
        return types.SimpleNamespace(manual_seed=lambda _seed: None)

    def empty(self, *shape, dtype="fp32", device, value=0.5):
        del device
        return Tensor(self, _flat(shape), dtype, value)

    def randn(self, *shape, generator=None, **more):
        del generator
        return self.empty(*shape, **more)

    def ones(self, *shape, **more):
        return self.empty(*shape, value=1.0, **more)

    zeros = empty

    def empty_like(self, other):
        return Tensor(self, other.shape, other.dtype)

    def mm(self, left, _right, out=None):
        dtype = self._autocast or left.dtype
        is_tf32 = dtype == "fp32" and self._precision == "high"
        rate = self.rates["tf32" if is_tf32 else dtype] / self.slowdown()
        rate *= self.ones_gain if left.value == 1.0 else 1.0
        self.cuda.kernel(2 * left.shape[0] ** 3 / rate * 1e9)
        return out or Tensor(self, left.shape, dtype)

    def set_float32_matmul_precision(self, precision):
        self._precision = precision

    def get_float32_matmul_precision(self):
        return self._precision

    @contextlib.contextmanager
    def autocast(self, _kind, *, dtype):
        self._autocast = dtype
        yield
        self._autocast = None

    def inference_mode(self):
        return contextlib.nullcontext()

    def get_num_threads(self):
        return 1


class Profiler:
    """`torch.profiler`; like the real one, it waits for the device when it ends."""

    ProfilerActivity = types.SimpleNamespace(CPU="cpu", CUDA="cuda")

    def __init__(self, cuda):
        self._cuda = cuda
        self.is_refused = False

    @contextlib.contextmanager
    def profile(self, *, activities):
        assert activities == ["cpu", "cuda"]
        self._cuda.trace = trace = Trace()

        def export_chrome_trace(path):
            events = [event for event in trace.events if not self.is_refused or _is_host(event)]
            Path(path).write_text(json.dumps({"traceEvents": events}))

        yield types.SimpleNamespace(export_chrome_trace=export_chrome_trace)
        self._cuda.synchronize(0)
        self._cuda.trace = None

    @contextlib.contextmanager
    def record_function(self, name):
        begin = self._cuda.now
        yield
        self._cuda.trace.phase(name, begin / 1e3, self._cuda.now / 1e3)


def _is_host(event):
    return event["cat"] in {"cpu_op", "user_annotation"}


def _flat(shape):
    return shape[0] if isinstance(shape[0], tuple) else shape
