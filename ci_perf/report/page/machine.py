"""The machine over a run: what the monitor read of each launch, and the canaries between them."""

import itertools
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ci_perf.model.metrics import Unit
from ci_perf.model.process import Process
from ci_perf.model.run import NodeSession, Run
from ci_perf.model.validity import Evidence, Span
from ci_perf.report import units
from ci_perf.report.escape import Words
from ci_perf.report.page import pictures
from ci_perf.report.page.pictures import Caption, Picture, Segment, Symbol

_HEIGHT = 84
_TOP, _BOTTOM = 18.0, 70.0
# Further launches are left out: their marks would cover each other.
_MOST_LAUNCHES = 400

_Reading = Callable[[Evidence], Span | float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """One reading over all launches."""

    title: Words
    picture: Picture


def strips(run: Run) -> list[Strip]:
    """Draw each reading that the monitor took of any launch, in the order of the launches."""
    evidence = [process.evidence for process in _in_order(run)][:_MOST_LAUNCHES]
    drawn = (_strip(title, unit, read, evidence) for title, unit, read in _readings(evidence))
    return [strip for strip in drawn if strip is not None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryLine:
    """One canary: its times before, between and after, and how far it moved."""

    name: str
    times: Words
    moved: Words


def canaries(run: Run) -> list[CanaryLine]:
    """List the canaries with the median of each position, those of several nodes apart."""
    is_one = len(run.sessions) == 1
    return [
        line
        for session in run.sessions
        for line in _canaries(session, "" if is_one else f" on node {session.node}")
    ]


def _canaries(session: NodeSession, where: str) -> list[CanaryLine]:
    lines = []
    for name in dict.fromkeys(canary.name for canary in session.canaries):
        by_position = {
            position: [
                canary.median_s
                for canary in session.canaries
                if (canary.name, canary.position) == (name, position)
            ]
            for position in ("before", "between", "after")
        }
        medians = [statistics.median(times) for times in by_position.values() if times]
        lines.append(
            CanaryLine(
                name=f"{name}{where}",
                times=Words(" → ".join(map(units.seconds, medians))),
                moved=units.percent(max(medians) / min(medians) - 1)
                if len(medians) > 1
                else Words(""),
            )
        )
    return lines


def _in_order(run: Run) -> Iterator[Process]:
    """Yield the launches of the rounds, then those of the pairs, as far as their order is known."""
    rounds = itertools.zip_longest(*(workload.processes for workload in run.measured))
    yield from (process for together in rounds for process in together if process)
    turns = itertools.zip_longest(*(paired.pairs for paired in run.paired))
    for pair in (pair for together in turns for pair in together if pair):
        yield from (pair.base, pair.head) if pair.first == "base" else (pair.head, pair.base)


def _readings(
    evidence: Iterable[Evidence | None],
) -> Iterator[tuple[Words, Unit | None, _Reading]]:
    yield Words("tasks that waited for a CPU"), Unit.SHARE, lambda e: e.host.cpu_pressure
    yield Words("tasks that waited for memory"), Unit.SHARE, lambda e: e.host.memory_pressure
    yield Words("switches forced on the process"), Unit.COUNT, lambda e: e.host.involuntary_switches
    yield Words("held back by a quota"), Unit.SECOND, lambda e: e.host.throttled_s
    yield Words("peak host memory"), Unit.BYTE, lambda e: e.host_rss_peak_bytes
    gpus = max((len(each.gpus) for each in evidence if each), default=0)
    for index in range(gpus):
        of = f"GPU {index}: " if gpus > 1 else "GPU: "
        for title, unit, name in (
            ("SM clock", Unit.MEGAHERTZ, "sm_clock_mhz"),
            ("memory clock", Unit.MEGAHERTZ, "memory_clock_mhz"),
            ("temperature in °C", Unit.COUNT, "temperature_c"),
            ("power", Unit.WATT, "power_w"),
            ("utilisation", Unit.SHARE, "utilization"),
            ("memory in use", Unit.BYTE, "used_peak_bytes"),
        ):
            yield Words(of + title), unit, _of_gpu(index, name)


def _of_gpu(index: int, name: str) -> _Reading:
    def read(evidence: Evidence) -> Span | float | None:
        if index >= len(evidence.gpus):
            return None
        value: Span | float | None = getattr(evidence.gpus[index], name)
        return value

    return read


def _strip(
    title: Words, unit: Unit | None, read: _Reading, evidence: Sequence[Evidence | None]
) -> Strip | None:
    spans = [_span(read(each)) if each else None for each in evidence]
    known = [span for span in spans if span is not None]
    if not known or all(span == (0.0, 0.0, 0.0) for span in known):
        return None
    low, high = min(span[0] for span in known), max(span[2] for span in known)
    scale = pictures.vertical([low, high], top=_TOP, bottom=_BOTTOM)
    assert scale is not None
    (places,) = pictures.columns([len(spans)])
    marks, lines = [], []
    for span, x in zip(spans, places, strict=True):
        if span is None:
            continue
        bottom, middle, top = map(scale.place, span)
        if bottom != top:
            lines.append(Segment(x1=x, y1=bottom, x2=x, y2=top, kind="pair"))
        marks.append(Symbol(x=x, y=middle, shape="history"))
    ends = [units.value(low, unit), units.value(high, unit)]
    captions = [Caption(x=0.5, y=11, text=ends[1])]
    if ends[0] != ends[1]:
        captions.append(Caption(x=0.5, y=_HEIGHT - 2, text=ends[0]))
    launches = units.numbered(len(known), "launch", "launches")
    label = f"{title}: from {ends[0]} to {ends[1]} over {launches}"
    return Strip(
        title=title,
        picture=Picture(
            height=_HEIGHT,
            label=label,
            lines=tuple(lines),
            marks=tuple(marks),
            captions=tuple(captions),
        ),
    )


def _span(reading: Span | float | None) -> tuple[float, float, float] | None:
    if reading is None:
        return None
    if isinstance(reading, Span):
        return reading.low, reading.mean, reading.high
    return float(reading), float(reading), float(reading)
