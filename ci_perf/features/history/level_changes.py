"""What moved along a branch: changes of level, those of one commit together, newest first."""

import math
from dataclasses import dataclass

from ci_perf.features.history.branch_history import BranchHistory, LevelChange, WorkloadHistory
from ci_perf.model import metrics
from ci_perf.model.commit import Commit
from ci_perf.model.metrics import Better
from ci_perf.report import units
from ci_perf.report.escape import Words

# A table of all that ever moved is not read; a quarter is what people plan and remember.
RECENT_DAYS = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricMove:
    """One metric that moved, from one level to the next."""

    workload: str
    metric: str
    change: LevelChange

    @property
    def size(self) -> float:
        """The distance of the new level from the one before, as a logarithm."""
        before, after = self.change.before, self.change.after
        return abs(math.log(after / before)) if before and after else math.inf

    @property
    def is_worse(self) -> bool:
        """Whether the new level is the worse one."""
        is_higher_better = metrics.metric_of(self.metric).better is Better.HIGHER
        return (self.change.after > self.change.before) is not is_higher_better

    @property
    def words(self) -> Words:
        """Name the change: +4.2 %, or how much more there is than nothing."""
        if self.change.before:
            return units.percent(self.change.after / self.change.before - 1)
        unit = metrics.metric_of(self.metric).unit
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


def find_causes(history: BranchHistory) -> list[SharedCause]:
    """Return what moved, newest commit first; within a commit by machine and suite."""
    moved: dict[tuple[int, str, str, bool], list[tuple[MetricMove, int, WorkloadHistory]]] = {}
    for workload in history.workloads:
        for line in workload.metrics:
            for change in line.changes:
                if change.before == change.after:
                    continue
                near = _find_accepted_near(workload, change)
                session = change.session if near is None else near
                commit = workload.sessions[session].commit
                move = MetricMove(workload=workload.workload, metric=line.metric, change=change)
                key = (commit, workload.machine, workload.suite, near is not None)
                moved.setdefault(key, []).append((move, session, workload))
    causes = []
    for key in sorted(moved, reverse=True):
        commit, machine, suite, accepted = key
        _, place, first = moved[key][0]
        moves = sorted(
            (move for move, _, _ in moved[key]),
            key=lambda move: (-move.size, move.workload, move.metric),
        )
        causes.append(
            SharedCause(
                machine=machine,
                suite=suite,
                commit=history.commits[commit],
                accepted=accepted,
                starts_anew=any(each.sessions[at].starts_anew for _, at, each in moved[key]),
                reason=first.sessions[place].reason if accepted else "",
                moves=tuple(moves),
            )
        )
    return causes


def belongs_to_accepted(workload: WorkloadHistory, change: LevelChange) -> bool:
    """Whether a change was accepted, or stands beside one that was, which it is a part of."""
    return _find_accepted_near(workload, change) is not None


def _find_accepted_near(workload: WorkloadHistory, change: LevelChange) -> int | None:
    """Return the accepted session of a change: the same one, or one beside it."""
    every = (each for line in workload.metrics for each in line.changes)
    accepted = {each.session for each in every if each.accepted}
    neighbors = (change.session, change.session - 1, change.session + 1)
    return next((session for session in neighbors if session in accepted), None)
