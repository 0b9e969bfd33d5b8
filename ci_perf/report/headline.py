"""The first line of a report: pass, fail or no answer, with what and how much; and its scope."""

import math
from collections.abc import Iterable
from enum import Enum
from typing import Literal, Self

from ci_perf.errors import ExitCode
from ci_perf.judging import signs
from ci_perf.model.comparison import (
    Change,
    Code,
    Comparison,
    Row,
    Severity,
    Uncompared,
    is_of_workload,
    severity_of,
)
from ci_perf.model.metrics import Unit, find_own
from ci_perf.report import (
    advice,
    cells,
    gate_words,
    phrases,
    provenance,
    remarks,
    table_rows,
)
from ci_perf.report.advice import Topic
from ci_perf.report.escape import Phrase, Words
from ci_perf.report.sentences import say

# More names of one kind than this do not fit into a line.
_MAX_NAMED = 3


_FindingKind = Literal["broken", "proven", "unproven", "open", "gain"]


class RowFinding(Enum):
    """What a headline says of rows, in the order of naming; `kind` decides where it is named."""

    OUT_OF_MEMORY = "out of memory", "broken"
    DOES_NOT_RUN = "does not run", "broken"
    NUMERICS_CHANGED = "numerics changed", "proven"
    NUMERICS_VARY = "numerics vary", "proven"
    SLOWER = "slower", "proven"
    MORE_MEMORY = "more memory", "proven"
    WORSE = "worse", "proven"
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
    NOT_COMPARED = "not compared, because the budget ended", "unproven"
    DISTURBED = "disturbed by the machine", "open"
    SETUP_FAILED = "the setup of the base failed, not compared", "open"
    NOT_COMPARABLE = "not comparable with the base", "open"
    FIRST = "first baselines, nothing to compare with", "open"
    NEW = "no baseline yet", "open"
    WITHOUT_BASE = "no baseline, and the base could not be launched", "open"
    FASTER = "faster", "gain"
    LESS_MEMORY = "less memory", "gain"
    BETTER = "better", "gain"

    def __new__(cls, words: str, kind: _FindingKind) -> Self:
        """Make a member that is its words."""
        finding = object.__new__(cls)
        finding._value_, finding.kind = words, kind
        return finding

    kind: _FindingKind


# What is said of what the base has, too, and no pair has compared.
_WITHOUT_PAIR = {
    Code.TOO_FEW_PAIRS: RowFinding.NOT_COMPARED,
    Code.BASE_FAILED: RowFinding.WITHOUT_BASE,
}
_OF_TOPIC: dict[Topic | None, RowFinding] = {
    Topic.UNTRUSTED: RowFinding.DISTURBED,
    Topic.SETUP_FAILED: RowFinding.SETUP_FAILED,
    Topic.NOT_COMPARABLE: RowFinding.NOT_COMPARABLE,
}
# What a loss and a gain of a unit are called; of all other units, as of `None`.
_DIRECTIONS: dict[Unit | None, tuple[RowFinding, RowFinding]] = {
    Unit.SECOND: (RowFinding.SLOWER, RowFinding.FASTER),
    Unit.BYTE: (RowFinding.MORE_MEMORY, RowFinding.LESS_MEMORY),
    None: (RowFinding.WORSE, RowFinding.BETTER),
}


class HeadlineWord(Enum):
    """The first word of a report."""

    PASS = "Pass"  # noqa: S105  a word, not a password
    FAIL = "Fail"
    NO_ANSWER = "No answer"


ICON = {HeadlineWord.PASS: "✅", HeadlineWord.FAIL: "❌", HeadlineWord.NO_ANSWER: "❓"}


def choose_word(comparison: Comparison) -> HeadlineWord:
    """Say in a word what the exit code says; 3 is a failure where a workload failed or is missing.

    A run that cannot be trusted, or a workload that ran out of time on a busy machine, says
    nothing of the code.
    """
    if comparison.exit_code == ExitCode.OK:
        return HeadlineWord.PASS
    is_broken = not comparison.validity.is_run_invalid and any(
        row.gate and severity_of(row) is Severity.FAILED and not advice.is_late(row, comparison)
        for row in comparison.rows
    )
    is_failure = is_broken or comparison.exit_code == ExitCode.REGRESSED
    return HeadlineWord.FAIL if is_failure else HeadlineWord.NO_ANSWER


