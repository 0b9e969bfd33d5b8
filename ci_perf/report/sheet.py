"""The findings of a comparison: each row once, with how bad it is, what to say and what to do.

Headline, advice and tables read the answers here, and ask no row again.
"""

import math
from enum import Enum
from typing import Literal, NamedTuple, Self

from ci_perf.judging import signs
from ci_perf.model.comparison import (
    Change,
    Code,
    Comparison,
    Numerics,
    Row,
    Severity,
    Uncompared,
    Verdict,
    is_of_workload,
    severity_of,
)
from ci_perf.model.metrics import Unit
from ci_perf.model.process import NO_RESULT_IN_TIME
from ci_perf.model.run import SETUP_OF_BASE
from ci_perf.report import phrases

# What a sentence of advice is about, in the order of sentences; its block has this name.
Topic = Enum(
    "Topic",
    "FAILED MISSING METRIC_MISSING NUMERICS_CHANGED NUMERICS_VARY REGRESSED BASE_FAILED UNTRUSTED "
    "OTHER_FILE_SYSTEM BUSY_MACHINE PAIRS NOISE ROUNDED RANGES_OVERLAP OTHER_PACKAGES "
    "UNPROVEN_PROGRAM STALE NEW FIRST_BASELINES SETUP_FAILED NOT_COMPARABLE IMPROVED NO_WORKLOAD",
)
_LabelKind = Literal["broken", "numerics", "loss", "unproven", "open", "gain"]


class Label(Enum):
    """What a headline says of rows, in the order of naming; `kind` decides where it is named."""

    OUT_OF_MEMORY = "out of memory", "broken"
    DOES_NOT_RUN = "does not run", "broken"
    NUMERICS_CHANGED = "numerics changed", "numerics"
    NUMERICS_VARY = "numerics vary", "numerics"
    SLOWER = "slower", "loss"
    MORE_MEMORY = "more memory", "loss"
    WORSE = "worse", "loss"
    MISSING = "missing", "broken"
    LIKELY_SLOWER = "likely slower", "unproven"
    LIKELY_MORE_MEMORY = "likely more memory", "unproven"
    LIKELY_WORSE = "likely worse", "unproven"
    MACHINE_MOVED = "the machine changed its speed, no verdict on", "unproven"
    LOOKS_WORSE = "looks worse, not proven", "unproven"
    SUSPECTED = "suspected from its history alone", "unproven"
    BUSY = "the machine was too busy for a verdict", "unproven"
    REQUIRED = "required, and undecided", "unproven"
    INCONCLUSIVE = "inconclusive", "unproven"
    NOT_COMPARED = "not compared, because the check ended", "unproven"
    DISTURBED = "disturbed by the machine", "open"
    SETUP_FAILED = "the setup of the base failed, not compared", "open"
    NOT_COMPARABLE = "not comparable with the base", "open"
    FIRST = "first baselines, nothing to compare with", "open"
    NEW = "no baseline yet", "open"
    WITHOUT_BASE = "no baseline, and the base could not be launched", "open"
    FASTER = "faster", "gain"
    LESS_MEMORY = "less memory", "gain"
    BETTER = "better", "gain"

    def __new__(cls, words: str, kind: _LabelKind) -> Self:
        """Make a member that is its words."""
        label = object.__new__(cls)
        label._value_, label.kind = words, kind
        return label

    kind: _LabelKind


# What is said of the rows of a topic, unless something says more.
_OF_TOPIC: dict[Topic | None, Label] = {
    Topic.MISSING: Label.MISSING,
    Topic.METRIC_MISSING: Label.MISSING,
    Topic.NUMERICS_CHANGED: Label.NUMERICS_CHANGED,
    Topic.NUMERICS_VARY: Label.NUMERICS_VARY,
    Topic.BUSY_MACHINE: Label.BUSY,
    Topic.UNTRUSTED: Label.DISTURBED,
    Topic.SETUP_FAILED: Label.SETUP_FAILED,
    Topic.NOT_COMPARABLE: Label.NOT_COMPARABLE,
    Topic.FIRST_BASELINES: Label.FIRST,
    Topic.NEW: Label.NEW,
}
# What a loss and a gain of a unit are called; of all other units, as of `None`.
_DIRECTIONS: dict[Unit | None, tuple[Label, Label]] = {
    Unit.SECOND: (Label.SLOWER, Label.FASTER),
    Unit.BYTE: (Label.MORE_MEMORY, Label.LESS_MEMORY),
    None: (Label.WORSE, Label.BETTER),
}


class RowFinding(NamedTuple):
    """A row, and what is known of it: `None` where it needs no word, or nothing is to be done."""

    row: Row
    severity: Severity
    topic: Topic | None
    label: Label | None

    @property
    def is_quiet(self) -> bool:
        """Whether nobody needs to look at the row."""
        return self.severity is Severity.NOT_GATING or self.severity is Severity.UNCHANGED


class Sheet(NamedTuple):
    """A comparison and its findings, as people should read them: the worst first."""

    comparison: Comparison
    findings: tuple[RowFinding, ...]


def make_sheet(comparison: Comparison) -> Sheet:
    """Look at each row once, and sort: by severity, losses first, by how far they went."""
    busy = [each for each in comparison.validity.reasons if each.doubt and each.doubt.is_busy]
    findings: list[RowFinding] = []
    for row in comparison.rows:
        severity = severity_of(row)
        is_busy = bool(busy) and any(reason.concerns(row.workload) for reason in busy)
        topic = _find_topic(row, severity, is_busy=is_busy)
        findings.append(RowFinding(row, severity, topic, _find_label(row, severity, topic)))
    return Sheet(comparison, tuple(sorted(findings, key=_find_position)))


