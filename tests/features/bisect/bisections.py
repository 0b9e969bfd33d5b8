"""Builders of what a bisect has found: a line of commits and their answers."""

from ci_perf.features.bisect.bisection import BisectedCommit, Bisection, CommitAnswer, ParentPairs
from ci_perf.model.commit import Commit
from ci_perf.model.comparison import Verdict
from ci_perf.model.run import Tool
from tests.comparisons import a_change
from tests.runs import CPU

SLOWER = a_change("mlp", verdict=Verdict.REGRESSED, ratio=1.3)
AS_FAST = a_change("mlp", ratio=1.001, pairs=4, code="baseline_moved")


def a_bisected(place, answer=CommitAnswer.OPEN, *, author="maintainer", parents=1, **more):
    """The commit at a place of the line."""
    title = more.pop("title", f"Change {place}")
    commit = Commit(
        id=f"{place:x}" * 40, author=author, date="2026-11-21T10:00:00Z", title=title, age_days=1.0
    )
    return BisectedCommit(commit=commit, parents=parents, answer=answer, **more)


def a_bisection(*commits, outcome="found", **more):
    """Of six commits, the fourth made it worse; or the line that is given."""
    line = commits or (
        a_bisected(0, CommitAnswer.LIKE_GOOD),
        a_bisected(1, CommitAnswer.LIKE_GOOD, same_as="0" * 40),
        a_bisected(2, CommitAnswer.LIKE_GOOD, change=AS_FAST),
        a_bisected(3, CommitAnswer.LIKE_BAD, change=SLOWER),
        a_bisected(4),
        a_bisected(5, CommitAnswer.LIKE_BAD, change=SLOWER),
    )
    return Bisection(
        tool=Tool(version="0.1.0"),
        suite="smoke",
        workload="mlp",
        metric=more.pop("metric", "step_time_s"),
        good="v1.0",
        bad="main",
        outcome=outcome,
        ended=more.pop("ended", "decided"),
        started_at="2026-11-21T10:00:00Z",
        duration_s=754.0,
        budget_s=7200.0,
        sessions=4,
        machine=CPU,
        low=more.pop("low", 2),
        high=more.pop("high", 3),
        commits=line,
        parent=more.pop("parent", ParentPairs(change=SLOWER) if outcome == "found" else None),
        **more,
    )
