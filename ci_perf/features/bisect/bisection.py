"""What `ci-perf bisect` answers: which commit made a workload worse, or which ones may have."""

from enum import Enum
from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import (
    SCHEMA_VERSION,
    Count,
    Name,
    NameOrEmpty,
    Seconds,
    Struct,
    SuiteName,
    Text,
)
from ci_perf.model.commit import Commit
from ci_perf.model.comparison import Change
from ci_perf.model.environment import Machine
from ci_perf.model.run import Tool

# One commit; several, one of which it is; or nothing that could be looked for.
BisectOutcome = Literal["found", "range", "not_worse"]
# Why no more commits were measured.
BisectEnd = Literal["decided", "budget", "interrupted"]


class CommitAnswer(Enum):
    """What is known of a commit: on which side of half the loss it lies, or why nobody can say."""

    LIKE_GOOD = "like_good"
    LIKE_BAD = "like_bad"
    UNDECIDED = "undecided"
    FAILED = "failed"
    OPEN = "open"


class BisectedCommit(Struct, frozen=True, kw_only=True):
    """A commit of the line. ``change`` is its metric against the known-good commit's, by pairs.

    ``same_as`` is a commit that runs the same program, so that its answer holds here, too, without
    a launch. ``note`` says why a commit failed or is undecided. ``parents`` counts those of it.
    """

    commit: Commit
    parents: Count
    answer: CommitAnswer
    same_as: NameOrEmpty = ""
    change: Change | None = None
    note: Text = ""


class ParentPairs(Struct, frozen=True, kw_only=True):
    """The culprit against its first parent.

    ``launched`` is ``False`` where the pairs are those of commits that run the same programs.
    ``change`` is ``None`` where pairs could not be launched; ``note`` says why.
    """

    change: Change | None = None
    launched: bool = True
    note: Text = ""


class Bisection(Struct, tag_field="type", tag="bisection", frozen=True, kw_only=True):
    """A line of commits from the known-good to the known-bad one, oldest first, both included.

    ``good`` and ``bad`` are what was asked for. ``metric`` is the one that is worse in the
    known-bad commit, empty where none is. The culprit comes after place ``low`` of ``commits``, and
    is not after place ``high``; with ``outcome`` "found" it is the commit at ``high``. ``sessions``
    counts the commits that were measured. ``notes`` are for the reader. With ``over``, a package,
    each of ``commits`` is a version of it, and all code is of one commit. ``setup`` installs it;
    credentials in it are shown as ``***``.
    """

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    suite: SuiteName
    workload: Name
    metric: NameOrEmpty
    over: NameOrEmpty = ""
    setup: Text = ""
    good: Text
    bad: Text
    outcome: BisectOutcome
    ended: BisectEnd
    started_at: Text
    duration_s: Seconds
    budget_s: Seconds
    sessions: Count
    machine: Machine | None = None
    low: Count
    high: Count
    commits: Annotated[tuple[BisectedCommit, ...], msgspec.Meta(min_length=2)]
    parent: ParentPairs | None = None
    notes: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a range that is none: nobody could say which commits it has."""
        if not self.low < self.high < len(self.commits):
            raise ValueError(
                f"expected low < high < {len(self.commits)}, found {self.low} and {self.high}"
            )
