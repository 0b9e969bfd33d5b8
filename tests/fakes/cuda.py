"""The slice of torch that checks of a GPU use, on a simulated stream with a virtual clock.

What runs on the host is an event of the profiler, while one runs.
"""

import contextlib
import math
import types

from tests.fakes.stream import Stream

H200_BYTES = 151397597184
BARE_UUID = "00000000-0000-0000-0000-000000000000"
_KERNEL_NS = 2_000


class Cuda(Stream):
    """`torch.cuda`; with `is_blocking`, each launch waits, as with CUDA_LAUNCH_BLOCKING=1."""

    def __init__(self, *, is_blocking=False, **more):
        self.trace, self._is_blocking = None, is_blocking
        super().__init__(**more)

    def kernel(self, duration_ns):
        begin = self.now
        super().kernel(duration_ns)
        self.note("cudaLaunchKernel", begin)
        if self._is_blocking:
            self.synchronize(0)

    def synchronize(self, device):
        begin = self.now
        super().synchronize(device)
        self.note("cudaDeviceSynchronize", begin)

    def note(self, name, begin):
        """Add an event from that moment until now."""
        if self.trace is not None:
            lasts = types.SimpleNamespace(start=begin / 1e3, end=self.now / 1e3)
            device_type = types.SimpleNamespace(name="CPU")
            event = types.SimpleNamespace(name=name, device_type=device_type, time_range=lasts)
            self.trace.append(event)

    def _sleep(self, cycles):
        self.kernel(cycles / 1.98)  # at 1980 MHz

    def is_available(self):
        return True

    def device_count(self):
        return 1

    current_device = set_device = lambda *_: 0

    def get_device_properties(self, _device):
        return types.SimpleNamespace(name="NVIDIA H200", uuid=BARE_UUID, total_memory=H200_BYTES)

    def empty_cache(self):
        self._cached = self._in_use


class Tensor:
    """Every operator on it is a kernel."""

    def __init__(self, torch, size):
        self._torch, self._free = torch, torch.take(size)

    def __del__(self):
        self._free()

    def add_(self, _number):
        self._torch.cuda.kernel(_KERNEL_NS)
        return self

    add = add_

    def item(self):
        self._torch.cuda.synchronize(0)
        return 2.0


class Torch:
    """`torch` itself. `take` gives memory, by default from the stream."""

    __version__, uint8 = "2.13.0+simulated", "uint8"
    version = types.SimpleNamespace(cuda="12.8", hip=None)
    backends = types.SimpleNamespace(cudnn=types.SimpleNamespace(version=lambda: 91002))

    def __init__(self, cuda=None, take=None):
        self.cuda = cuda or Cuda()
        self.take = take or self.cuda.allocate
        self.profiler = Profiler(self.cuda)

    def empty(self, *shape, dtype=None, device):
        del dtype, device
        return Tensor(self, math.prod(shape))

    zeros = ones = empty

    def device(self, name):
        return name


class Profiler:
    """`torch.profiler`; like the real one, it waits for the device when it ends."""

    ProfilerActivity = types.SimpleNamespace(CPU="cpu", CUDA="cuda")

    def __init__(self, cuda):
        self._cuda = cuda

    @contextlib.contextmanager
    def profile(self, *, activities):
        assert activities == ["cpu", "cuda"]
        self._cuda.trace = trace = []
        yield types.SimpleNamespace(events=lambda: trace)
        self._cuda.synchronize(0)
        self._cuda.trace = None

    @contextlib.contextmanager
    def record_function(self, name):
        begin = self._cuda.now
        yield
        self._cuda.note(name, begin)
