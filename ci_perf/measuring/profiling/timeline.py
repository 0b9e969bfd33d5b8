"""Trace some steps with torch.profiler: operators with their shapes, phases, and the device.

The last pass of a launch that profiles: the profiler has crashed processes, and CUPTI is not to be
had everywhere. What it takes is short of 200,000 events, which a viewer opens and a person reads.
"""

import contextlib
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from ci_perf.measuring.device import CpuDevice
from ci_perf.measuring.instruments import Instruments
from ci_perf.measuring.profiling import device_trace, kept_trace, trace_events
from ci_perf.measuring.profiling.passes import STEPS, Passes
from ci_perf.model.step_profile import StepProfile
from ci_perf.model.task import TRACE, Tracing

MOST_STEPS: Final = 20
MOST_EVENTS: Final = 200_000
# Steps that the profiler skips, and those that it throws away: it is slower at first.
WAIT, WARMUP = 1, 2
# How long tracing may take, and which share of the time that is left to the launch.
_MOST_S: Final = 15.0
_SHARE: Final = 0.4
# To write and to read the events of a step takes as long again as to trace it.
_READING: Final = 2.0
# Kineto writes 400 to 800 bytes an event; names are as long as measured code likes.
_MOST_BYTES: Final = 400_000_000
_RAW: Final = "trace.json"
_ENDED: Final = (
    "the process ended while torch's profiler ran: it crashed, or the step runs a profiler, too"
)
_STACKS: Final = "it was traced with stacks, which take so long that its times say little"
_NO_TORCH: Final = "torch was not imported"
_NO_DEVICE: Final = (
    "the profiler has seen no work of the GPU: CUPTI is missing or refused "
    "(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES), or another profiler has it"
)


