"""One metric over the sessions of a branch, which lie at equal distances, whatever their dates."""

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_perf.features.history import level_changes, report
from ci_perf.features.history.branch_history import LevelChange, MetricTimeline, WorkloadHistory
from ci_perf.judging import metric_values
from ci_perf.model import metrics
from ci_perf.report import units
from ci_perf.report.escape import Words
from ci_perf.report.page import pictures
from ci_perf.report.page.pictures import Caption, Curve, Picture, Scale, Segment, Symbol
from ci_perf.report.phrases import metric_title

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


def draw(each: WorkloadHistory, line: MetricTimeline, dates: Sequence[str]) -> TimelinePlot | None:
    """Draw one metric of one workload; `None` where no session has it. `dates` are of sessions."""
    offset = max(len(each.sessions) - MOST_SESSIONS, 0)
    launches = [metric_values.list_session_values(s, line.metric) for s in each.sessions[offset:]]
    centres = report.centres(each, line.metric)[offset:]
    known = [value for value in centres if value is not None]
    # A single session has no other to lie beside: its launches make the axis.
    ends = known if len(known) > 1 else [value for session in launches for value in session]
    down = pictures.vertical(ends, top=_TOP, bottom=_BOTTOM)
    if down is None:
        return None
    across = Scale(-0.5, len(centres) - 0.5, 0.0, 100.0)
    changes = [
        (change, change.session - offset, level_changes.belongs_to_accepted(each, change))
        for change in line.changes
        if change.session >= offset
    ]
    unit = metrics.metric_of(line.metric).unit
    top, bottom = units.value(max(ends), unit), units.value(min(ends), unit)
    low_to_high = f"{units.value(min(known), unit)} to {units.value(max(known), unit)}"
    moves = [
        f"{_words(change)} at session {change.session + 1}, "
        + ("accepted" if accepted else "accepted by nobody")
        for change, _, accepted in changes[-_MOST_LABELS:]
    ]
    title = metric_title(line.metric)
    label = f"{title}: {units.render_count(len(known), 'session')}, {low_to_high}"
    return TimelinePlot(
        title=Words(title),
        picture=Picture(
            height=_HEIGHT,
            label="; ".join([label, *moves]),
            curves=tuple(_curves(launches, centres, changes, across, down)),
            lines=tuple(
                Segment(
                    x1=across.place(at - 0.5),
                    y1=_TOP - 4,
                    x2=across.place(at - 0.5),
                    y2=_BOTTOM,
                    kind="accepted" if accepted else "seen",
                )
                for _, at, accepted in changes
            ),
            marks=tuple(
                Symbol(x=across.place(at), y=down.place(value), shape="history")
                for at, value in enumerate(centres)
                if value is not None and math.isfinite(value) and len(centres) <= _MOST_MARKS
            ),
            captions=tuple(_captions(changes, across)),
        ),
        top=top,
        bottom=bottom if bottom != top else Words(""),
        first=dates[offset],
        last=dates[-1] if len(dates) - offset > 1 else "",
        words=_below(each, line, offset),
    )


# A change of level, its place among the drawn sessions, and whether somebody has accepted it.
_Change = tuple[LevelChange, int, bool]


def _words(change: LevelChange) -> Words:
    return units.percent(change.after / change.before - 1) if change.before else Words("from 0")


def _below(each: WorkloadHistory, line: MetricTimeline, offset: int) -> Words:
    unit = metrics.metric_of(line.metric).unit
    parts = [
        f"now {units.value(line.centre, unit)}",
        units.render_count(len(each.sessions), "session"),
    ]
    if offset:
        parts[-1] += f" ({offset:,} older ones not drawn)"
    if line.spread is not None:
        parts.append(f"sessions differ by {100 * line.spread:.1f} %")
    if line.has_drifted and line.trend is not None:
        parts.append(f"drifted by {units.percent(line.trend - 1)}")
    return Words(", ".join(parts))


def _curves(
    launches: Sequence[Sequence[float]],
    centres: Sequence[float | None],
    changes: Sequence[_Change],
    across: Scale,
    down: Scale,
) -> Iterator[Curve]:
    """Yield the middle half of the launches, the levels between changes, and the centres."""
    areas, middles = "", ""
    for run in _runs(centres):
        low = [(across.place(at), down.place(_quartiles(launches[at])[0])) for at in run]
        high = [(across.place(at), down.place(_quartiles(launches[at])[1])) for at in run]
        areas += pictures.curve([*low, *reversed(high)]) + "z"
        known = ((at, centres[at]) for at in run)
        middles += pictures.curve(
            [(across.place(at), down.place(value)) for at, value in known if value is not None]
        )
    if any(len(set(session)) > 1 for session in launches):
        yield Curve(path=areas, kind="spread")
    if changes:
        bounds = [at for _, at, _ in changes]
        values = [changes[0][0].before, *(change.after for change, _, _ in changes)]
        path = ""
        for value, first, end in zip(values, [0, *bounds], [*bounds, len(centres)], strict=True):
            if end > first:
                y = down.place(value)
                path += pictures.curve(
                    [(across.place(first - 0.5), y), (across.place(end - 0.5), y)]
                )
        yield Curve(path=path, kind="level")
    yield Curve(path=middles, kind="centre")


def _quartiles(launches: Sequence[float]) -> tuple[float, float]:
    """Return where the middle half of the launches lies; all of fewer than four."""
    if len(launches) < 4:
        return min(launches), max(launches)
    low, _, high = statistics.quantiles(launches, n=4, method="inclusive")
    return low, high


def _runs(values: Sequence[float | None]) -> list[list[int]]:
    """Return the places of values that stand together without a gap."""
    runs: list[list[int]] = []
    for at, value in enumerate(values):
        if value is None:
            continue
        if not runs or runs[-1][-1] != at - 1:
            runs.append([])
        runs[-1].append(at)
    return runs


def _captions(changes: Sequence[_Change], across: Scale) -> Iterator[Caption]:
    """Name the changes in two lines, newest first; what would cover other words is left out."""
    free = [math.inf, math.inf]
    for change, at, accepted in reversed(changes):
        x = across.place(at - 0.5)
        right = x if x > 50 else x + _WORDS_WIDTH
        row = next((row for row, end in enumerate(free) if right <= end), None)
        if row is not None:
            free[row] = right - _WORDS_WIDTH
            anchor: pictures.Anchor = "end" if x > 50 else "start"
            text = _words(change) + ("" if accepted else "?")
            yield Caption(x=x, y=_ROWS[row], text=text, anchor=anchor)