def _find_position(finding: RowFinding) -> tuple[int, bool, float]:
    row = finding.row
    # Of suspicions, losses come before gains.
    is_gain = row.verdict is Verdict.INCONCLUSIVE and row.code is Code.HISTORY_ALONE
    return finding.severity.rank, is_gain, -_find_closeness(row)


def _find_closeness(row: Row) -> float:
    """Return how much of its limit a change uses up: 1 is at the limit, 0 nothing to compare."""
    if isinstance(row, Uncompared):
        return 0.0
    if isinstance(row, Numerics):
        size, limit = row.difference, row.tolerance
    else:
        size, limit = None if row.ratio is None else abs(row.ratio - 1), row.limit
    if size is None:
        return 0.0 if row.head == row.base else math.inf
    return 0.0 if size == 0 else size / limit if limit > 0 else math.inf


# --- what is to be done


def _find_topic(row: Row, severity: Severity, *, is_busy: bool) -> Topic | None:
    """Return what the advice on a row is about; while the machine is busy, nothing else helps."""
    if row.code is Code.FAILED and is_busy and NO_RESULT_IN_TIME in row.note:
        return Topic.BUSY_MACHINE
    match severity:
        case Severity.FAILED if row.code is Code.FAILED:
            return Topic.FAILED
        case Severity.FAILED:
            return Topic.MISSING if is_of_workload(row) else Topic.METRIC_MISSING
        case Severity.NUMERICS_CHANGED if row.code is Code.NUMERICS_VARY:
            return Topic.NUMERICS_VARY
        case Severity.NEW if row.code is Code.ACCEPTED:
            return Topic.FIRST_BASELINES
        case Severity.NEW if row.note:
            return Topic.BASE_FAILED
        case Severity.LIKELY_SLOWER | Severity.INCONCLUSIVE:
            return _find_cure(row, is_busy=is_busy)
        case Severity.WARNING | Severity.UNCHANGED | Severity.NOT_GATING:
            return None
        case _:
            return Topic[severity.name]


def _find_cure(row: Row, *, is_busy: bool) -> Topic:
    """Return what would decide a row; the surest and cheapest first."""
    change = row if isinstance(row, Change) else None  # else the budget ended before a launch
    if change and change.note and row.code is not Code.UNTRUSTED:
        return Topic.BASE_FAILED
    if isinstance(row, Uncompared) and row.note.startswith(SETUP_OF_BASE):
        return Topic.SETUP_FAILED
    if row.code.name in Topic.__members__:  # says more than whatever else is known of the row
        return Topic[row.code.name]
    if row.code is Code.BEYOND_LIMIT:  # and not proven
        return Topic.OTHER_FILE_SYSTEM
    if change and is_busy:
        return Topic.BUSY_MACHINE
    remedy = change.remedy if change and change.pairs else None
    is_hopeless = remedy is not None and remedy.pairs is None and row.code is not Code.TWO_MODES
    return Topic.NOISE if is_hopeless else Topic.PAIRS


# --- what is said


def _find_label(row: Row, severity: Severity, topic: Topic | None) -> Label | None:
    """Return what a headline says of a row; nothing of one that can decide nothing."""
    if not (row.gate or severity is Severity.NUMERICS_CHANGED):
        return None
    if severity is Severity.LIKELY_SLOWER or severity is Severity.INCONCLUSIVE:
        return _find_doubt(row, severity, topic)
    if topic is Topic.REGRESSED or topic is Topic.IMPROVED:
        unit = phrases.unit(phrases.metric(row))
        return _DIRECTIONS.get(unit, _DIRECTIONS[None])[topic is Topic.IMPROVED]
    if topic is Topic.FAILED:
        is_exhausted = isinstance(row, Uncompared) and row.exhausted is not None
        return Label.OUT_OF_MEMORY if is_exhausted else Label.DOES_NOT_RUN
    return Label.WITHOUT_BASE if topic is Topic.BASE_FAILED else _OF_TOPIC.get(topic)


def _find_doubt(row: Row, severity: Severity, topic: Topic | None) -> Label | None:
    """Return what is said of a row without an answer, which needs advice on `topic`."""
    if isinstance(row, Uncompared) and row.code is Code.TOO_FEW_PAIRS:
        return Label.NOT_COMPARED
    if isinstance(row, Uncompared) and row.code is Code.BASE_FAILED:
        return Label.WITHOUT_BASE
    is_likely = severity is Severity.LIKELY_SLOWER
    if is_likely and not signs.is_by_history_alone(row):
        name = phrases.name_severity(severity, phrases.metric(row))
        return Label[name.upper().replace(" ", "_")]
    if topic is Topic.BUSY_MACHINE:
        return Label.BUSY
    if row.code is Code.MACHINE_MOVED:
        return Label.MACHINE_MOVED
    if signs.looks_worse(row):
        return Label.LOOKS_WORSE
    if is_likely:
        return Label.SUSPECTED
    is_required = signs.lacks_answer(row)
    if row.code is Code.HISTORY_ALONE and not is_required:
        return None
    return _OF_TOPIC.get(topic, Label.REQUIRED if is_required else Label.INCONCLUSIVE)