class _NoTraceError(Exception):
    """Why there is no trace, in a sentence."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Traces the steps of `passes`, in files of `folder`."""

    passes: Passes
    folder: Path
    root: str
    keeps: bool
    tracing: Tracing = field(default_factory=Tracing)

    def missing(self, profile: StepProfile, why: str = _ENDED) -> StepProfile:
        """Return the profile as it is without a trace."""
        return msgspec.structs.replace(profile, missing=profile.missing | {"trace": why})

    def added_to(self, profile: StepProfile, instruments: Instruments) -> StepProfile:
        """Return the profile with what a trace of further steps says, or why there is none.

        Of several ranks, raises what a step raises.
        """
        if profile.absent or "torch" not in sys.modules:
            return profile if profile.absent else self.missing(profile, _NO_TORCH)
        raw = self.folder / _RAW
        try:
            traced = instruments.take("trace", lambda: self._or_why(profile, raw), steps=STEPS)
        finally:
            raw.unlink(missing_ok=True)
        return traced or self.missing(profile, instruments.absent["trace"])

    def _or_why(self, profile: StepProfile, raw: Path) -> StepProfile:
        try:
            return self._added_to(profile, raw)
        except _NoTraceError as error:
            return self.missing(profile, str(error))

    def _added_to(self, profile: StepProfile, raw: Path) -> StepProfile:
        """Trace, keep the trace, and read it. Raises what a step raises, and _NoTraceError."""
        steps = self._trace(raw)
        if self.passes.group.rank != 0:
            return profile
        missing = dict(profile.missing)
        try:
            if self.keeps and (why := self._keep(raw)):
                missing["trace_file"] = why
            if self.tracing.stacks:
                return msgspec.structs.replace(profile, missing=missing | {"trace": _STACKS})
            digest = self._digest(raw, steps)
        except OSError as error:
            raise _NoTraceError(f"the trace cannot be written or read: {error.strerror}") from None
        if digest.device is None and self._traces_device():
            missing["device"] = _NO_DEVICE
        return msgspec.structs.replace(
            profile, host=digest.host, device=digest.device, missing=missing
        )

    def _keep(self, raw: Path) -> str:
        """Keep a trace for people; else return why not: it is read all the same."""
        target = self.folder / TRACE
        try:
            return kept_trace.write(raw, target, self.root)
        except FileNotFoundError:
            raise  # there is no trace at all
        except OSError as error:
            target.unlink(missing_ok=True)
            return f"the trace cannot be kept: {error.strerror}"

    def _digest(self, raw: Path, steps: int) -> device_trace.Digest:
        """Read a trace. Raises _NoTraceError."""
        size = raw.stat().st_size
        if size > _MOST_BYTES:
            raise _NoTraceError(f"the trace has {size:,} bytes; at most {_MOST_BYTES:,} are read")
        try:
            events = trace_events.read(raw.read_bytes())
        except ValueError as error:
            raise _NoTraceError(str(error)) from None
        digest = device_trace.digest(events, steps=steps)
        if digest.absent:
            raise _NoTraceError(digest.absent)
        return digest

    def _trace(self, raw: Path) -> int:
        """Run steps, and have rank 0 write their trace. Returns how many it has.

        All ranks run the same steps. Raises _NoTraceError.
        """
        from torch import profiler

        passes = self.passes
        with passes.watcher.following(passes.here, mark=profiler.record_function):
            passes.run()  # compiles what ran eagerly until here
            step_s = passes.run()
            with self._profiler():
                pass  # the profiler's own start takes seconds, once
            start = time.monotonic()
            events = self._events()
            steps = self._steps(step_s, time.monotonic() - start, events)
            if steps == 0:
                raise _NoTraceError(
                    f"a step of {step_s:.3g} s and {events:,} events is too much to trace"
                )
            schedule = profiler.schedule(wait=WAIT, warmup=WARMUP, active=steps, repeat=1)
            with self._profiler(
                schedule=schedule,
                on_trace_ready=lambda trace: trace.export_chrome_trace(str(raw)),
            ) as running:
                for _ in range(WAIT + WARMUP + steps):
                    # Waiting after each step would empty the queue, which is what is asked about.
                    passes.step()
                    if running is not None:
                        running.step()
        passes.here.synchronize()
        return steps

    def _traces_device(self) -> bool:
        is_asked = not self.tracing.activities or "cuda" in self.tracing.activities
        return is_asked and not isinstance(self.passes.here, CpuDevice)

    def _events(self) -> int:
        """Return how many events one step has."""
        with self._profiler() as running:
            self.passes.run()
        return 1 if running is None else max(len(running.profiler.kineto_results.events()), 1)

    def _steps(self, step_s: float, traced_s: float, events: int) -> int:
        """Return how many steps are traced, the same on all ranks, where one took `traced_s`."""
        may_take_s = min(_MOST_S, _SHARE * self.passes.left.seconds)
        for_steps_s = may_take_s - (WAIT + WARMUP) * step_s
        in_time = int(for_steps_s / (_READING * traced_s))
        asked = self.tracing.steps or MOST_STEPS
        fewest = max(min(asked, in_time, MOST_EVENTS // events), 0)
        return round(-self.passes.group.maximum(-float(fewest)))

    @contextlib.contextmanager
    def _profiler(self, **more: Any) -> Iterator[Any]:  # noqa: ANN401  torch is untyped
        """Run torch's profiler within; on other ranks than 0 nothing."""
        if self.passes.group.rank != 0:
            yield None
            return
        from torch.profiler import ProfilerActivity, profile

        known = {"cpu": ProfilerActivity.CPU}
        if not isinstance(self.passes.here, CpuDevice):
            known["cuda"] = ProfilerActivity.CUDA
        asked = [known[name] for name in self.tracing.activities if name in known]
        if self.tracing.activities and not asked:
            raise _NoTraceError("the device has none of the activities that were asked for")
        with profile(
            activities=asked or list(known.values()),
            record_shapes=True,
            profile_memory=self.keeps,
            with_stack=self.tracing.stacks,
            **more,
        ) as running:
            yield running
