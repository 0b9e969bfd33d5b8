"""The slice of torch.cuda that is used: one in-order stream, a virtual clock in nanoseconds.

A kernel is only queued when it is launched; the device works through the queue while the host goes
on, and the host catches up when it synchronises. An event that the host has not waited for has no
time yet, however long ago it was: on a real device, too, that would only be luck.
"""


class Stream:
    def __init__(self, *, launch_ns=5_000, record_ns=1_000, create_ns=20_000, allocator="native"):
        self.now = 0
        self.allocator = allocator
        self.calls = []
        self.synchronised_at = -1
        self._launch_ns = launch_ns
        self.record_ns = record_ns
        self.create_ns = create_ns
        self._free_at = 0
        self._in_use = self._peak = self._cached = self._cached_peak = 0

    def clock(self):
        return self.now

    def host_work(self, duration_ns):
        self.now += duration_ns

    def kernel(self, duration_ns):
        self.now += self._launch_ns
        self._free_at = self.reached() + duration_ns
        self.calls.append("kernel")

    def reached(self):
        """When the device gets to what is queued now."""
        return max(self._free_at, self.now)

    def allocate(self, size):
        """Take memory; return how to give it back. What is given back stays reserved."""
        self._in_use += size
        self._peak = max(self._peak, self._in_use)
        self._cached = max(self._cached, self._in_use)
        self._cached_peak = max(self._cached_peak, self._cached)

        def free():
            self._in_use -= size

        return free

    def Event(self, *, enable_timing):  # noqa: N802  torch's name
        assert enable_timing
        return Event(self)

    def synchronize(self, _device):
        self.now = self.synchronised_at = self.reached()
        self.calls.append("synchronize")

    def get_allocator_backend(self):
        return self.allocator

    def memory_stats(self, device):
        self.calls.append(f"memory of {device}")
        return {
            "allocated_bytes.all.peak": self._peak,
            "active_bytes.all.peak": self._peak,
            "reserved_bytes.all.peak": self._cached_peak,
            "num_alloc_retries": 0,
            "num_ooms": 0,
        }

    def reset_peak_memory_stats(self, _device):
        self._peak, self._cached_peak = self._in_use, self._cached

    def reset_accumulated_memory_stats(self, _device):
        pass


class Event:
    """Like torch's: made when it is first recorded, moved when it is recorded again."""

    def __init__(self, stream):
        self._stream = stream
        self._at = None

    def record(self):
        self._stream.now += self._stream.record_ns + (
            self._stream.create_ns if self._at is None else 0
        )
        self._at = self._stream.reached()
        self._stream.calls.append("record")

    def elapsed_time(self, end_event):
        for event in (self, end_event):
            if event._at is None:
                raise ValueError("Both events must be recorded before calculating elapsed time.")
            if event._at > self._stream.synchronised_at:
                raise RuntimeError("CUDA error: device not ready")
        return (end_event._at - self._at) / 1e6
