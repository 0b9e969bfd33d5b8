"""The values of one metric of a workload: by session and epoch, and the one value for a side.

An accepted change begins a new epoch of a metric: what was measured before describes another speed.
It still says how much sessions and launches differ.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from ci_perf.judging.policy import KIND_OF
from ci_perf.model import metrics
from ci_perf.model.metrics import Kind, Metric
from ci_perf.model.summary import Numbers, Subject

Sessions = Sequence[Sequence[float]]
"""Values of one metric: one list per session, one value per process."""
Pairs = Sequence[tuple[float, float]]
"""Values of base and head that were launched in turns."""

# Counted, not timed: the same code gives the same number.
EXACT = frozenset({Kind.COUNT, Kind.DEVICE_MEMORY})


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Values of one metric per session: those of the current epoch, then those of each before.

    The head is compared with the current epoch alone. How much sessions and launches differ is
    learned from all, each session around the mean of its own epoch.
    """

    current: Sessions
    earlier: tuple[Sessions, ...] = ()

    def map(self, change: Callable[[float], float]) -> "History":
        """Return the same history of changed values, such as their logarithms."""
        epochs = [
            [list(map(change, session)) for session in epoch]
            for epoch in (self.current, *self.earlier)
        ]
        return History(current=epochs[0], earlier=tuple(epochs[1:]))


class Recorded(Protocol):
    """A session, in whatever form it is kept."""

    @property
    def epochs(self) -> Mapping[str, int]:
        """Accepted changes up to this session, by metric."""

    @property
    def processes(self) -> Sequence[Numbers]:
        """The numbers of each launch."""


R = TypeVar("R", bound=Recorded)


def find_judged(sessions: Iterable[Recorded]) -> tuple[Metric, ...]:
    """Return what may have a verdict: the metrics of ours, and the user's own of these sessions."""
    return (*metrics.JUDGED, *metrics.find_own(_list_names(sessions)))


def find_recorded(
    sessions: Iterable[Recorded], *, of: Iterable[Metric] = metrics.JUDGED
) -> tuple[Metric, ...]:
    """Return the metrics that these sessions have: those `of` ours, then the user's own."""
    names = _list_names(sessions)
    return (*(each for each in of if each.name in names), *metrics.find_own(names))


def _list_names(sessions: Iterable[Recorded]) -> set[str]:
    return {name for session in sessions for process in session.processes for name in process}


def list_current_epoch(subject: Subject, metric: Metric) -> Sessions:
    """Return the values of a metric per session of its current epoch, without those that lack it.

    Empty where an accepted change took the metric away.
    """
    return history(subject, metric).current


def name_current(subject: Subject) -> set[str]:
    """Return the names of what the subject has in its current epoch."""
    if not any(session.epochs for session in subject.sessions):
        return _list_names(subject.sessions)
    names = _list_names(subject.sessions)
    return {name for name in names if current_sessions(subject.sessions, name)}


def history(subject: Subject, metric: Metric) -> History:
    """Return the values of a metric per session of a subject: see `history_of`."""
    return history_of(subject.sessions, metric)


def history_of(sessions: Sequence[Recorded], metric: Metric) -> History:
    """Return the values of a metric per session, by epoch; sessions that lack it are left out."""
    name, newest = metric.name, 0
    epochs: dict[int, list[list[float]]] = {}
    for session in sessions:
        epoch = session.epochs.get(name, 0)
        newest = max(newest, epoch)
        if values := list_session_values(session, name):
            epochs.setdefault(epoch, []).append(values)
    current = epochs.pop(newest, [])
    return History(current=current, earlier=tuple(epochs[number] for number in sorted(epochs)))


def current_sessions(sessions: Sequence[R], name: str) -> list[R]:
    """Return the sessions of a metric's current epoch that have it."""
    newest = current_epoch(sessions, name)
    return [
        session
        for session in sessions
        if _epoch(session, name) == newest and list_session_values(session, name)
    ]


def by_epoch(sessions: Sequence[R], name: str) -> list[list[R]]:
    """Return the sessions that have a metric, by epoch."""
    epochs: dict[int, list[R]] = {}
    for session in sessions:
        if list_session_values(session, name):
            epochs.setdefault(_epoch(session, name), []).append(session)
    return [epochs[number] for number in sorted(epochs)]


def current_epoch(sessions: Sequence[Recorded], name: str) -> int:
    """Return the number of a metric's current epoch; a session that lacks it may have begun it."""
    return max((_epoch(session, name) for session in sessions), default=0)


def _epoch(session: Recorded, name: str) -> int:
    return session.epochs.get(name, 0)


def list_session_values(session: Recorded, name: str) -> list[float]:
    """Return the values of a metric in one session."""
    return [process[name] for process in session.processes if name in process]


def centres(subject: Subject) -> Numbers:
    """Return the centre of every metric that the subject has."""
    recorded = find_recorded(subject.sessions, of=metrics.ALL)
    values = {metric: list_current_epoch(subject, metric) for metric in recorded}
    return {
        metric.name: centre(metric.kind, sessions)
        for metric, sessions in values.items()
        if sessions
    }


def centre(kind: Kind, sessions: Sessions) -> float:
    """Return the one value that stands for a side.

    Noisy kinds: the geometric mean of the sessions' geometric means, so that the ratio of two
    centres is the ratio that is judged. Exact kinds: the largest value that was seen. All others:
    the median of all values.
    """
    if kind in KIND_OF:
        return math.exp(statistics.fmean(map(mean_logarithm, sessions)))
    values = [value for session in sessions for value in session]
    return max(values) if kind in EXACT else statistics.median(values)


def mean_logarithm(session: Sequence[float]) -> float:
    """Return the mean of the logarithms of the values of a session."""
    return statistics.fmean(map(math.log, session))
