"""Small traces as Kineto writes them: lists of events, in microseconds."""

from ci_perf.measuring.profiling import device_trace, trace_events

HOST, DEVICE = 100, 0


class Trace:
    """Builds a list of events. Moments are microseconds from the start of the trace."""

    def __init__(self, *, runtime="cuda", begin=0.0):
        self.events = []
        self._runtime, self._begin, self._number = runtime, begin, 0

    def span(self, category, name, start, end, *, thread=HOST, **arguments):
        """Add anything that lasts."""
        event = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": thread}
        event |= {"ts": self._begin + start, "dur": end - start, "args": arguments}
        self.events.append(event)
        return self

    def operator(self, name, start, end, **more):
        return self.span("cpu_op", name, start, end, **more)

    def phase(self, name, start, end, **more):
        return self.span("user_annotation", name, start, end, **more)

    def step(self, number, start, end):
        return self.phase(f"ProfilerStep#{number}", start, end)

    def wait(self, start, end, call="StreamSynchronize", **more):
        return self._call(call, start, end, **more)

    def kernel(self, launched, start, end, name="void gemm<float>(int)", **more):
        """Add a kernel, and the call that launches it in a microsecond; none for `None`."""
        return self._work("kernel", name, "LaunchKernel", launched, start, end, **more)

    def copy(self, launched, start, end, kind="HtoD (Pageable -> Device)", lasts=1.0, **more):
        return self._work(
            "gpu_memcpy", f"Memcpy {kind}", "MemcpyAsync", launched, start, end, lasts=lasts, **more
        )

    def digest(self, **more):
        return device_trace.digest(trace_events.of(self.events), **more)

    def idle(self):
        """Return microseconds by reason, whole ones."""
        device = self.digest(steps=1).device
        return {part.reason: round(part.idle_s * 1e6) for part in device.idle}

    def _call(self, name, start, end, *, thread=HOST, **arguments):
        self._number += 1
        arguments |= {"correlation": self._number}
        return self.span(
            "cuda_runtime", f"{self._runtime}{name}", start, end, thread=thread, **arguments
        )

    def _work(
        self, category, name, call, launched, start, end, *, lasts=1.0, thread=HOST, device=0
    ):
        self._number += 1
        if launched is not None:
            self._number -= 1
            self._call(call, launched, launched + lasts, thread=thread)
        return self.span(
            category, name, start, end, thread=7, device=device, correlation=self._number
        )
