"""Read torch.profiler's events: what operators take, and why a device was idle.

Busy is the union of kernels, copies and sets over all streams of the device. A gap between them is
the host's where the call that launched what ends it began after the gap had: the queue was empty.
The rest, until the work starts, is the device's: the launch itself, or the order of streams.

Of the host's part, time in the phase "data" or in a loader is "data". Of what remains, as much is
"synchronisation" as the launching thread has waited for the device in a wait that touches the gap:
so much earlier it could have launched. The rest goes to "operators" (calls of the driver included)
and "outside" of them, by what the thread did. Without a link to the call, nobody knows.
"""

import bisect
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ci_perf.model.explanation import (
    MOST_TIMED_OPERATORS,
    DeviceIdle,
    DeviceTimes,
    HostTimes,
    IdleReason,
    OperatorTimes,
)
from ci_perf.system.linux import short

# `context.phase("data")` of a workload, and what torch writes around the next batch of a loader.
_DATA_PHASE: Final = "data"
_LOADER: Final = "enumerate(DataLoader)#"
_OF_WORKERS: Final = "MultiProcessing"
_STEP: Final = "ProfilerStep"
# Calls of the driver or the runtime: cudaLaunchKernel, cuLaunchKernel, hipMemcpyAsync.
_RUNTIME: Final = re.compile(r"(cuda|cu|hip)[A-Z]")
# What makes the host wait until the device has done its work: cudaStreamSynchronize,
# hipDeviceSynchronize, cuCtxSynchronize, cudaMemcpy (the one that is not Async).
_WAITS: Final = re.compile(r"Synchronize|(cuda|hip)Memcpy(2D|3D|WithStream)?$")
_COPIES: Final = re.compile(r"Memcpy.*Async")
# Between the copy of a number to the host, which waits, and the wait for it.
_SAME_WAIT_US: Final = 50.0
# The clocks of host and device agree to some microseconds.
_CLOCKS_DIFFER_US: Final = 10.0
_US: Final = 1e-6

Span = tuple[float, float]
"""Start and end in microseconds."""


class Cover:
    """The union of spans."""

    def __init__(self, spans: Iterable[Span], *, bridge: float = 0.0) -> None:
        """Take spans in any order; `bridge` microseconds between two of them count as covered."""
        self.spans: list[Span] = []
        for start, end in sorted(spans):
            if self.spans and start <= self.spans[-1][1] + bridge:
                self.spans[-1] = self.spans[-1][0], max(self.spans[-1][1], end)
            else:
                self.spans.append((start, end))
        self.whole = sum(end - start for start, end in self.spans)

    def within(self, start: float, end: float) -> float:
        """Return how much from `start` to `end` is covered."""
        return sum(
            max(min(span[1], end) - max(span[0], start), 0.0) for span in self.touching(start, end)
        )

    def touching(self, start: float, end: float) -> list[Span]:
        """Return the spans of which any part lies from `start` to `end`."""
        first = bisect.bisect_left(self.spans, start, key=lambda span: span[1])
        last = bisect.bisect_right(self.spans, end, key=lambda span: span[0])
        return self.spans[first:last]


@dataclass(slots=True)
class _Host:
    """What the host did: one cover for all threads, and the waits of each."""

    data: Cover
    busy: dict[int, list[Span]] = field(default_factory=lambda: defaultdict(list))
    waits: dict[int, list[Any]] = field(default_factory=lambda: defaultdict(list))
    # Calls of the driver by what joins them with the work that they launch.
    launches: dict[int, Any] = field(default_factory=dict)
    # Microseconds in calls of the driver, and in those that wait, by operator.
    driver_us: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    wait_us: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))


def read_times(
    events: Sequence[Any], averages: Iterable[Any], steps: int
) -> tuple[HostTimes | None, DeviceTimes | None]:
    """Return what the host and the device did per step; `None` without any step, or any work.

    `events` are those of torch.profiler, and `averages` its key averages.
    """
    work = [each for each in events if _is_on_device(each) and not each.is_user_annotation]
    host = _read_host(events, work)
    marks = [_span(each) for each in events if each.name.startswith(_STEP) and _is_mark(each)]
    device = _read_device(work, host, steps) if work else None
    return (_host_times(events, averages, host, marks, steps) if marks else None), device


