"""Builders of what `ci-perf watch` writes."""

from typing import Any

from ci_perf.model.watch import (
    CommitWindow,
    Creep,
    CreepStep,
    Culprit,
    LossCause,
    LossRow,
    Person,
    Since,
    Suspicion,
    Unanswered,
    Watched,
    WatchedRepository,
)
from tests.runs import a_run

DAY = "2026-11-29"


def a_sha(number: int) -> str:
    return f"{number:040x}"


def a_row(workload: str = "a", **fields: Any) -> LossRow:
    values: dict[str, Any] = {
        "metric": "step_time_s",
        "change": 1.1,
        "low": 1.08,
        "high": 1.12,
        "baseline": 0.010,
        "now": 0.011,
    }
    return LossRow(workload=workload, **{**values, **fields})


def a_culprit(number: int = 7, *workloads: str, **fields: Any) -> Culprit:
    values: dict[str, Any] = {
        "commit": a_sha(number),
        "parent": a_sha(number - 1),
        "author": Person(name="Ada"),
        "subject": "Copy the weights",
        "window": CommitWindow(good=a_sha(1), bad=a_sha(20), commits=19),
        "rows": tuple(map(a_row, workloads or ("a",))),
        "cause": LossCause(text="copy 1 → 3 calls", function="forward", file="model.py"),
        "first_seen": DAY,
        "checked": DAY,
    }
    return Culprit(**{**values, **fields})


def a_creep(**fields: Any) -> Creep:
    values: dict[str, Any] = {
        "workload": "a",
        "metric": "step_time_s",
        "since": Since(commit=a_sha(1), day="2026-10-01"),
        "change": 1.06,
        "low": 1.05,
        "high": 1.07,
        "largest": (
            CreepStep(commit=a_sha(3), subject="Check the input", change=1.02),
            CreepStep(commit=a_sha(9), subject="Log more", change=1.015, commits=4),
        ),
    }
    return Creep(**{**values, **fields})


def a_watch(**fields: Any) -> Watched:
    run = a_run()
    values: dict[str, Any] = {
        "tool": run.tool,
        "repository": WatchedRepository(root=a_sha(1), name="org/project"),
        "suite": "smoke",
        "machine": run.environment.hard,
        "started": f"{DAY}T02:00:00Z",
        "ended": f"{DAY}T03:00:00Z",
        "head": a_sha(20),
        "complete": True,
        "culprits": (a_culprit(),),
        "creeps": (a_creep(),),
        "suspicions": (
            Suspicion(
                workload="b",
                metric="step_time_s",
                good=a_sha(1),
                bad=a_sha(20),
                left=(a_sha(8), a_sha(9)),
            ),
        ),
        "no_answer": (Unanswered(workload="c", why="out of memory"),),
    }
    return Watched(**{**values, **fields})
