"""One workload on one side, asked for the values of its metrics.

A metric's sessions are of epochs: an accepted change begins a new one, and what was measured
before describes another speed. It still says how much sessions and launches differ.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from ci_perf.judge import evidence
from ci_perf.judge.screen import History
from ci_perf.model import metrics
from ci_perf.model.metrics import Metric
from ci_perf.model.summary import Numbers, Subject


class Recorded(Protocol):
    """A session, in whatever form it is kept."""

    @property
    def epochs(self) -> Mapping[str, int]:
        """Accepted changes up to this session, by metric."""

    @property
    def processes(self) -> Sequence[Numbers]:
        """The numbers of each launch."""


R = TypeVar("R", bound=Recorded)


def values(subject: Subject, metric: Metric) -> list[list[float]]:
    """Return the values of a metric per session of its current epoch, without those that lack it.

    Empty where an accepted change took the metric away.
    """
    return [launches(one, metric.name) for one in current(subject.sessions, metric.name)]


def history(subject: Subject, metric: Metric) -> History:
    """Return the values of a metric per session, by epoch; sessions that lack it are left out."""
    newest = epoch(subject.sessions, metric.name)
    before = [one for one in subject.sessions if one.epochs.get(metric.name, 0) != newest]
    return History(
        current=values(subject, metric),
        earlier=tuple(
            [launches(one, metric.name) for one in found] for found in epochs(before, metric.name)
        ),
    )


def current(sessions: Sequence[R], name: str) -> list[R]:
    """Return the sessions of a metric's current epoch that have it."""
    newest = epoch(sessions, name)
    return [one for one in sessions if one.epochs.get(name, 0) == newest and launches(one, name)]


def epochs(sessions: Sequence[R], name: str) -> list[list[R]]:
    """Return the sessions that have a metric, by epoch."""
    found: dict[int, list[R]] = {}
    for one in sessions:
        if launches(one, name):
            found.setdefault(one.epochs.get(name, 0), []).append(one)
    return [found[number] for number in sorted(found)]


def epoch(sessions: Sequence[Recorded], name: str) -> int:
    """Return the number of a metric's current epoch; a session that lacks it may have begun it."""
    return max((session.epochs.get(name, 0) for session in sessions), default=0)


def launches(session: Recorded, name: str) -> list[float]:
    """Return the values of a metric in one session."""
    return [process[name] for process in session.processes if name in process]


def numbers(subject: Subject) -> Numbers:
    """Return the centre of every metric that the subject has."""
    found = ((metric, values(subject, metric)) for metric in metrics.ALL)
    return {metric.name: evidence.centre(metric.kind, v) for metric, v in found if v}
