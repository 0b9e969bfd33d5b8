"""The judge's answer: rows of changes, worst first, and one verdict."""

from collections.abc import Iterable
from enum import Enum, StrEnum
from typing import Annotated, Literal, Self

import msgspec

from ci_perf.model.base import (
    SCHEMA_VERSION,
    Amount,
    AtLeastOne,
    Count,
    DateOrEmpty,
    Finite,
    Name,
    Scalar,
    Struct,
    SuiteName,
    Text,
)
from ci_perf.model.container import Image
from ci_perf.model.environment import Machine
from ci_perf.model.explanation import Explanation
from ci_perf.model.gate_change import GateChange
from ci_perf.model.process import Exhausted, Phase, Profile
from ci_perf.model.program import SameProgram, Touched
from ci_perf.model.rehearsed import RehearsalNote
from ci_perf.model.run import Interleaved, Source, Tool
from ci_perf.model.summary import Cost, Numbers
from ci_perf.model.validity import Validity


class Code(StrEnum):
    """Why a row has its verdict: one code for each next step (docs/verdicts.md has them all)."""

    FAILED = "failed"
    MISSING = "missing"
    NEW = "new"
    NOT_COMPARABLE = "not_comparable"
    UNTRUSTED = "untrusted"
    SAME_PROGRAM = "same_program"
    UNPROVEN_PROGRAM = "unproven_program"
    WITHIN_LIMIT = "within_limit"
    BEYOND_LIMIT = "beyond_limit"
    ACCEPTED = "accepted", "accepted in this change"
    BASELINE_MOVED = "baseline_moved", "the machine or the baseline changed{drift}, not the code"
    NUMERICS_VARY = "numerics_vary"
    HISTORY_ALONE = "history_alone", "history alone"
    WORSE_BY_HISTORY = "worse_by_history", "worse than its history{drift}"
    TOO_FEW_SESSIONS = (
        "too_few_sessions",
        "too few sessions of this machine to know how much they differ",
    )
    TOO_FEW_PAIRS = "too_few_pairs", "too few to know how much pairs differ"
    SPREAD = "spread"
    TWO_MODES = "two_modes", "launches are either fast or slow"
    ROUNDED = "rounded", "rounding hides whether it changed"
    RANGES_OVERLAP = "ranges_overlap", "some processes are beyond the limit and some are not"
    MACHINE_MOVED = "machine_moved", "the speed of the machine changed"
    OTHER_PACKAGES = (
        "other_packages",
        "its history had other packages; the base was launched with the new ones",
    )
    CPU_TIME = "cpu_time", "no answer by the wall, and CPU time has not changed"
    NEW_PROCESSES = "new_processes", "more memory in all, in more processes"
    BASE_FAILED = "base_failed"

    def __new__(cls, value: str, why: str = "") -> Self:
        """Make a member that is its value."""
        code = str.__new__(cls, value)
        code._value_, code.why = value, why
        return code

    # What a report says of a compared row beside its numbers; empty where these say it.
    why: str


class Severity(Enum):
    """How serious a row is: its verdict, and whether it can fail the job. Worst first.

    The order of declaration is the order of rows in every form of a comparison.
    """

    FAILED = "failed"
    NUMERICS_CHANGED = "numerics changed"
    REGRESSED = "regressed"
    LIKELY_SLOWER = "likely slower"
    INCONCLUSIVE = "inconclusive"
    NEW = "new"
    WARNING = "warning"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    NOT_GATING = "not gating"

    def __init__(self, _value: str) -> None:
        self.rank = len(type(self).__members__)  # the place in the order; 0 is the worst


class Verdict(Enum):
    """What is said of a row, the worst first; its `Code` says why."""

    FAILED = "failed"
    NUMERICS_CHANGED = "numerics_changed"
    REGRESSED = "regressed"
    LIKELY_SLOWER = "likely_slower"
    INCONCLUSIVE = "inconclusive"
    NEW = "new"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"

    def __init__(self, value: str) -> None:
        self.severity = Severity[value.upper()]
        # No reason to act where a metric does not gate.
        needs_gate = value in {"failed", "likely_slower", "inconclusive"}
        milder = Severity.WARNING if value == "regressed" else self.severity
        self.severity_without_gate = Severity.NOT_GATING if needs_gate else milder


class Interval(Struct, frozen=True, kw_only=True):
    """Where the true ratio lies, at the certainty that the verdict needed (docs/verdicts.md)."""

    low: float
    high: float


