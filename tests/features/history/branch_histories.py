"""The document of a branch's history, made from series of step times."""

import itertools
from typing import Any

from ci_perf.features.history.branch_history import (
    BranchHistory,
    HistorySession,
    LevelChange,
    MetricTimeline,
    SkippedFile,
    WorkloadHistory,
)
from ci_perf.model import metrics
from ci_perf.model.commit import Commit
from ci_perf.model.run import Source
from tests.runs import CPU, HEAD_COMMIT


def a_commit(place=0, *, author="maintainer", age_days=None, title="Accept"):
    """The commit at a place; by default each is a day younger than the one before."""
    return Commit(
        id=f"{place:040x}",
        author=author,
        date=f"2026-{1 + place // 28 % 12:02}-{1 + place % 28:02}T12:00:00Z",
        title=title,
        age_days=max(0.0, 60.0 - place) if age_days is None else age_days,
    )


def a_change(session, before=1e-3, after=1.1e-3, *, accepted=True):
    return LevelChange(session=session, before=before, after=after, accepted=accepted)


def a_line(*changes, metric="step_time_s", centre=1e-3, **more):
    known = metrics.BY_NAME[metric]
    values: dict[str, Any] = {
        "spread": 0.01,
        "excludes": 0.0171,
        "trend": None,
        "has_drifted": False,
    } | more
    return MetricTimeline(
        metric=metric, unit=known.unit.value, centre=centre, changes=changes, **values
    )


def a_workload_history(*launches, lines=None, workload="w", machine="cpu-amd-epyc-2-cores", **more):
    """A session for each list of launches: numbers by metric, or one step time for each."""
    sessions = tuple(
        HistorySession(
            run=f"r{place}",
            recorded_at=f"2026-01-{1 + place % 28:02}T10:00:00Z",
            source=Source(commit=HEAD_COMMIT, branch="main", dirty=False),
            reason=f"reason {place}",
            commit=place,
            processes=tuple(
                each if isinstance(each, dict) else {"step_time_s": each} for each in session
            ),
        )
        for place, session in enumerate(launches)
    )
    whole: dict[str, Any] = {
        "hard": CPU,
        "suite": "smoke",
        "parameters": {},
        "items_per_step": 1.0,
        "item_unit": "step",
        "statistic": "median",
        "metrics": (a_line(),) if lines is None else tuple(lines),
    } | more
    return WorkloadHistory(machine=machine, workload=workload, sessions=sessions, **whole)


def a_branch_history(*workloads, **more):
    """The history of these workloads, with a commit for each of their sessions."""
    number = max((len(each.sessions) for each in workloads), default=1)
    whole: dict[str, Any] = {
        "ref": "main",
        "commit": "f" * 40,
        "read_at": "2026-11-23T06:00:00Z",
        "is_shallow": False,
        "repository_url": "",
        "has_change_points": True,
        "commits": tuple(map(a_commit, range(number))),
    } | more
    return BranchHistory(workloads=workloads, **whole)


def skipped(reason="w.json: damaged"):
    return SkippedFile(path="w.json", commit="a" * 40, reason=reason)


def steps(number, *, moved_at=(), ratio=1.1, start=0.01):
    """Three launches for each session, slower by a ratio from each of these places on."""
    moves = itertools.accumulate(
        (ratio if place in moved_at else 1.0 for place in range(number)), lambda a, b: a * b
    )
    return [
        [start * move * (1 + 0.002 * ((place + launch) % 3)) for launch in range(3)]
        for place, move in enumerate(moves)
    ]
