"""Two machines on one axis: how far each has moved since its first session that is drawn."""

from collections.abc import Sequence
from dataclasses import dataclass

from ci_perf.model.history import BranchHistory, WorkloadHistory
from ci_perf.report import branch_history, units
from ci_perf.report.escape import Words
from ci_perf.report.page import pictures
from ci_perf.report.page.pictures import Curve, Picture, Scale, Side, Symbol

_HEIGHT = 130
_TOP, _BOTTOM = 8.0, 122.0
_MOST_PLACES = 500
_MOST_MARKS = 60
# The marks and lines of a comparison tell two series apart by shape and colour.
_SIDES: tuple[Side, Side] = ("base", "head")


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


def of(history: BranchHistory, machines: Sequence[str]) -> list[Together]:
    """Draw every metric that both machines have; nothing unless there are two names."""
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
    places = sorted({point.commit for points in series for point in points})[-_MOST_PLACES:]
    values = [point.value for points in series for point in points]
    down = pictures.vertical(values, top=_TOP, bottom=_BOTTOM)
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
            height=_HEIGHT,
            label=_label(series, metric),
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


def _label(series: Sequence[Sequence[_Point]], metric: str) -> str:
    said = [
        f"{units.percent(points[-1].value)} over {units.numbered(len(points), 'session')} "
        f"on machine {number}"
        for number, points in enumerate(series, start=1)
    ]
    return f"{branch_history.title(metric)}: {', '.join(said)}"