def is_calm(comparison: Comparison) -> bool:
    """Whether a comparison passes, and neither its numerics nor its gate have changed."""
    return (
        choose_word(comparison) is HeadlineWord.PASS
        and not comparison.gate_changes
        and all(severity_of(row) is not Severity.NUMERICS_CHANGED for row in comparison.rows)
    )


def summarise(comparison: Comparison) -> Phrase:
    """Answer in one line: the word, what the job does, then the worst of what was found first."""
    word, findings = choose_word(comparison), _find_all(comparison)
    icon, warning, parts = ICON[word], "", list[Phrase]()
    has_lost = any(findings[loss] for loss, _ in _DIRECTIONS.values())
    kinds = {"broken", "proven"}
    if word is HeadlineWord.PASS:
        kinds |= {"unproven", "open", "gain"}
        if not is_calm(comparison):
            icon, warning = "⚠️", ", with a warning"
        if comparison.gate_changes:
            warning = ", and the gate changes"
            changed = gate_words.group_by_kind(comparison.gate_changes).items()
            parts += [_list(*kind) for kind in list(changed)[:_MAX_NAMED]]
    elif comparison.validity.is_run_invalid:
        parts, kinds = [(Words("this run cannot be trusted"),)], {"broken"}
    elif word is HeadlineWord.NO_ANSWER or (
        comparison.exit_code == ExitCode.REGRESSED and not has_lost
    ):
        kinds |= {"unproven", "open"}
    for finding in RowFinding:
        if findings[finding] and finding.kind in kinds:
            parts.append(_list(finding.value, findings[finding]))
        if finding is RowFinding.MISSING and word is HeadlineWord.PASS and not has_lost:
            is_open = any(findings[each] for each in RowFinding if each.kind == "unproven")
            proven = " proven" if is_open else ""
            parts.append((Words(f"no regression{proven}"),))
            parts += _name_bound(comparison.rows)
    job = f" ({'green' if comparison.exit_code == ExitCode.OK else 'red'} job)"
    answer = f"{icon} {word.value}{'' if comparison.paused_until else job}{warning}: "
    return (
        Words(introduce_pause(comparison) + answer),
        *phrases.join_phrases(
            parts or [say("notes_below", rows=comparison.rows)], most=99, between="; "
        ),
    )


def introduce_pause(comparison: Comparison) -> str:
    """Say until when the gate is paused, before what it would have said."""
    end = comparison.paused_until
    return f"⏸️ Paused until {end} (green job), else " if end else ""


def _name_bound(rows: Iterable[Row]) -> list[Phrase]:
    """Say which slowdown a pass excludes, by the worst time that gates and has no answer."""
    bounds = [
        (row.interval.high - 1 if row.interval else math.inf, row)
        for row in rows
        if isinstance(row, Change) and row.gate and row.verdict in signs.UNPROVEN
        if row.code is not Code.UNTRUSTED and phrases.unit(row.metric) in phrases.OF_TIME
    ]
    if not bounds:
        return []
    excluded, worst = max(bounds, key=lambda bound: bound[0])
    name = (worst.workload,) if worst.metric == phrases.STEP_TIME else phrases.title_row(worst)
    bound = remarks.describe_excluded(worst) or Words("any slowdown is possible")
    return [] if excluded <= 0 else [(bound, Words(" on "), *name)]


def tell_scope(comparison: Comparison) -> Phrase:
    """Say of what a report is: suite, machine, commits, workloads and metrics."""
    machine = comparison.head.machine
    return say(
        "scope",
        comparison=comparison,
        base=provenance.find_base_source(comparison),
        commit=provenance.commit,
        has_commits=provenance.has_commits(comparison),
        age_days=provenance.find_age_days(comparison),
        machine=provenance.machine(machine) if machine else "",
        workloads=len(phrases.names(comparison.rows)),
        metrics=sum(not is_of_workload(row) for row in comparison.rows),
    )


def _find_all(comparison: Comparison) -> dict[RowFinding, list[Phrase]]:
    """Name the workloads of which something is said, each by its worst row, step times first."""
    findings: dict[RowFinding, dict[object, Row]] = {finding: {} for finding in RowFinding}
    judged = {row.workload for row in comparison.rows if isinstance(row, Change)}
    rows = [row for row in comparison.rows if severity_of(row) is not Severity.UNCHANGED]
    rows = table_rows.worst_first(rows)
    for row in sorted(rows, key=lambda row: phrases.metric(row) != phrases.STEP_TIME):
        is_answered = severity_of(row) is Severity.NEW and row.workload in judged
        if not is_answered and (finding := _find(row, comparison)):
            own = find_own([phrases.metric(row)])  # the user asked for each of these
            findings[finding].setdefault((row.workload, *own), row)
    return {finding: _name_rows(of_it.values()) for finding, of_it in findings.items()}