class Remedy(Struct, frozen=True, kw_only=True):
    """What would decide a row that is inconclusive, if the change is what it looks like now.

    ``pairs`` of launches, where their spread allows it at all (``None``: not within the most that
    are launched). Else a pair has to differ by ``quiet_spread`` instead of ``spread`` (standard
    deviations, relative), or the row needs a limit of ``limit``.
    """

    pairs: Count | None
    spread: float
    quiet_spread: float
    limit: float


class Signs(Struct, frozen=True, kw_only=True):
    """What the exact metrics of a workload say beside a noisy row of the same workload.

    ``direction`` is "equal" where all counts, the allocated memory and the numerics are the same on
    both sides. It is "worse" or "better" where some have moved to that side and no count to the
    other, else "mixed". ``moved`` names the metrics that have moved, ``equal`` those that have not.
    """

    direction: Literal["equal", "worse", "better", "mixed"]
    moved: tuple[Name, ...] = ()
    equal: tuple[Name, ...] = ()


class Family(Struct, frozen=True, kw_only=True):
    """Workloads that differ in parameters alone: the begin of their ids, and how many there are."""

    name: Name
    cases: AtLeastOne


class Change(Struct, tag_field="row", tag="change", frozen=True, kw_only=True):
    """One metric of one workload on both sides.

    ``base`` and ``head`` stand for the side, in the metric's unit. ``ratio`` is head over base,
    base over head where higher is better (1.05 = 5 % worse), and ``None`` where there is a zero
    below. ``interval`` is ``None`` for metrics that are compared exactly; of a row without an
    answer, its upper end is the loss that is excluded. ``limit`` is the relative size that
    "unchanged" promises to be below, after its absolute part was applied to this baseline; what is
    noisy has "regressed" by more than half of it, what is exact by more than all of it.
    ``require``: without an answer, the job is not green. ``smallest_detectable`` is the smallest
    relative change that would mostly have been proven, ``None`` where nobody can know.

    ``pairs`` counts the launches of base and head in turns that decided; 0 where the committed
    sessions did. ``earlier_pairs`` of them are of earlier runs of the same commits. Then ``drift``
    is how far the head lies from these sessions, as a ratio like ``ratio``. ``tick`` is what the
    numbers of both sides were rounded to, as a share of the smallest of them; ``None`` where it is
    too fine to matter. ``own_file``: the base ran a workload file of its own, because the head's is
    another one. ``note`` is foreign text: why the base could not be launched. ``signs`` is ``None``
    for exact metrics, and where these say nothing. ``explanation`` is on one row of time
    and one of memory at most. No verdict depends on it, nor on the ``family``, which is ``None``
    of a workload that is the only one of its name.
    """

    workload: Name
    metric: Name
    base: Amount
    head: Amount
    base_processes: Count
    head_processes: Count
    base_sessions: Count
    items_per_step: float
    item_unit: Name
    ratio: float | None
    interval: Interval | None
    limit: float
    smallest_detectable: float | None
    gate: bool
    require: bool = False
    verdict: Verdict
    code: Code
    pairs: Count = 0
    earlier_pairs: Count = 0
    drift: float | None = None
    tick: float | None = None
    remedy: Remedy | None = None
    own_file: bool = False
    note: Text = ""
    signs: Signs | None = None
    explanation: Explanation | None = None
    family: Family | None = None


class Uncompared(Struct, tag_field="row", tag="uncompared", frozen=True, kw_only=True):
    """A workload, or one metric of it, that has nothing to be compared with, and why.

    ``metric`` is empty when the whole workload is meant. ``base`` and ``head`` hold the numbers of
    the side that has some. ``note`` is the reason of a failure, or the facts that differ;
    ``phase`` is where a workload failed, ``output`` holds its last lines,
    ``exhausted`` what is known where memory ran out. ``gate`` says whether the row may
    decide the exit code. ``same`` says in what both sides agree where nothing was launched.
    """

    workload: Name
    metric: Text
    verdict: Verdict
    code: Code
    base: Numbers
    head: Numbers
    gate: bool
    note: Text
    output: Text
    parameters: dict[str, Scalar]
    phase: Phase | None = None
    exhausted: Exhausted | None = None
    same: SameProgram | None = None