def _read_host(events: Sequence[Any], work: Sequence[Any]) -> _Host:
    # A copy that ended before the call that asked for it returned has made the host wait.
    ends = {each.id: each.time_range.end for each in work}
    host = _Host(
        Cover(
            _span(each)
            for each in events
            if _is_mark(each) and (each.name == _DATA_PHASE or each.name.startswith(_LOADER))
        )
    )
    for each in events:
        if _is_on_device(each) or each.is_user_annotation or each.is_async:
            continue
        host.busy[each.thread].append(_span(each))
        if not _RUNTIME.match(each.name):
            continue
        host.launches.setdefault(each.id, each)
        start, end = _span(each)
        operator = _operator_around(each)
        host.driver_us[operator] += end - start
        is_sync_copy = _COPIES.search(each.name) and ends.get(each.id, end) < end
        if is_sync_copy or _WAITS.search(each.name):
            host.waits[each.thread].append(each)
            host.wait_us[operator] += end - start
    for waits in host.waits.values():
        waits.sort(key=_span)
    return host


def _host_times(
    events: Sequence[Any],
    averages: Iterable[Any],
    host: _Host,
    marks: Sequence[Span],
    steps: int,
) -> HostTimes:
    start, end = min(mark[0] for mark in marks), max(mark[1] for mark in marks)
    waiting = Cover([*host.data.spans, *(_span(e) for each in host.waits.values() for e in each)])
    working = Cover([*waiting.spans, *(span for spans in host.busy.values() for span in spans)])
    data_us, waited_us = host.data.within(start, end), waiting.within(start, end)
    loaders = {each.name for each in events if each.name.startswith(_LOADER)}
    operators = [
        OperatorTimes(
            operator=short(each.key),
            calls=each.count / steps,
            host_s=max(each.self_cpu_time_total + host.driver_us[each.key], 0.0) * _US / steps,
            wait_s=host.wait_us[each.key] * _US / steps,
            device_s=each.self_device_time_total * _US / steps,
        )
        for each in averages
        if not (_is_on_device(each) or each.is_user_annotation)
        if not (_RUNTIME.match(each.key) or each.key.startswith("["))
    ]
    operators.sort(key=lambda each: (-max(each.host_s, each.device_s), each.operator))
    return HostTimes(
        steps=steps,
        step_s=(end - start) * _US / steps,
        data_s=data_us * _US / steps,
        waiting_s=(waited_us - data_us) * _US / steps,
        operators_s=(working.within(start, end) - waited_us) * _US / steps,
        loader="" if not loaders else "workers" if _OF_WORKERS in str(loaders) else "process",
        operators=tuple(operators[:MOST_TIMED_OPERATORS]),
        cut=max(len(operators) - MOST_TIMED_OPERATORS, 0),
    )


def _read_device(every: Sequence[Any], host: _Host, steps: int) -> DeviceTimes:
    """Return the times of the device that worked longest.

    What was launched before the trace began is of earlier steps, and left out.
    """
    by_device: dict[int, list[Any]] = defaultdict(list)
    for each in sorted(every, key=_span):
        by_device[each.device_index].append(each)
    work = max(by_device.values(), key=lambda works: Cover(map(_span, works)).whole)
    unlinked = sum(each.id not in host.launches for each in work)
    first = next((at for at, each in enumerate(work) if each.id in host.launches), 0)
    busy = Cover(map(_span, work[first:]))
    kernels = Cover(_span(each) for each in work[first:] if not each.name.startswith("Mem"))
    pageable = (_span(e) for e in work[first:] if "Memcpy" in e.name and "Pageable" in e.name)
    return DeviceTimes(
        span_s=(busy.spans[-1][1] - busy.spans[0][0]) * _US / steps,
        busy_s=busy.whole * _US / steps,
        copying_s=max(busy.whole - kernels.whole, 0.0) * _US / steps,
        pageable_s=sum(end - start for start, end in pageable) * _US / steps,
        work=len(work) / steps,
        unlinked=unlinked / steps,
        idle=_find_idle(work[first:], busy, host, steps),
    )


