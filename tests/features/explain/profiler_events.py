"""Small traces as torch.profiler gives them: its own events, with moments in microseconds."""

from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEvent

from ci_perf.features.explain.worker import timeline

HOST = 100


class Trace:
    """Builds a list of events. Moments are microseconds from the start of the trace."""

    def __init__(self, *, runtime="cuda"):
        self._events = []
        self._runtime, self._number = runtime, 0

    def span(self, name, start, end, *, thread=HOST, number=0, **more):
        """Add anything that lasts."""
        event = FunctionEvent(number, name, thread, start, end, stack=[], use_device="cuda", **more)
        self._events.append(event)
        return self

    def operator(self, name, start, end, **more):
        return self.span(name, start, end, **more)

    def phase(self, name, start, end, **more):
        return self.span(name, start, end, is_user_annotation=True, **more)

    def step(self, number, start, end):
        return self.phase(f"ProfilerStep#{number}", start, end)

    def wait(self, start, end, call="StreamSynchronize"):
        self._number += 1
        return self.span(f"{self._runtime}{call}", start, end, number=self._number)

    def kernel(self, launched, start, end, name="void gemm<float>(int)", **more):
        """Add a kernel, and the call that launches it in a microsecond; none for `None`."""
        return self._work(name, "LaunchKernel", launched, start, end, **more)

    def copy(self, launched, start, end, kind="HtoD (Pageable -> Device)", lasts=1.0, **more):
        name = f"Memcpy {kind}"
        return self._work(name, "MemcpyAsync", launched, start, end, lasts=lasts, **more)

    def read(self, *, steps=1):
        """Return what the host and the device did."""
        events = EventList(self._events, use_device="cuda")
        events._build_tree()
        around = {each.id: each.cpu_parent for each in events if each.device_type.name == "CPU"}
        for work in (each for each in events if each.device_type.name == "CUDA"):
            if operator := around.get(work.id):
                lasts = work.time_range.end - work.time_range.start
                operator.append_kernel(work.name, work.device_index, lasts)
        return timeline.read_times(events, events.key_averages(), steps)

    def device(self, **more):
        return self.read(**more)[1]

    def idle(self):
        """Return microseconds by reason, whole ones."""
        return {part.reason: round(part.idle_s * 1e6) for part in self.device().idle}

    def _work(self, name, call, launched, start, end, *, lasts=1.0, thread=HOST, device=0):
        self._number += 1
        if launched is not None:
            called = f"{self._runtime}{call}"
            self.span(called, launched, launched + lasts, thread=thread, number=self._number)
        more = {"device_type": DeviceType.CUDA, "device_index": device, "number": self._number}
        return self.span(name, start, end, thread=7, **more)
