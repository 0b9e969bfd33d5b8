"""What moved along a branch: changes of level, those of one cause together, newest first."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ci_perf.model import metrics
from ci_perf.model.history import (
    BranchHistory,
    Commit,
    HistorySession,
    LevelChange,
    WorkloadHistory,
)
from ci_perf.model.metrics import Better
from ci_perf.report import units
from ci_perf.report.escape import Words

# A table of all that ever moved is not read; a quarter is what people plan and remember.
RECENT_DAYS = 90
# A change point may be found one session beside the place where an epoch begins.
_APART = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricMove:
    """One metric that moved, from one level to the next."""

    workload: str
    metric: str
    change: LevelChange

    @property
    def ratio(self) -> float | None:
        """The new level over the one before; `None` from zero."""
        return self.change.after / self.change.before if self.change.before else None

    @property
    def is_worse(self) -> bool:
        """Whether the new level is the worse one."""
        is_higher_better = metrics.BY_NAME[self.metric].better is Better.HIGHER
        return (self.change.after > self.change.before) is not is_higher_better

    @property
    def words(self) -> Words:
        """Name the change: +4.2 %, or how much more there is than nothing."""
        if self.ratio is not None:
            return units.percent(self.ratio - 1)
        unit = metrics.BY_NAME[self.metric].unit
        return units.difference(self.change.before, self.change.after, unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedCause:
    """Moves that began with one commit on one class of machine, largest first.

    ``reason`` is what the session of an accepted change gives. ``starts_anew``: a history without
    any session of the one before, whose numbers may stand for something else.
    """

    machine: str
    suite: str
    commit: Commit
    run: str
    measured: str
    accepted: bool
    starts_anew: bool
    reason: str
    moves: tuple[MetricMove, ...]

    @property
    def is_recent(self) -> bool:
        """Whether the commit is one of the last 90 days."""
        return self.commit.age_days <= RECENT_DAYS

    @property
    def is_worse(self) -> bool:
        """Whether the largest move is to the worse."""
        return self.moves[0].is_worse


@dataclass(frozen=True, slots=True)
class _Event:
    """The moves of one workload that belong together, and the session where they began."""

    workload: WorkloadHistory
    session: int
    accepted: bool
    moves: tuple[MetricMove, ...]


def causes(history: BranchHistory) -> list[SharedCause]:
    """Return what moved, newest commit first; within a commit by machine and suite."""
    events = [event for workload in history.workloads for event in _events(workload)]
    events.sort(key=_cause)
    grouped = [list(group) for _, group in itertools.groupby(events, key=_cause)]
    return [_as_cause(history, group) for group in reversed(grouped)]


def _cause(event: _Event) -> tuple[int, str, str, bool]:
    workload = event.workload
    return _session(event).commit, workload.machine, workload.suite, event.accepted


def _events(workload: WorkloadHistory) -> Iterator[_Event]:
    """Put moves of one workload together that begin at the same session, or beside an accepted."""
    moves = [
        MetricMove(workload=workload.workload, metric=line.metric, change=change)
        for line in workload.metrics
        for change in line.changes
        if change.before != change.after
    ]
    moves.sort(key=lambda move: move.change.session)
    known = accepted_sessions(workload)
    together: dict[tuple[int, bool], list[MetricMove]] = {}
    anchor = -math.inf
    for move in moves:
        session = move.change.session
        near = nearest(known, session)
        if near is not None:
            together.setdefault((near, True), []).append(move)
            continue
        if session - anchor > _APART:
            anchor = session
        together.setdefault((int(anchor), False), []).append(move)
    for (session, accepted), members in together.items():
        yield _Event(workload, session, accepted, tuple(members))


def accepted_sessions(workload: WorkloadHistory) -> list[int]:
    """Return the places of the sessions with which any metric's change was accepted."""
    changes = (change for line in workload.metrics for change in line.changes)
    return sorted({change.session for change in changes if change.accepted})


def nearest(accepted: Iterable[int], session: int) -> int | None:
    """Return the accepted session that a change belongs to: the same one, or one beside it."""
    near = min(accepted, key=lambda place: abs(place - session), default=None)
    return near if near is not None and abs(near - session) <= _APART else None


def _as_cause(history: BranchHistory, events: Sequence[_Event]) -> SharedCause:
    first = events[0]
    session = _session(first)
    return SharedCause(
        machine=first.workload.machine,
        suite=first.workload.suite,
        commit=history.commits[session.commit],
        run=session.run,
        measured=session.source.commit,
        accepted=first.accepted,
        starts_anew=any(_session(event).starts_anew for event in events),
        reason=session.reason if first.accepted else "",
        moves=tuple(sorted((move for event in events for move in event.moves), key=_smallness)),
    )


def _session(event: _Event) -> HistorySession:
    return event.workload.sessions[event.session]


def _smallness(move: MetricMove) -> tuple[float, str, str]:
    size = abs(math.log(move.ratio)) if move.ratio else math.inf
    return -size, move.workload, move.metric


def recent(every: Iterable[SharedCause]) -> list[SharedCause]:
    """Return those of the last 90 days."""
    return [cause for cause in every if cause.is_recent]