class Numerics(Struct, tag_field="row", tag="numerics", frozen=True, kw_only=True):
    """What a workload computes, on both sides: losses, then checksums of its output.

    The first ``losses`` numbers are losses; ``place`` is that of the first number that differs by
    more than ``tolerance``, else of the one that differs most.
    ``difference`` is the largest relative difference of two numbers in the same place, ``None``
    where the two sides have not as many of them. ``note`` is the author's reason why they vary.
    With code "numerics_vary" the two sides are two processes of the head.
    """

    workload: Name
    base: tuple[Finite, ...]
    head: tuple[Finite, ...]
    losses: Count
    place: Count
    difference: Amount | None
    tolerance: float
    gate: bool
    verdict: Verdict
    code: Code
    note: Text


Row = Change | Uncompared | Numerics


def severity_of(row: Row) -> Severity:
    """Return how serious a row is. A metric without a gate is a warning at most."""
    is_mild = not (row.gate or is_of_workload(row))
    return row.verdict.severity_without_gate if is_mild else row.verdict.severity


def worst(verdicts: Iterable[Verdict], *, default: Verdict = Verdict.INCONCLUSIVE) -> Verdict:
    """Return the worst of several verdicts that count; `default` where there is none."""
    return min(verdicts, key=lambda verdict: verdict.severity.rank, default=default)


def is_of_workload(row: Row) -> bool:
    """Whether a row is about a whole workload, and not about one of its metrics."""
    return isinstance(row, Uncompared) and not row.metric


class Difference(Struct, frozen=True, kw_only=True):
    """A soft fact of the environment that is not the same on both sides."""

    field: Name
    base: Text
    head: Text


class Side(Struct, frozen=True, kw_only=True):
    """Where one side's numbers come from. Times are RFC 3339, empty when there are no sessions.

    ``image`` is that of a run in containers. ``nodes`` counts the hosts that have measured, as far
    as they are known.
    """

    label: Text
    run: Text
    source: Source
    machine: Machine | None
    sessions: Count
    nodes: Count = 0
    oldest: Text
    newest: Text
    image: Image | None = None


class Drifted(Struct, frozen=True, kw_only=True):
    """Main itself has moved away from where its baseline began, one small step after the other.

    ``ratio`` is the end over the beginning of a straight line through the sessions of the epoch, as
    for a change.
    """

    workload: Name
    metric: Name
    ratio: float
    sessions: Count
    since: Text


class Spending(Struct, frozen=True, kw_only=True):
    """What the pairs could spend of the chance of a false alarm, and what came before.

    ``share`` of it, as the ``check``-th check of its pull request; the whole where the number is
    not known (``None``). ``earlier`` names the runs of the same commits whose pairs count, too, and
    the workloads of which they do.
    """

    check: Count | None
    share: Annotated[float, msgspec.Meta(gt=0, le=1)]
    earlier: dict[Name, tuple[Name, ...]] = {}


class Comparison(Struct, tag_field="type", tag="comparison", frozen=True, kw_only=True):
    """Base and head, judged. ``exit_code`` is that of the verdict.

    ``verdict`` is the most serious of the rows that gate: "new" is more serious than "improved". A
    row "new" without a metric is a workload that the baselines lack; pairs may judge its metrics.
    Before ``paused_until``, the gate is off: `ci-perf` ends with `job_exit_code`. ``rehearsed`` is
    what the gate was shown to find on this machine.
    ``profiles`` are those of the head. ``touched`` says why workloads were measured, where others
    were not. ``gate_changes`` is what the head does to the gate itself, the most serious first.
    """

    schema_version: int = SCHEMA_VERSION
    tool: Tool
    suite: SuiteName
    selection: tuple[str, ...]
    verdict: Verdict
    exit_code: Count
    base: Side
    head: Side
    validity: Validity
    differences: tuple[Difference, ...]
    interleaved: Interleaved | None = None
    spending: Spending | None = None
    drifted: tuple[Drifted, ...] = ()
    rehearsed: RehearsalNote | None = None
    rows: tuple[Row, ...]
    profiles: tuple[Profile, ...] = ()
    touched: tuple[Touched, ...] = ()
    gate_changes: tuple[GateChange, ...] = ()
    paused_until: DateOrEmpty = ""
    cost: Cost | None = None

    @property
    def job_exit_code(self) -> int:
        """Return what `ci-perf` ends with: that of the verdict, or 0 in a pause."""
        return 0 if self.paused_until else self.exit_code
