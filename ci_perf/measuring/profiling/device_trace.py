"""Why a device was idle while a trace was taken: what the host did before the work that came next.

Busy is the union of kernels, copies and sets over all streams of the device. A gap between them is
the host's where the call that launched what ends it began after the gap had: the queue was empty.
The rest, until the work starts, is the device's: the launch itself, or the order of streams.

Of the host's part, time in the phase "data" or in a loader is "data". Of what remains, as much is
"synchronisation" as the launching thread has waited for the device in a wait that touches the gap:
so much earlier it could have launched. The rest goes to "operators" (calls of the driver included)
and "outside" of them, by what the thread did. Without a link to the call, nobody knows.
"""

import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from ci_perf.measuring.profiling import host_trace, trace_events
from ci_perf.measuring.profiling.host_trace import HostTrace, Wait
from ci_perf.measuring.profiling.trace_events import Cover, DeviceWork, Events, Lasting
from ci_perf.model.step_profile import (
    MOST_KERNELS,
    DeviceIdle,
    DeviceTimes,
    HostTimes,
    IdleReason,
    KernelUse,
)

_LONGEST_S = 1e9
_PAGEABLE = "Pageable"
# The clocks of host and device agree to some microseconds.
_CLOCKS_DIFFER_S = 10e-6
# In one gap, of which the longest is looked for.
_MOST_WAITS = 16


@dataclass(frozen=True, slots=True)
class Digest:
    """Both sides of a trace. ``device`` is `None` where the trace has no work of a device.

    ``absent`` is a sentence; empty where there is none.
    """

    host: HostTimes | None
    device: DeviceTimes | None
    absent: str = ""


@dataclass(slots=True)
class _Gaps:
    """Idle seconds by reason, and where the host was then."""

    seconds: dict[IdleReason, float] = field(default_factory=lambda: defaultdict(float))
    gaps: Counter[IdleReason] = field(default_factory=Counter)
    places: dict[IdleReason, dict[tuple[str, str], float]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(float))
    )

    def add(self, reason: IdleReason, seconds: float, operator: str = "", call: str = "") -> None:
        if seconds > 0:
            self.seconds[reason] += seconds
            self.gaps[reason] += 1
            self.places[reason][operator, call] += seconds

    def longest_first(self) -> list[IdleReason]:
        return sorted(self.seconds, key=lambda reason: (-self.seconds[reason], reason))

    def total(self, reason: IdleReason, steps: int) -> DeviceIdle:
        """Return one reason, with the place where it costs most."""
        places = self.places[reason]
        operator, call = max(places, key=lambda place: (places[place], place))
        return DeviceIdle(
            reason=reason,
            idle_s=self.seconds[reason] / steps,
            gaps=self.gaps[reason] / steps,
            operator=operator,
            call=call,
        )


def digest(events: Events, *, steps: int | None = None) -> Digest:
    """Return what a trace says, per step; without `steps`, as many as the profiler has marked."""
    count = max(len({step.name for step in events.steps}) if steps is None else steps, 1)
    host = host_trace.of(events)
    by_operator: dict[str, float] = defaultdict(float)
    for work in events.work:
        if work.correlation in events.launches:
            by_operator[host.operator_of.get(work.correlation, "")] += work.end - work.start
    if _longest(events) > _LONGEST_S:
        return Digest(None, None, "the times of the trace are impossible: it lasts thirty years")
    device = _device(events, host, count) if events.work else None
    return Digest(host_trace.times(events, host, by_operator, count), device)


def _longest(events: Events) -> float:
    spans: list[Lasting] = [*events.work, *events.steps, *events.annotations]
    spans += [span for many in events.operators.values() for span in many]
    spans += [span for many in events.calls.values() for span in many]
    if not spans:
        return 0.0
    return max(span.end for span in spans) - min(span.start for span in spans)


def _device(events: Events, host: HostTrace, steps: int) -> DeviceTimes:
    """Return the times of the device that worked longest; others are only counted."""
    by_device: dict[int, list[DeviceWork]] = defaultdict(list)
    for work in events.work:
        by_device[work.device].append(work)
    covers = {device: trace_events.cover(works) for device, works in by_device.items()}
    device = max(covers, key=lambda device: (covers[device].whole, -device))
    every = sorted(by_device[device])
    works = _since_first_launch(every, events)
    busy = trace_events.cover(works)
    kernels_s = trace_events.cover(work for work in works if work.kind == "kernel").whole
    gaps = _gaps(works, busy, events, host)
    unlinked = [work for work in every if work.correlation not in events.launches]
    return DeviceTimes(
        span_s=(busy.ends[-1] - busy.starts[0]) / steps,
        busy_s=busy.whole / steps,
        copying_s=max(busy.whole - kernels_s, 0.0) / steps,
        pageable_s=_seconds(work for work in works if _is_pageable(work)) / steps,
        work=len(every) / steps,
        unlinked=len(unlinked) / steps,
        unlinked_s=_seconds(unlinked) / steps,
        idle=tuple(gaps.total(reason, steps) for reason in gaps.longest_first()),
        kernels=_kernels(works, steps),
        cut=max(len({work.name for work in works}) - MOST_KERNELS, 0),
        other_devices=len(by_device) - 1,
    )


