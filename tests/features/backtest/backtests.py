"""Builders of what a back-test has found."""

from ci_perf.features.backtest.backtested import Backtest, BacktestedMerge, MergeOutcome
from ci_perf.model.commit import Commit
from ci_perf.model.comparison import Verdict
from ci_perf.model.run import Tool
from tests.comparisons import a_change
from tests.runs import CPU

SLOWER = a_change("mlp", verdict=Verdict.REGRESSED, ratio=1.041)


def a_merge(place, outcome=MergeOutcome.UNCHANGED, **more):
    """The merge at a place of the line."""
    if outcome is MergeOutcome.MOVED:
        more = {"changes": (SLOWER,), "first": (SLOWER,), "retest": 1} | more
    commit = Commit(
        id=f"{place:x}" * 40, author="maintainer", date="2026-11-21T10:00:00Z", title=f"#{place}"
    )
    return BacktestedMerge(commit=commit, parent=f"{place + 1:x}" * 40, outcome=outcome, **more)


def a_backtest(*merges, **more):
    """Three merges, of which one moved; or those that are given."""
    return Backtest(
        tool=Tool(version="0.1.0"),
        repository="e" * 40,
        ref="main",
        suite="smoke",
        rules="0123456789abcdef",
        asked=len(merges) or 3,
        machine=CPU,
        duration_s=more.pop("duration_s", 3240.0),
        ended=more.pop("ended", "finished"),
        merges=merges
        or (a_merge(0), a_merge(1, MergeOutcome.MOVED), a_merge(2, MergeOutcome.SAME_PROGRAM)),
        **more,
    )
