"""One metric over the sessions of a branch: of a machine, by session, or of two, by commit.

Sessions of a machine, and commits of two, lie at equal distances, whatever their dates.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from ci_perf.judging import metric_values
from ci_perf.model import metrics
from ci_perf.model.history import BranchHistory, LevelChange, MetricTimeline, WorkloadHistory
from ci_perf.model.metrics import Unit
from ci_perf.report import branch_history, level_changes, units
from ci_perf.report.escape import Words
from ci_perf.report.page import pictures
from ci_perf.report.page.pictures import Caption, Curve, Picture, Scale, Segment, Side, Symbol

_HEIGHT = 124
# Two lines of words about changes stand above.
_TOP, _BOTTOM = 34.0, 118.0
_ROWS = (11.0, 27.0)
# Of the width: words of one line that are nearer cover each other.
_WORDS_WIDTH = 21.0
# Older sessions are counted and not drawn: a path of more would make pages of many metrics slow.
MOST_SESSIONS = 500
# Above it, marks would cover the line.
_MOST_MARKS = 60
_MOST_LABELS = 6
# Of the place of a session.
_HALF_BAR = 0.1

Value = TypeVar("Value")
_PAIR_HEIGHT = 130
_PAIR_TOP, _PAIR_BOTTOM = 8.0, 122.0
# The marks and lines of a comparison tell two series apart by shape and colour.
_SIDES: tuple[Side, Side] = ("base", "head")


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePlot:
    """A picture, the values at the ends of its axis, and what stands below it."""

    title: Words
    picture: Picture
    top: Words
    bottom: Words
    first: str
    last: str
    words: Words


@dataclass(frozen=True, slots=True)
class _Series:
    """What is drawn of a metric: launches per session, `None` where a session lacks it."""

    launches: Sequence[Sequence[float]]
    centres: Sequence[float | None]
    offset: int
    unit: Unit


def of(each: WorkloadHistory, line: MetricTimeline, dates: Sequence[str]) -> TimelinePlot | None:
    """Draw one metric of one workload; `None` where no session has it. `dates` are of sessions."""
    series = _series(each, line.metric)
    known = [value for value in series.centres if value is not None]
    # A single session has no other to lie beside: its launches make the axis.
    ends = known if len(known) > 1 else [value for session in series.launches for value in session]
    down = pictures.vertical(ends, top=_TOP, bottom=_BOTTOM)
    if down is None:
        return None
    across = _across(len(series.centres))
    changes = _drawn(each, line, series.offset)
    top, bottom = units.value(max(ends), series.unit), units.value(min(ends), series.unit)
    return TimelinePlot(
        title=Words(branch_history.title(line.metric)),
        picture=Picture(
            height=_HEIGHT,
            label=_label(line, series, changes),
            curves=tuple(_curves(series, changes, across, down)),
            lines=tuple(_dividers(changes, series.offset, across)),
            marks=tuple(_marks(series.centres, across, down)),
            captions=tuple(_captions(changes, series.offset, across)),
        ),
        top=top,
        bottom=bottom if bottom != top else Words(""),
        first=dates[series.offset],
        last=dates[-1] if len(dates) - series.offset > 1 else "",
        words=_words(line, series),
    )


def _series(each: WorkloadHistory, metric: str) -> _Series:
    shown = each.sessions[-MOST_SESSIONS:]
    return _Series(
        launches=[metric_values.of_session(session, metric) for session in shown],
        centres=branch_history.centres(each, metric)[-MOST_SESSIONS:],
        offset=len(each.sessions) - len(shown),
        unit=metrics.BY_NAME[metric].unit,
    )


def _drawn(each: WorkloadHistory, line: MetricTimeline, offset: int) -> list[LevelChange]:
    """Return the changes among the drawn sessions; one beside an accepted change is part of it."""
    accepted = level_changes.accepted_sessions(each)
    return [
        msgspec.structs.replace(
            change, accepted=level_changes.nearest(accepted, change.session) is not None
        )
        for change in line.changes
        if change.session >= offset
    ]


def _across(number: int) -> Scale:
    """Return where each session lies: each has an equal part of the width."""
    return Scale(-0.5, number - 0.5, 0.0, 100.0)


def _words(line: MetricTimeline, series: _Series) -> Words:
    number = len(series.centres) + series.offset
    parts = [f"now {units.value(line.centre, series.unit)}", units.numbered(number, "session")]
    if series.offset:
        parts[-1] += f" ({series.offset:,} older ones not drawn)"
    if line.spread is not None:
        parts.append(f"sessions differ by {100 * line.spread:.1f} %")
    if line.has_drifted and line.trend is not None:
        parts.append(f"drifted by {units.percent(line.trend - 1)}")
    return Words(", ".join(parts))


def _label(line: MetricTimeline, series: _Series, changes: Sequence[LevelChange]) -> str:
    """Say in words what the picture shows."""
    known = [value for value in series.centres if value is not None]
    ends = f"{units.value(min(known), series.unit)} to {units.value(max(known), series.unit)}"
    said = f"{branch_history.title(line.metric)}: {units.numbered(len(known), 'session')}, {ends}"
    moves = [
        f"{_change(change)} at session {change.session + 1}, {_by(change)}"
        for change in changes[-_MOST_LABELS:]
    ]
    return "; ".join([said, *moves])


def _by(change: LevelChange) -> str:
    return "accepted" if change.accepted else "accepted by nobody"


def _change(change: LevelChange) -> Words:
    if not change.before:
        return Words("from 0")
    return units.percent(change.after / change.before - 1)


# --- marks


def _curves(
    series: _Series, changes: Sequence[LevelChange], across: Scale, down: Scale
) -> Iterator[Curve]:
    middles = [_middle_half(launches) for launches in series.launches]
    if any(middle is not None and middle[0] < middle[1] for middle in middles):
        yield Curve(path="".join(_areas(middles, across, down)), kind="spread")
    if changes:
        yield Curve(path="".join(_levels(changes, series, across, down)), kind="level")
    yield Curve(path="".join(_lines(series.centres, across, down)), kind="centre")


def _middle_half(launches: Sequence[float]) -> tuple[float, float] | None:
    """Return where the middle half of the launches lies; all of fewer than four."""
    if not launches:
        return None
    if len(launches) < 4:
        return min(launches), max(launches)
    low, _, high = statistics.quantiles(launches, n=4, method="inclusive")
    return low, high


def _lines(values: Sequence[float | None], across: Scale, down: Scale) -> Iterator[str]:
    for run in _runs(values):
        yield pictures.curve([(across.place(at), down.place(value)) for at, value in run])


def _areas(
    middles: Sequence[tuple[float, float] | None], across: Scale, down: Scale
) -> Iterator[str]:
    for run in _runs(middles):
        low = [(across.place(at), down.place(middle[0])) for at, middle in _wide(run)]
        high = [(across.place(at), down.place(middle[1])) for at, middle in _wide(run)]
        yield pictures.curve([*low, *reversed(high)]) + "z"


def _wide(run: list[tuple[float, Value]]) -> list[tuple[float, Value]]:
    """Give a place without neighbours a width."""
    if len(run) > 1:
        return run
    ((at, value),) = run
    return [(at - _HALF_BAR, value), (at + _HALF_BAR, value)]


def _runs(values: Sequence[Value | None]) -> Iterator[list[tuple[float, Value]]]:
    """Yield the places and values that stand together without a gap."""
    run: list[tuple[float, Value]] = []
    for at, value in enumerate(values):
        if value is not None:
            run.append((at, value))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _levels(
    changes: Sequence[LevelChange], series: _Series, across: Scale, down: Scale
) -> Iterator[str]:
    """Draw each level between its changes."""
    bounds = [change.session - series.offset for change in changes]
    if bounds[0] > 0:
        yield _level(changes[0].before, 0, bounds[0], across, down)
    ends = [*bounds[1:], len(series.centres)]
    for change, first, end in zip(changes, bounds, ends, strict=True):
        yield _level(change.after, first, end, across, down)


def _level(value: float, first: int, end: int, across: Scale, down: Scale) -> str:
    y = down.place(value)
    return pictures.curve([(across.place(first - 0.5), y), (across.place(end - 0.5), y)])


def _dividers(changes: Iterable[LevelChange], offset: int, across: Scale) -> Iterator[Segment]:
    for change in changes:
        x = across.place(change.session - offset - 0.5)
        kind: pictures.Kind = "accepted" if change.accepted else "seen"
        yield Segment(x1=x, y1=_TOP - 4, x2=x, y2=_BOTTOM, kind=kind)


def _marks(values: Sequence[float | None], across: Scale, down: Scale) -> Iterator[Symbol]:
    if len(values) > _MOST_MARKS:
        return
    for at, value in enumerate(values):
        if value is not None and math.isfinite(value):
            yield Symbol(x=across.place(at), y=down.place(value), shape="history")


def _captions(changes: Sequence[LevelChange], offset: int, across: Scale) -> Iterator[Caption]:
    """Name the changes in two lines, newest first; what would cover other words is left out."""
    free = [math.inf, math.inf]
    for change in reversed(changes):
        x = across.place(change.session - offset - 0.5)
        right = x if x > 50 else x + _WORDS_WIDTH
        row = next((row for row, end in enumerate(free) if right <= end), None)
        if row is None:
            continue
        free[row] = right - _WORDS_WIDTH
        mark = "" if change.accepted else "?"
        anchor: pictures.Anchor = "end" if x > 50 else "start"
        yield Caption(x=x, y=_ROWS[row], text=_change(change) + mark, anchor=anchor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """One metric of one workload on both machines."""

    workload: str
    title: Words
    picture: Picture
    top: Words
    bottom: Words


@dataclass(frozen=True, slots=True)
class _Point:
    """The centre of a session, at the commit that has it first."""

    commit: int
    value: float


def of_two_machines(history: BranchHistory, machines: Sequence[str]) -> list[Together]:
    """Draw how far two machines have moved since their first session; nothing without two names."""
    if len(machines) != len(_SIDES):
        return []
    first, second = (
        {(each.suite, each.workload): each for each in history.workloads if each.machine == name}
        for name in machines
    )
    drawn = []
    for key in first.keys() & second.keys():
        pair = (first[key], second[key])
        metrics = [{line.metric for line in each.metrics} for each in pair]
        drawn += [
            _together(pair, line.metric) for line in pair[0].metrics if line.metric in metrics[1]
        ]
    shown = [each for each in drawn if each is not None]
    return sorted(shown, key=lambda each: each.workload)


def _together(pair: tuple[WorkloadHistory, WorkloadHistory], metric: str) -> Together | None:
    series = [_relative(each, metric) for each in pair]
    places = sorted({point.commit for points in series for point in points})[-MOST_SESSIONS:]
    values = [point.value for points in series for point in points]
    down = pictures.vertical(values, top=_PAIR_TOP, bottom=_PAIR_BOTTOM)
    if down is None or not all(series) or _is_still(series):
        return None
    across = Scale(-0.5, len(places) - 0.5, 0.0, 100.0)
    at = {commit: across.place(place) for place, commit in enumerate(places)}
    curves, marks = [], []
    for side, points in zip(_SIDES, series, strict=True):
        shown = [
            (at[point.commit], down.place(point.value)) for point in points if point.commit in at
        ]
        curves.append(Curve(path=pictures.curve(shown), kind=side))
        if len(places) <= _MOST_MARKS:
            marks += [Symbol(x=x, y=y, shape=side) for x, y in shown]
    return Together(
        workload=pair[0].workload,
        title=Words(branch_history.title(metric)),
        picture=Picture(
            height=_PAIR_HEIGHT,
            label=_pair_label(series, metric),
            curves=tuple(curves),
            marks=tuple(marks),
        ),
        top=units.percent(max(values)),
        bottom=units.percent(min(values)),
    )


def _relative(each: WorkloadHistory, metric: str) -> list[_Point]:
    """Return how far each session lies from the first one that has a number."""
    centres = branch_history.centres(each, metric)
    known = [
        _Point(session.commit, value)
        for session, value in zip(each.sessions, centres, strict=True)
        if value is not None
    ]
    first = next((point.value for point in known if point.value), 0.0)
    return [_Point(point.commit, point.value / first - 1) for point in known] if first else []


def _is_still(series: Sequence[Sequence[_Point]]) -> bool:
    return all(branch_history.is_flat([1 + point.value for point in points]) for points in series)


def _pair_label(series: Sequence[Sequence[_Point]], metric: str) -> str:
    said = [
        f"{units.percent(points[-1].value)} over {units.numbered(len(points), 'session')} "
        f"on machine {number}"
        for number, points in enumerate(series, start=1)
    ]
    return f"{branch_history.title(metric)}: {', '.join(said)}"