def _find_idle(work: Sequence[Any], busy: Cover, host: _Host, steps: int) -> tuple[DeviceIdle, ...]:
    """Name the reason of every time between the first and the last work without any."""
    gaps: dict[IdleReason, dict[tuple[str, str], float]] = defaultdict(lambda: defaultdict(float))

    def add(reason: IdleReason, microseconds: float, operator: str = "", call: str = "") -> None:
        if microseconds > 0:
            gaps[reason][operator, call] += microseconds

    covers: dict[int, tuple[Cover, Cover, Cover]] = {}
    starts = [each.time_range.start for each in work]
    for (_, end), (start, _) in zip(busy.spans, busy.spans[1:], strict=False):
        launch = host.launches.get(work[bisect.bisect_left(starts, start)].id)
        if launch is None:
            add("unlinked", start - end)
            continue
        operator, thread = _operator_around(launch), launch.thread
        launched = min(max(launch.time_range.start, end), start)
        add("device", start - launched, operator)
        if launched <= end:
            continue
        if thread not in covers:
            waiting = Cover(map(_span, host.waits[thread]), bridge=_SAME_WAIT_US)
            waited = Cover([*host.data.spans, *waiting.spans])
            covers[thread] = waiting, waited, Cover([*waited.spans, *host.busy[thread]])
        waiting, waited, known = covers[thread]
        data_us = host.data.within(end, launched)
        touching = waiting.touching(end - _CLOCKS_DIFFER_US, launched)
        rest_us = launched - end - data_us
        waited_us = min(rest_us, sum(last - first for first, last in touching))
        add("data", data_us)
        if touching:
            add("synchronisation", waited_us, *_longest_wait(host.waits[thread], touching))
        outside_us = max(launched - end - known.within(end, launched), 0.0)
        operators_us = max(launched - end - waited.within(end, launched) - outside_us, 0.0)
        share = operators_us / (operators_us + outside_us) if operators_us + outside_us else 1.0
        add("operators", (rest_us - waited_us) * share, operator)
        add("outside", (rest_us - waited_us) * (1 - share), operator)
    idle: list[DeviceIdle] = []
    for reason, places in gaps.items():
        operator, call = max(places, key=lambda place: (places[place], place))
        seconds = sum(places.values()) * _US / steps
        idle.append(
            DeviceIdle(
                reason=reason,
                idle_s=seconds,
                operator=short(operator),
                call=short(call),
            )
        )
    return tuple(sorted(idle, key=lambda each: (-each.idle_s, each.reason)))


def _longest_wait(waits: Sequence[Any], touching: Sequence[Span]) -> tuple[str, str]:
    """Return the operator and the call of the longest wait within some spans."""
    first = bisect.bisect_left(waits, touching[0][0], key=lambda each: each.time_range.start)
    last = bisect.bisect_right(waits, touching[-1][1], key=lambda each: each.time_range.start)
    longest = max(waits[first:last], key=lambda each: each.time_range.end - each.time_range.start)
    return _operator_around(longest), longest.name


def _operator_around(event: Any) -> str:  # noqa: ANN401  torch is untyped
    """Return the innermost operator around a call of the driver; empty outside of operators."""
    around = event.cpu_parent
    while around is not None and (around.is_user_annotation or _RUNTIME.match(around.name)):
        around = around.cpu_parent
    return "" if around is None else str(around.name)


def _is_on_device(event: Any) -> bool:  # noqa: ANN401  torch is untyped
    return str(event.device_type.name) != "CPU"


def _is_mark(event: Any) -> bool:  # noqa: ANN401  torch is untyped
    return bool(event.is_user_annotation) and not _is_on_device(event)


def _span(event: Any) -> Span:  # noqa: ANN401  torch is untyped
    return event.time_range.start, event.time_range.end
