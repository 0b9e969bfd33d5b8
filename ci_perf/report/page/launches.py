"""Every launch of one metric in its order: committed sessions, launches of the head, then pairs."""

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ci_perf.judging import launch_numbers
from ci_perf.model.base import Side
from ci_perf.model.run import Run
from ci_perf.model.summary import Numbers, Summary
from ci_perf.report import phrases, units
from ci_perf.report.page import pictures
from ci_perf.report.page.pictures import Caption, Picture, Segment, Shape, Symbol

_HEIGHT = 122
# Room for the highest value above, and for the lowest one below.
_TOP, _BOTTOM = 18.0, 104.0
# Older sessions say little, and crowd the picture.
_MOST_SESSIONS = 12
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
            sessions=tuple(each[:_MOST_OF_A_SESSION] for each in self.sessions[-_MOST_SESSIONS:]),
            head=self.head[:_MOST_OF_A_SESSION],
            pairs=self.pairs[:_MOST_PAIRS],
        )


def collect(run: Run | None, base: Summary | None) -> dict[Key, Launches]:
    """Return the values of every metric of every workload, as the judge sees them."""
    sessions: dict[Key, list[tuple[float, ...]]] = defaultdict(list)
    for subject in base.subjects if base else ():
        for session in subject.sessions:
            for name, numbers in _by_metric(session.processes).items():
                sessions[subject.workload, name].append(numbers)
    head: dict[Key, tuple[float, ...]] = {}
    pairs: dict[Key, list[tuple[float, float, Side]]] = defaultdict(list)
    if run is not None:
        measured = {each.workload: each for each in run.measured}
        for each in run.measured:
            for name, numbers in _by_metric(
                launch_numbers.list_workload_numbers(each, run)
            ).items():
                head[each.workload, name] = numbers
        # One that failed after its pairs has no row of numbers.
        for paired in (each for each in run.paired if each.workload in measured):
            both = launch_numbers.list_pair_numbers(paired, measured[paired.workload], run)
            for pair, (old, new) in zip(paired.pairs, both, strict=True):
                for name in old.keys() & new.keys():
                    pairs[paired.workload, name].append((old[name], new[name], pair.first))
    return {
        key: Launches(
            sessions=tuple(sessions.get(key, ())),
            head=head.get(key, ()),
            pairs=tuple(pairs.get(key, ())),
        )
        for key in sessions.keys() | head.keys() | pairs.keys()
    }


def _by_metric(processes: Sequence[Numbers]) -> dict[str, tuple[float, ...]]:
    names = dict.fromkeys(name for process in processes for name in process)
    return {name: tuple(each[name] for each in processes if name in each) for name in names}


def draw(launches: Launches, metric: str) -> Picture | None:
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
    marks = _mark(history, itertools.chain(*of_sessions), scale, "history")
    marks += _mark(launches.head, of_head, scale, "head")
    lines: list[Segment] = []
    for at, (base, head, first) in enumerate(pairs):
        both = of_pairs[2 * at : 2 * at + 2]
        x_base, x_head = both if first == "base" else reversed(both)
        lines.append(
            Segment(x1=x_base, y1=scale.place(base), x2=x_head, y2=scale.place(head), kind="pair")
        )
        marks += _mark([base], [x_base], scale, "base") + _mark([head], [x_head], scale, "head")
    unit = phrases.unit(metric)
    ends = dict.fromkeys([units.value(max(values), unit), units.value(min(values), unit)])
    label = f"{len(history) + len(launches.head)} launches and {len(pairs)} pairs, "
    return Picture(
        height=_HEIGHT,
        label=label + f"from {units.value(min(values), unit)} to {units.value(max(values), unit)}",
        lines=tuple(lines),
        marks=tuple(marks),
        captions=tuple(
            Caption(x=0.5, y=y, text=text)
            for text, y in zip(ends, (11, _BOTTOM + 15), strict=False)
        ),
    )


def _mark(
    values: Iterable[float], places: Iterable[float], scale: pictures.Scale, shape: Shape
) -> list[Symbol]:
    return [
        Symbol(x=x, y=scale.place(value), shape=shape)
        for value, x in zip(values, places, strict=True)
        if math.isfinite(value)
    ]
