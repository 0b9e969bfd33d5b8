"""What the host did while a trace was taken: operators, calls of the driver, waiting for data."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from ci_perf.measuring.profiling import trace_events
from ci_perf.measuring.profiling.trace_events import Cover, Events, HostSpan
from ci_perf.model.step_profile import (
    MOST_PHASES,
    MOST_TIMED_OPERATORS,
    HostTimes,
    LoaderKind,
    OperatorTimes,
    PhaseUse,
)

# `context.phase("data")` of a workload, and what torch writes around the next batch of a loader.
DATA_PHASE: Final = "data"
_LOADER: Final = "enumerate(DataLoader)#"
_OF_WORKERS: Final = "MultiProcessing"
# What makes the host wait until the device has done its work: cudaStreamSynchronize,
# hipDeviceSynchronize, cuCtxSynchronize, cudaMemcpy (the one that is not Async).
_WAITS: Final = re.compile(r"Synchronize|(cuda|hip)Memcpy(2D|3D|WithStream)?$")
_COPIES: Final = re.compile(r"Memcpy.*Async")
# Between the copy of a number to the host, which waits, and the wait for it.
_SAME_WAIT_S: Final = 50e-6


@dataclass(frozen=True, slots=True)
class Wait:
    """A call in which the host waits for the device, and the operator that makes it."""

    start: float
    end: float
    call: str
    operator: str


@dataclass(slots=True)
class HostTrace:
    """The host's side of a trace; moments in seconds."""

    data: Cover
    busy: dict[str, Cover] = field(default_factory=dict)
    waits: dict[str, list[Wait]] = field(default_factory=lambda: defaultdict(list))
    operator_of: dict[int, str] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    own_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    wait_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))

    def waiting(self, thread: str) -> Cover:
        """Return when a thread waits for the device; short times between two waits belong to it."""
        waits = self.waits.get(thread, ())
        return Cover(((wait.start, wait.end) for wait in waits), bridge=_SAME_WAIT_S)


def of(events: Events) -> HostTrace:
    """Return what the host did."""
    # A copy that ended before the call that asked for it returned has made the host wait.
    copied = {work.correlation: work.end for work in events.work if work.kind == "copy"}
    host = HostTrace(
        data=trace_events.cover(
            span
            for span in events.annotations
            if span.name == DATA_PHASE or span.name.startswith(_LOADER)
        )
    )
    for thread in events.operators.keys() | events.calls.keys():
        operators = sorted(events.operators.get(thread, ()), key=_outer_first)
        calls = sorted(events.calls.get(thread, ()), key=_outer_first)
        host.busy[thread] = trace_events.cover([*operators, *calls])
        _nest(host, thread, operators, calls, copied)
    return host


def times(
    events: Events, host: HostTrace, device_s: dict[str, float], steps: int
) -> HostTimes | None:
    """Return what the host did in the steps that the profiler has marked; `None` without any.

    `device_s` are the seconds of the device's work by the operator that launched it.
    """
    if not events.steps:
        return None
    start = min(step.start for step in events.steps)
    end = max(step.end for step in events.steps)
    known = host.data.spans()
    data_s = host.data.seconds(start, end)
    known += [(wait.start, wait.end) for waits in host.waits.values() for wait in waits]
    with_waits = Cover(known).seconds(start, end)
    known += [span for busy in host.busy.values() for span in busy.spans()]
    with_operators = Cover(known).seconds(start, end)
    names = sorted(
        host.calls.keys() | device_s.keys(),
        key=lambda name: (-max(host.own_s.get(name, 0.0), device_s.get(name, 0.0)), name),
    )
    return HostTimes(
        steps=steps,
        step_s=(end - start) / steps,
        data_s=data_s / steps,
        waiting_s=(with_waits - data_s) / steps,
        operators_s=(with_operators - with_waits) / steps,
        loader=_loader(events),
        phases=_phases(events, steps),
        operators=tuple(
            OperatorTimes(
                operator=name,
                calls=host.calls[name] / steps,
                host_s=max(host.own_s.get(name, 0.0), 0.0) / steps,
                wait_s=host.wait_s.get(name, 0.0) / steps,
                device_s=device_s.get(name, 0.0) / steps,
            )
            for name in names[:MOST_TIMED_OPERATORS]
        ),
        cut=max(len(names) - MOST_TIMED_OPERATORS, 0),
    )


def _nest(
    host: HostTrace,
    thread: str,
    operators: Sequence[HostSpan],
    calls: Sequence[HostSpan],
    copied: dict[int, float],
) -> None:
    """Find the innermost operator around each call, and the own time of each operator.

    Spans that overlap by half, which torch should not write, end with the one around them.
    """
    around: list[list[float | str]] = []  # end and name, outermost first
    merged = sorted(
        [(*_outer_first(span), 0, span) for span in operators]
        + [(*_outer_first(span), 1, span) for span in calls],
        key=lambda item: item[:3],
    )
    for start, _, is_call, span in merged:
        while around and float(around[-1][0]) <= start:
            around.pop()
        name = str(around[-1][1]) if around else ""
        if is_call:
            if span.correlation:
                host.operator_of.setdefault(span.correlation, name)
            if _is_wait(span, copied):
                host.waits[thread].append(Wait(span.start, span.end, span.name, name))
                host.wait_s[name] += span.end - span.start
            continue
        end = min(span.end, float(around[-1][0])) if around else span.end
        host.calls[span.name] += 1
        host.own_s[span.name] += end - span.start
        if around:
            host.own_s[name] -= end - span.start
        around.append([end, span.name])


def _is_wait(call: HostSpan, copied: dict[int, float]) -> bool:
    if _WAITS.search(call.name):
        return True
    return bool(_COPIES.search(call.name)) and copied.get(call.correlation, call.end) < call.end


def _loader(events: Events) -> LoaderKind:
    """Say who loads: the process that runs the step, or workers; empty where no loader was seen."""
    names = {span.name for span in events.annotations if span.name.startswith(_LOADER)}
    if not names:
        return ""
    return "workers" if any(_OF_WORKERS in name for name in names) else "process"


def _phases(events: Events, steps: int) -> tuple[PhaseUse, ...]:
    """Return the seconds of every annotation: phases, and what the author has marked."""
    seconds: dict[str, float] = defaultdict(float)
    for span in events.annotations:
        seconds[span.name] += span.end - span.start
    longest = sorted(seconds, key=lambda name: (-seconds[name], name))[:MOST_PHASES]
    return tuple(PhaseUse(phase=name, host_s=seconds[name] / steps) for name in longest)


def _outer_first(span: HostSpan) -> tuple[float, float]:
    return span.start, -span.end
