"""The first line of a report: pass, fail or no answer, with what and how much; and its scope."""

import math
from collections.abc import Iterable
from enum import Enum

from ci_perf.errors import ExitCode
from ci_perf.judging import signs
from ci_perf.model.comparison import (
    Change,
    Code,
    Comparison,
    Row,
    Severity,
    Uncompared,
    Verdict,
    is_of_workload,
)
from ci_perf.model.metrics import find_own
from ci_perf.report import cells, gate_words, phrases, provenance, remarks, table_rows
from ci_perf.report.escape import Phrase, Words
from ci_perf.report.sentences import say
from ci_perf.report.sheet import Label, RowFinding, Sheet, make_sheet

# More names of one kind than this do not fit into a line.
_MAX_NAMED = 3


class HeadlineWord(Enum):
    """The first word of a report."""

    PASS = "Pass"  # noqa: S105  a word, not a password
    FAIL = "Fail"
    NO_ANSWER = "No answer"


ICON = {HeadlineWord.PASS: "✅", HeadlineWord.FAIL: "❌", HeadlineWord.NO_ANSWER: "❓"}


def choose_word(sheet: Sheet) -> HeadlineWord:
    """Say in a word what the exit code says; 3 is a failure where a workload failed or is missing.

    A run that cannot be trusted, or a workload that ran out of time on a busy machine, says
    nothing of the code.
    """
    comparison = sheet.comparison
    if comparison.exit_code == ExitCode.OK:
        return HeadlineWord.PASS
    is_broken = not comparison.validity.is_run_invalid and any(
        finding.label and finding.label.kind == "broken" for finding in sheet.findings
    )
    is_failure = is_broken or comparison.exit_code == ExitCode.REGRESSED
    return HeadlineWord.FAIL if is_failure else HeadlineWord.NO_ANSWER


def is_calm(comparison: Comparison) -> bool:
    """Whether a comparison passes, and neither its numerics nor its gate have changed."""
    return (
        comparison.exit_code == ExitCode.OK
        and not comparison.gate_changes
        and all(row.verdict is not Verdict.NUMERICS_CHANGED for row in comparison.rows)
    )


def render(comparison: Comparison) -> str:
    """Say the verdict in one line of plain text, for a log; the whole report is in a file."""
    return phrases.plain(summarise(make_sheet(comparison)))


def summarise(sheet: Sheet) -> Phrase:
    """Answer in one line: the word, what the job does, then the worst of what was found first."""
    comparison, word, named = sheet.comparison, choose_word(sheet), _name_findings(sheet)
    icon, warning, parts = ICON[word], "", list[Phrase]()
    has_lost = any(label.kind == "loss" for label in named)
    kinds = {"broken", "numerics", "loss"}
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
    for label in Label:
        if label in named and label.kind in kinds:
            parts.append(_list(label.value, named[label]))
        if label is Label.MISSING and word is HeadlineWord.PASS and not has_lost:
            proven = " proven" if any(each.kind == "unproven" for each in named) else ""
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


def _name_findings(sheet: Sheet) -> dict[Label, list[Phrase]]:
    """Name the workloads of which something is said, each by its worst row, step times first."""
    named: dict[Label, dict[object, RowFinding]] = {}
    judged = {row.workload for row in sheet.comparison.rows if isinstance(row, Change)}
    said = [each for each in sheet.findings if each.label]
    for finding in sorted(said, key=lambda each: phrases.metric(each.row) != phrases.STEP_TIME):
        row, label = finding.row, finding.label
        if label and not (finding.severity is Severity.NEW and row.workload in judged):
            own = find_own([phrases.metric(row)])  # the user asked for each of these
            named.setdefault(label, {}).setdefault((row.workload, *own), finding)
    return {label: _name_rows(of_it.values()) for label, of_it in named.items()}


def _name_rows(findings: Iterable[RowFinding]) -> list[Phrase]:
    """Name as many families and rows as a line shows; then each row, for it will be counted."""
    groups = table_rows.group_families(findings)
    named = [_name_size(*group) for group in groups[:_MAX_NAMED]]
    return named + [()] * sum(map(len, groups[_MAX_NAMED:]))


def _list(label: str, parts: Iterable[Phrase]) -> Phrase:
    return (Words(f"{label}: "), *phrases.join_phrases(parts, most=_MAX_NAMED))


def _name_size(finding: RowFinding, *others: RowFinding) -> Phrase:
    """Show a row as short as it can be understood: "bert +4.1 %" is about its step time.

    With `others` of its family: "matmul (27 of 27 cases, +120 to +478 %)".
    """
    row = finding.row
    if others and isinstance(row, Change) and row.family:
        metric = () if row.metric == phrases.STEP_TIME else phrases.title_row(row)[1:]
        cases = table_rows.describe_cases([finding, *others])
        return (row.family.name, *metric, Words(f" ({cases})"))
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
