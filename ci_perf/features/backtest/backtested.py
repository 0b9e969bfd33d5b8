"""What `ci-perf backtest` knows of each merge: the file that it continues."""

import hashlib
from enum import Enum
from typing import Literal

import msgspec

from ci_perf.model import codec
from ci_perf.model.base import (
    SCHEMA_VERSION,
    Count,
    Name,
    Seconds,
    Struct,
    SuiteName,
    Text,
)
from ci_perf.model.commit import Commit
from ci_perf.model.comparison import Change
from ci_perf.model.environment import Machine
from ci_perf.model.run import Tool

# Where a back-test is kept unless somebody names another file.
FILE = "backtest.json"
BacktestEnd = Literal["finished", "budget", "interrupted"]


class MergeOutcome(Enum):
    """What is known of a merge.

    "suspected" moved, and waits for fresh pairs; "unconfirmed" did not move in these.
    """

    MOVED = "moved"
    SUSPECTED = "suspected"
    UNCONFIRMED = "unconfirmed"
    UNCHANGED = "unchanged"
    SAME_PROGRAM = "same_program"
    UNDECIDED = "undecided"
    BROKEN = "broken"
    FAILED = "failed"
    OPEN = "open"


class BacktestedMerge(Struct, frozen=True, kw_only=True):
    """A merge beside its first parent.

    ``first`` is what moved at first, and ``changes`` what fresh pairs have confirmed. ``retest``
    counts the merges that were measured again up to this one, 0 where it was not: the chance of a
    false alarm of each is smaller than that of the one before. ``note`` says what has no answer,
    and why.
    """

    commit: Commit
    parent: Name
    outcome: MergeOutcome = MergeOutcome.OPEN
    first: tuple[Change, ...] = ()
    changes: tuple[Change, ...] = ()
    retest: Count = 0
    note: Text = ""

    def __post_init__(self) -> None:
        """Refuse a merge that moved without a number."""
        if (self.outcome is MergeOutcome.MOVED) != bool(self.changes):
            raise ValueError(f"expected changes where a merge moved, found {self.outcome.value!r}")


class Backtest(Struct, tag_field="type", tag="backtest", frozen=True, kw_only=True):
    """The last merges of a branch, newest first.

    ``repository`` is its first commit, ``rules`` the digest of the suite: a file continues for the
    same ones alone. ``asked`` is how many merges were asked for. ``duration_s`` is that of all
    calls together. ``digest`` is that of all the rest: a file that was edited has another one.
    """

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    repository: Name
    ref: Text
    suite: SuiteName
    rules: Text
    asked: Count
    machine: Machine
    duration_s: Seconds
    ended: BacktestEnd
    merges: tuple[BacktestedMerge, ...]
    notes: tuple[Text, ...] = ()
    digest: Text = ""

    def sealed(self) -> "Backtest":
        """Return the document with its digest."""
        plain = msgspec.structs.replace(self, digest="")
        text = codec.encode(codec.decode(codec.encode(plain), Backtest, name="the back-test"))
        return msgspec.structs.replace(plain, digest=hashlib.sha256(text.encode()).hexdigest()[:16])
