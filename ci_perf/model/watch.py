"""What `ci-perf watch` knows of a branch: the losses that nobody has mended yet, and their commits.

One document, which each night continues and a job with a token reads.
"""

from typing import Annotated, Literal

import msgspec

from ci_perf.model.base import (
    SCHEMA_VERSION,
    Amount,
    AtLeastOne,
    Count,
    DateOrEmpty,
    Name,
    NameOrEmpty,
    Struct,
    SuiteName,
    Text,
)
from ci_perf.model.environment import Machine
from ci_perf.model.run import Tool

# Where a watch is kept unless somebody names another file.
FILE = "watch.json"
# More losses than a person would read of.
_MOST = 1000
LARGEST_STEPS = 3

LossState = Literal["open", "repaired", "accepted"]
Day = Annotated[DateOrEmpty, msgspec.Meta(min_length=10)]
# A change as a factor: 1.05 is 5 % worse.
Ratio = Annotated[float, msgspec.Meta(ge=0, le=1e19)]


class WatchedRepository(Struct, frozen=True, kw_only=True):
    """Whose branch it is: ``root`` is its first commit, ``name`` "owner/name" where known."""

    root: Name
    name: Text | None = None


class Person(Struct, frozen=True, kw_only=True):
    """Who wrote a commit."""

    name: Text


class CommitWindow(Struct, frozen=True, kw_only=True):
    """The commits that were searched: after ``good``, up to ``bad``."""

    good: Name
    bad: Name
    commits: Count


class LossRow(Struct, frozen=True, kw_only=True):
    """A metric that the culprit made worse, by pairs with its parent.

    ``change`` is how much worse it is, with its interval from ``low`` to ``high``. They are
    ``None`` for a metric that was zero, and the interval for one that is compared exactly.
    ``baseline`` is the value of the parent, and ``now`` that of the culprit, in the metric's unit.
    """

    workload: Name
    metric: Name
    change: Ratio | None
    low: Ratio | None
    high: Ratio | None
    baseline: Amount
    now: Amount


class LossCause(Struct, frozen=True, kw_only=True):
    """The first cause in the profiles of culprit and parent; ``file`` and ``function`` of it."""

    text: Text
    function: Text = ""
    file: Text = ""


class Culprit(Struct, frozen=True, kw_only=True):
    """A commit that made workloads worse.

    ``first_seen`` is the day when it was found, ``checked`` that of the
    last answer about it. ``until`` is the last day of an accepted loss; ``reason`` says why it is
    in its state. ``good_again`` is the commit that has repaired it, or one after that.
    """

    commit: Name
    parent: Name
    author: Person
    subject: Text
    window: CommitWindow
    rows: Annotated[tuple[LossRow, ...], msgspec.Meta(min_length=1, max_length=_MOST)]
    cause: LossCause | None = None
    owner: Text | None = None
    first_seen: Day
    state: LossState = "open"
    until: Day | None = None
    good_again: NameOrEmpty = ""
    reason: Text = ""
    checked: Day

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """Workload and metric of each row."""
        return tuple((row.workload, row.metric) for row in self.rows)

    @property
    def base(self) -> str:
        """The commit whose pairs with HEAD say whether it is still worse."""
        return self.parent

    def write_command(self, suite: str) -> str:
        """Return what shows it again. A person pastes this, so it holds names alone."""
        row, ends = self.rows[0], f"{self.parent[:12]} {self.commit[:12]}"
        return f"ci-perf bisect {ends} {row.workload} --metric {row.metric} --suite {suite}"


class CreepStep(Struct, frozen=True, kw_only=True):
    """A part of a creep: the last of the ``commits`` one of which it is, or several."""

    commit: Name
    subject: Text
    change: Ratio
    commits: AtLeastOne = 1


class Since(Struct, frozen=True, kw_only=True):
    """The commit that the head is compared with, and its day."""

    commit: Name
    day: Day


class Creep(Struct, frozen=True, kw_only=True):
    """A metric that became worse in steps below its limit.

    ``largest`` are the steps that pairs or the history tell from noise; it is empty where they
    cannot. ``checked`` is the day of the last answer; ``until`` and ``reason`` are as of a culprit.
    """

    workload: Name
    metric: Name
    since: Since
    change: Ratio
    low: Ratio
    high: Ratio
    largest: Annotated[tuple[CreepStep, ...], msgspec.Meta(max_length=LARGEST_STEPS)] = ()
    owner: Text | None = None
    state: LossState = "open"
    until: Day | None = None
    reason: Text = ""
    checked: DateOrEmpty = ""

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """Its workload and metric, as those of a culprit."""
        return ((self.workload, self.metric),)

    @property
    def base(self) -> str:
        """See Culprit."""
        return self.since.commit


class Suspicion(Struct, frozen=True, kw_only=True):
    """A metric that history calls worse.

    Pairs of ``bad`` with ``good`` say whether code or the machine moved. ``left`` are the commits,
    oldest first, one of which it is: a search goes on with these.
    """

    workload: Name
    metric: Name
    good: Name
    bad: Name
    left: Annotated[tuple[Name, ...], msgspec.Meta(max_length=100_000)] = ()
    answer: Literal["searching", "machine", "code"] = "searching"


class Unanswered(Struct, frozen=True, kw_only=True):
    """A workload without an answer this night."""

    workload: Name
    why: Text


class Watched(Struct, tag_field="type", tag="watch", frozen=True, kw_only=True):
    """What is known after a night.

    ``head`` is the commit that was measured.
    ``complete`` is ``False`` where the budget ended first. Culprits stay for 30 days after they
    were repaired.
    """

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    repository: WatchedRepository
    suite: SuiteName
    machine: Machine
    started: Text
    ended: Text
    head: Name
    complete: bool
    culprits: Annotated[tuple[Culprit, ...], msgspec.Meta(max_length=_MOST)] = ()
    creeps: Annotated[tuple[Creep, ...], msgspec.Meta(max_length=_MOST)] = ()
    suspicions: Annotated[tuple[Suspicion, ...], msgspec.Meta(max_length=_MOST)] = ()
    no_answer: Annotated[tuple[Unanswered, ...], msgspec.Meta(max_length=10_000)] = ()
    notes: tuple[Text, ...] = ()
