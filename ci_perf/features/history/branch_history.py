"""What git knows of the baselines of a branch: every session, who committed it, and what moved."""

from ci_perf.model.base import (
    SCHEMA_VERSION,
    Count,
    Finite,
    Items,
    Name,
    NameOrEmpty,
    Scalar,
    Statistic,
    Struct,
    SuiteName,
    Text,
)
from ci_perf.model.commit import Commit
from ci_perf.model.environment import Machine
from ci_perf.model.run import Source
from ci_perf.model.summary import Numbers


class HistorySession(Struct, frozen=True, kw_only=True):
    """A session, once. ``commit`` is the place in ``commits`` of the first one that has it.

    ``epochs`` counts, per metric, how often another level was accepted up to this session, over the
    whole history of the branch; absent is 0. ``starts_anew``: the file before it has no session in
    common with this one's.
    """

    run: Name
    recorded_at: Text
    source: Source
    reason: Text
    commit: Count
    epochs: dict[Name, Count] = {}
    starts_anew: bool = False
    processes: tuple[Numbers, ...]


class LevelChange(Struct, frozen=True, kw_only=True):
    """Another level of a metric, from the session at this place on; both in the metric's unit.

    ``accepted``: an epoch begins there. Else the series alone says so, which is no verdict.
    """

    session: Count
    before: Finite
    after: Finite
    accepted: bool


class MetricTimeline(Struct, frozen=True, kw_only=True):
    """A metric that gates. ``centre`` is that of its latest level.

    ``spread`` and ``trend`` are of its latest epoch, taken from the file as it stands at the end of
    the branch: ``spread`` is how much sessions differ (a standard deviation of logarithms),
    ``trend`` the end over the beginning of a line through them, ``has_drifted`` that every check
    says so. ``excludes`` is the loss that all pairs of a check would exclude, of launches that
    differ as those of one session so far: how sharp the gate is here.
    """

    metric: Name
    unit: Text
    centre: Finite
    spread: Finite | None
    excludes: Finite | None = None
    trend: Finite | None
    has_drifted: bool
    changes: tuple[LevelChange, ...]


class WorkloadHistory(Struct, frozen=True, kw_only=True):
    """A workload on one class of machine. ``machine`` is the folder, ``hard`` its latest facts.

    ``sessions`` are in the order of their commits, oldest first. ``removed`` is the place in
    ``BranchHistory.commits`` of the commit that removed the file, ``None`` where it is still there.
    """

    machine: Text
    hard: Machine
    suite: SuiteName
    workload: Name
    parameters: dict[str, Scalar]
    items_per_step: Items
    item_unit: Name
    statistic: Statistic
    removed: Count | None = None
    sessions: tuple[HistorySession, ...]
    metrics: tuple[MetricTimeline, ...]


class SkippedFile(Struct, frozen=True, kw_only=True):
    """Something in the folder that is no baseline of this version of ci-perf, and why."""

    path: Text
    commit: NameOrEmpty
    reason: Text


class BranchHistory(Struct, tag_field="type", tag="history", frozen=True, kw_only=True):
    """The baselines along one branch. ``commits`` are those that changed them, oldest first.

    ``repository_url`` begins with https:// or is empty. ``has_change_points``: levels that nobody
    accepted were looked for.
    """

    schema_version: int = SCHEMA_VERSION
    ref: Text
    commit: Name
    read_at: Text
    is_shallow: bool
    repository_url: Text
    has_change_points: bool
    commits: tuple[Commit, ...]
    workloads: tuple[WorkloadHistory, ...]
    skipped: tuple[SkippedFile, ...] = ()