def _since_first_launch(works: list[DeviceWork], events: Events) -> list[DeviceWork]:
    """Leave out what had been launched before the trace began: it is of earlier steps.

    Nothing where no work at all has a launch.
    """
    for position, work in enumerate(works):
        if work.correlation in events.launches:
            return works[position:]
    return works


def _gaps(works: list[DeviceWork], busy: Cover, events: Events, host: HostTrace) -> _Gaps:
    """Name the reason of every time between the first and the last work without any."""
    gaps = _Gaps()
    threads = {
        thread: _Thread.of(host, thread)
        for thread in {launch.thread for launch in events.launches.values()}
    }
    position = 0
    for end, start in zip(busy.ends[:-1], busy.starts[1:], strict=True):
        while works[position].start < start:
            position += 1
        work = works[position]
        launch = events.launches.get(work.correlation)
        operator = host.operator_of.get(work.correlation, "")
        if launch is None:
            gaps.add("unlinked", start - end)
            continue
        begun = min(max(launch.start, end), start)
        gaps.add("device", start - begun, operator)
        if begun > end:
            threads[launch.thread].share(gaps, end, begun, operator)
    return gaps


@dataclass(frozen=True, slots=True)
class _Thread:
    """What a launching thread did, each cover holding the ones before it."""

    waits: list[Wait]
    waiting: Cover
    data: Cover
    data_waiting: Cover
    all_known: Cover

    @classmethod
    def of(cls, host: HostTrace, name: str) -> "_Thread":
        data, waiting = host.data, host.waiting(name)
        waited = [*data.spans(), *waiting.spans()]
        busy = host.busy.get(name)
        return cls(
            waits=sorted(host.waits.get(name, ()), key=lambda wait: wait.start),
            waiting=waiting,
            data=data,
            data_waiting=Cover(waited),
            all_known=Cover([*waited, *(busy.spans() if busy else [])]),
        )

    def share(self, gaps: _Gaps, start: float, end: float, operator: str) -> None:
        """Share a time in which the queue was empty among its reasons."""
        data_s = self.data.seconds(start, end)
        rest_s = end - start - data_s
        before = start - _CLOCKS_DIFFER_S
        waited_s = min(rest_s, self.waiting.touching(before, end))
        waits_s = self.data_waiting.seconds(start, end)
        outside_s = max(end - start - self.all_known.seconds(start, end), 0.0)
        operators_s = max(end - start - waits_s - outside_s, 0.0)
        gaps.add("data", data_s)
        if waited_s > 0:
            gaps.add("synchronisation", waited_s, *self._wait(before, end))
        left_s, known_s = max(rest_s - waited_s, 0.0), operators_s + outside_s
        gaps.add("operators", left_s * operators_s / known_s if known_s else left_s, operator)
        gaps.add("outside", left_s * outside_s / known_s if known_s else 0.0, operator)

    def _wait(self, start: float, end: float) -> tuple[str, str]:
        """Return operator and call of the longest wait that touches a time."""
        last = bisect.bisect_right(self.waits, end, key=lambda wait: wait.start)
        touching = self.waits[max(last - _MOST_WAITS, 0) : last]
        touching = [wait for wait in touching if wait.end >= start]
        longest = max(touching, key=lambda wait: wait.end - wait.start, default=None)
        return (longest.operator, longest.call) if longest else ("", "")


def _kernels(works: list[DeviceWork], steps: int) -> tuple[KernelUse, ...]:
    seconds: dict[str, float] = defaultdict(float)
    calls: Counter[str] = Counter()
    for work in works:
        seconds[work.name] += work.end - work.start
        calls[work.name] += 1
    longest = sorted(seconds, key=lambda name: (-seconds[name], name))[:MOST_KERNELS]
    return tuple(
        KernelUse(kernel=name, calls=calls[name] / steps, busy_s=seconds[name] / steps)
        for name in longest
    )


def _seconds(works: Iterable[DeviceWork]) -> float:
    return sum(work.end - work.start for work in works)


def _is_pageable(work: DeviceWork) -> bool:
    return work.kind == "copy" and _PAGEABLE in work.name