def _name_rows(rows: Iterable[Row]) -> list[Phrase]:
    """Name as many families and rows as a line shows; then each row, for it will be counted."""
    groups = table_rows.group_families(rows)
    rest = [[row] for group in groups[_MAX_NAMED:] for row in group]
    return [_name_size(*group) for group in (*groups[:_MAX_NAMED], *rest)]


def _find(row: Row, comparison: Comparison) -> RowFinding | None:
    """Find what is said of a row; `None` where it needs no word, or can decide nothing."""
    severity = severity_of(row)
    if severity is Severity.NUMERICS_CHANGED:
        varies = row.code is Code.NUMERICS_VARY
        return RowFinding.NUMERICS_VARY if varies else RowFinding.NUMERICS_CHANGED
    if not row.gate:
        return None
    if severity in {Severity.REGRESSED, Severity.IMPROVED}:
        unit = phrases.unit(phrases.metric(row))
        return _DIRECTIONS.get(unit, _DIRECTIONS[None])[severity is Severity.IMPROVED]
    if severity is Severity.FAILED and not advice.is_late(row, comparison):
        if row.code is Code.MISSING:
            return RowFinding.MISSING
        is_exhausted = isinstance(row, Uncompared) and row.exhausted is not None
        return RowFinding.OUT_OF_MEMORY if is_exhausted else RowFinding.DOES_NOT_RUN
    if severity is Severity.NEW:
        if row.code is Code.ACCEPTED:
            return RowFinding.FIRST
        return RowFinding.WITHOUT_BASE if row.note else RowFinding.NEW
    return _find_doubt(row, advice.find_topic(row, comparison))


def _find_doubt(row: Row, topic: Topic | None) -> RowFinding | None:
    """Find what is said of a row without an answer, which needs advice on `topic`."""
    if isinstance(row, Uncompared) and row.code in _WITHOUT_PAIR:
        return _WITHOUT_PAIR[row.code]
    is_likely = severity_of(row) is Severity.LIKELY_SLOWER
    if is_likely and not signs.is_by_history_alone(row):
        return RowFinding[phrases.name_severity(row).upper().replace(" ", "_")]
    if topic is Topic.BUSY_MACHINE:
        return RowFinding.BUSY
    if row.code is Code.MACHINE_MOVED:
        return RowFinding.MACHINE_MOVED
    if signs.looks_worse(row):
        return RowFinding.LOOKS_WORSE
    if is_likely:
        return RowFinding.SUSPECTED
    if severity_of(row) is not Severity.INCONCLUSIVE or (
        row.code is Code.HISTORY_ALONE and not signs.lacks_answer(row)
    ):
        return None
    if topic in _OF_TOPIC:
        return _OF_TOPIC[topic]
    return RowFinding.REQUIRED if signs.lacks_answer(row) else RowFinding.INCONCLUSIVE


def _list(label: str, parts: Iterable[Phrase]) -> Phrase:
    return (Words(f"{label}: "), *phrases.join_phrases(parts, most=_MAX_NAMED))


def _name_size(row: Row, *others: Row) -> Phrase:
    """Show a row as short as it can be understood: "bert +4.1 %" is about its step time.

    With `others` of its family: "matmul (27 of 27 cases, +120 to +478 %)".
    """
    if others and isinstance(row, Change) and row.family:
        metric = () if row.metric == phrases.STEP_TIME else phrases.title_row(row)[1:]
        return (row.family.name, *metric, Words(f" ({table_rows.describe_cases([row, *others])})"))
    if isinstance(row, Uncompared) and row.metric:
        return phrases.title_row(row)
    if not isinstance(row, Change) or row.code is Code.UNTRUSTED:
        return (row.workload,)
    name = (row.workload,) if row.metric == phrases.STEP_TIME else phrases.title_row(row)
    if row.code is Code.WORSE_BY_HISTORY and not signs.is_far(row):
        return (
            *name,
            Words(f" {phrases.render_moved(row.metric, row.drift or 1.0)} by its history"),
        )
    return (*name, Words(f" {cells.render_moved(row)}"))
