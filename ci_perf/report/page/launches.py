"""Every launch of one metric in its order: committed sessions, launches of the head, then pairs."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ci_perf.judging import launch_numbers
from ci_perf.model.run import Run
from ci_perf.model.summary import Numbers, Subject, Summary
from ci_perf.report import phrases, units
from ci_perf.report.page import pictures
from ci_perf.report.page.pictures import Band, Caption, Picture, Segment, Shape, Side, Symbol

_HEIGHT = 142
# Room for the highest value above; for the lowest one and the names of the groups below.
_TOP, _BOTTOM = 18.0, 104.0
# In per cent of the width: a letter of 12 px on a phone.
_LETTER_WIDTH = 2.2
# Older sessions say little, and crowd the picture.
MOST_SESSIONS = 12
# With further ones the page of a large suite would be too large: it says how many are left out.
_MOST_OF_A_SESSION = 12
_MOST_PAIRS = 60

Key = tuple[str, str]
"""A workload and a metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launches:
    """The values of one metric of one workload, all in its unit.

    ``sessions`` are those of the baseline, oldest first; ``pairs`` are base, head, and which of
    them was launched first.
    """

    sessions: tuple[tuple[float, ...], ...] = ()
    head: tuple[float, ...] = ()
    pairs: tuple[tuple[float, float, Side], ...] = ()

    @property
    def count(self) -> int:
        """How many launches there are."""
        return sum(map(len, self.sessions)) + len(self.head) + 2 * len(self.pairs)

    def shown(self) -> "Launches":
        """Return what is drawn: the latest sessions, and the first launches of each."""
        return Launches(
            sessions=tuple(each[:_MOST_OF_A_SESSION] for each in self.sessions[-MOST_SESSIONS:]),
            head=self.head[:_MOST_OF_A_SESSION],
            pairs=self.pairs[:_MOST_PAIRS],
        )


def collect(run: Run | None, base: Summary | None) -> dict[Key, Launches]:
    """Return the values of every metric of every workload, as the judge sees them."""
    sessions = _of_sessions(base.subjects if base else ())
    head = _of_head(run) if run else {}
    pairs = _of_pairs(run) if run else {}
    return {
        key: Launches(
            sessions=tuple(sessions.get(key, ())),
            head=head.get(key, ()),
            pairs=tuple(pairs.get(key, ())),
        )
        for key in sessions.keys() | head.keys() | pairs.keys()
    }


def _of_sessions(subjects: Iterable[Subject]) -> dict[Key, list[tuple[float, ...]]]:
    values: dict[Key, list[tuple[float, ...]]] = defaultdict(list)
    for subject in subjects:
        for session in subject.sessions:
            for name, numbers in _by_metric(session.processes).items():
                values[subject.workload, name].append(numbers)
    return values


def _of_head(run: Run) -> dict[Key, tuple[float, ...]]:
    return {
        (measured.workload, name): numbers
        for measured in run.measured
        for name, numbers in _by_metric(launch_numbers.of_workload(measured, run)).items()
    }


def _of_pairs(run: Run) -> dict[Key, list[tuple[float, float, Side]]]:
    values: dict[Key, list[tuple[float, float, Side]]] = defaultdict(list)
    measured = {each.workload: each for each in run.measured}
    for paired in run.paired:
        if paired.workload not in measured:
            continue  # it failed after its pairs, and has no row of numbers
        numbers = launch_numbers.of_pairs(paired, measured[paired.workload], run)
        for pair, (base, head) in zip(paired.pairs, numbers, strict=True):
            for name in base.keys() & head.keys():
                values[paired.workload, name].append((base[name], head[name], pair.first))
    return values


def _by_metric(processes: Sequence[Numbers]) -> dict[str, tuple[float, ...]]:
    names = dict.fromkeys(name for process in processes for name in process)
    return {name: tuple(each[name] for each in processes if name in each) for name in names}


def picture(launches: Launches, metric: str) -> Picture | None:
    """Draw the launches of one metric; `None` unless both sides have some."""
    sessions, pairs = launches.sessions, launches.pairs
    if not (pairs or (sessions and launches.head)):
        return None
    history = [value for session in sessions for value in session]
    values = [*history, *launches.head, *(value for pair in pairs for value in pair[:2])]
    scale = pictures.vertical(values, top=_TOP, bottom=_BOTTOM)
    if scale is None:
        return None
    *of_sessions, of_head, of_pairs = pictures.columns(
        [*map(len, sessions), len(launches.head), 2 * len(pairs)]
    )
    marks: list[Symbol] = []
    lines: list[Segment] = []
    ends = {units.value(end(values), phrases.unit(metric)): None for end in (max, min)}
    captions = [
        Caption(x=0.5, y=y, text=text) for text, y in zip(ends, (11, _BOTTOM + 15), strict=False)
    ]
    for session, places in zip(sessions, of_sessions, strict=True):
        marks += _marks(session, places, scale, "history")
    marks += _marks(launches.head, of_head, scale, "head")
    for index, (base, head, first) in enumerate(pairs):
        left, right = of_pairs[2 * index], of_pairs[2 * index + 1]
        x_base, x_head = (left, right) if first == "base" else (right, left)
        lines.append(
            Segment(x1=x_base, y1=scale.place(base), x2=x_head, y2=scale.place(head), kind="pair")
        )
        marks += _marks([base], [x_base], scale, "base") + _marks([head], [x_head], scale, "head")
    names = _names(sessions=[x for xs in of_sessions for x in xs], head=of_head, pairs=of_pairs)
    lines += [Segment(x1=x, y1=_TOP, x2=x, y2=_BOTTOM, kind="divide") for _, x in names]
    return Picture(
        height=_HEIGHT,
        label=_label(launches, metric),
        bands=_range_of_sessions(history, scale),
        lines=tuple(lines),
        marks=tuple(marks),
        captions=(*captions, *(caption for caption, _ in names)),
    )


def _names(**groups: Sequence[float]) -> list[tuple[Caption, float]]:
    """Name each group that has a launch, below its first one, or beside; return where that is."""
    begins = {name: places[0] for name, places in groups.items() if places}
    widths = [_LETTER_WIDTH * len(name) for name in begins]
    moved = pictures.apart([*begins.values()], widths, last=100)
    return [
        (Caption(x=x, y=_HEIGHT - 4, text=name), begin)
        for (name, begin), x in zip(begins.items(), moved, strict=True)
    ]


def _range_of_sessions(history: Sequence[float], scale: pictures.Scale) -> tuple[Band, ...]:
    """Mark what the committed sessions had, behind all other launches."""
    known = [value for value in history if math.isfinite(value)]
    if len(known) <= 1:
        return ()
    top, bottom = scale.place(max(known)), scale.place(min(known))
    height = max(round(bottom - top, 2), 1.0)
    return (Band(x=0, width=100, kind="history", y=top, height=height),)


def _marks(
    values: Sequence[float], places: Sequence[float], scale: pictures.Scale, shape: Shape
) -> list[Symbol]:
    return [
        Symbol(x=x, y=scale.place(value), shape=shape)
        for value, x in zip(values, places, strict=True)
        if math.isfinite(value)
    ]


def _label(launches: Launches, metric: str) -> str:
    unit = phrases.unit(metric)
    said = [
        f"{units.numbered(len(values), 'launch', 'launches')} of {name} "
        f"from {units.value(min(values), unit)} to {units.value(max(values), unit)}"
        for name, values in (
            ("the baseline", [value for session in launches.sessions for value in session]),
            ("the head", list(launches.head)),
            ("the base in pairs", [base for base, _, _ in launches.pairs]),
            ("the head in pairs", [head for _, head, _ in launches.pairs]),
        )
        if values
    ]
    return "; ".join(said)
