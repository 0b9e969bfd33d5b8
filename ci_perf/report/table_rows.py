"""Which rows a table shows, in which order, and the cells of each."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ci_perf.model.comparison import Change, Code, Severity, Uncompared, Verdict
from ci_perf.report import cells, phrases, remarks
from ci_perf.report.escape import BOLD, Phrase, Sentence, Words
from ci_perf.report.sheet import RowFinding
from ci_perf.report.tables import Table

_BOLD = frozenset({Severity.REGRESSED, Severity.NUMERICS_CHANGED})
_HEADING = ("Workload", "Base → head", "Change", "Limit", "Evidence")
_FEWEST_CASES = 2
# What is said of these is no change between both sides.
_OTHER_SIZE = frozenset({Code.UNTRUSTED, Code.WORSE_BY_HISTORY})
# In a cell of numbers a line may break before a bracket, and nowhere else.
_UNBROKEN_SPACE = re.compile(r" (?![\[(])")


def list_shown(findings: Iterable[RowFinding]) -> list[RowFinding]:
    """List what a table shows: a new workload whose pairs have rows of their own has none."""
    return [
        each
        for each in findings
        if not isinstance(row := each.row, Uncompared)
        or row.verdict is not Verdict.NEW
        or row.head
        or row.note
    ]


def tally(findings: Iterable[RowFinding]) -> Words:
    """Count rows by severity, each with its mark."""
    counted = Counter(
        (
            phrases.MARKS[each.severity][0],
            phrases.name_severity(each.severity, phrases.metric(each.row)),
        )
        for each in findings
    )
    return Words(" · ".join(f"{mark} {n:,} {name}" for (mark, name), n in counted.items()))


def group_families(findings: Iterable[RowFinding]) -> list[list[RowFinding]]:
    """Put the cases of a family that went the same way together, in the place of the first one."""
    groups: dict[object, list[RowFinding]] = {}
    for number, finding in enumerate(findings):
        key: object = number
        if isinstance(row := finding.row, Change) and row.family:
            key = (row.family, row.metric, finding.severity, row.verdict, row.gate)
        groups.setdefault(key, []).append(finding)
    return list(groups.values())


def describe_cases(group: Iterable[RowFinding]) -> Words:
    """Count the cases of a family, and say how far they went; nothing of one row."""
    cases = [each.row for each in group if isinstance(each.row, Change)]
    if len(cases) < _FEWEST_CASES or cases[0].family is None:
        return Words("")
    counted = f"{len(cases):,} of {cases[0].family.cases:,} cases"
    if any(row.code in _OTHER_SIZE for row in cases):
        return Words(counted)
    ordered = sorted(cases, key=lambda row: math.inf if row.ratio is None else row.ratio)
    low, high = cells.render_moved(ordered[0]), cells.render_moved(ordered[-1])
    number, _, unit = low.rpartition(" ")
    begin = number if unit == high.rpartition(" ")[2] else low
    return Words(f"{counted}, {high if low == high else f'{begin} to {high}'}")


def list_cases(group: Iterable[RowFinding], *, most: int) -> Phrase:
    """Name the cases that one line of a table stands for, each with its change."""
    cases = [row for each in group if isinstance(row := each.row, Change) and row.family]
    name = cases[0].family.name if cases[0].family else ""
    named: Iterator[Phrase] = (
        (row.workload.removeprefix(f"{name}."), Words(f" {cells.render_moved(row)}"))
        for row in cases
    )
    return (name, Words(": "), *phrases.join_phrases(named, most=most))


# --- the cells


def make_table(groups: Sequence[Sequence[RowFinding]], *, has_evidence: bool) -> Table:
    """Make a table with a line for each group of rows, which shows its first one.

    With ``has_evidence`` it says of each what decided, or would.
    """
    heading = _HEADING if has_evidence else _HEADING[:-1]
    return Table(
        heading=heading,
        rows=[_make_cells(group, has_evidence=has_evidence) for group in groups],
        left=_HEADING[-1:],
        styles=[phrases.MARKS[first.severity][1] for first, *_ in groups],
    )


def _make_cells(group: Sequence[RowFinding], *, has_evidence: bool) -> Sequence[Phrase]:
    """Write the mark and the name, both values, the change, the limit and the evidence."""
    first, words = group[0], cells.describe(group[0].row)
    said = describe_cases(group)
    between = "\n" if has_evidence else " "
    stands_for = (Words(f"{between}(stands for {said})"),) if said else ()
    bold = (BOLD,) if first.severity in _BOLD else ()
    values, limit = _unbreak(words.values), _unbreak(words.limit)
    change = (*bold, *_unbreak(words.change), *bold)
    if not has_evidence:
        return (*name_row(first), *stands_for), values, change, limit
    remark, said_of_it = remarks.describe(first.row), first.row.note
    note = (Words(": " if remark else ""), Sentence(said_of_it)) if said_of_it else ()
    evidence: list[Phrase] = [(words.evidence,), (words.rate,), (remark, *note)]
    return (
        (*name_row(first, between=between), *stands_for),
        values,
        change,
        limit,
        phrases.join_phrases(filter(any, evidence), most=len(evidence), between="\n"),
    )


def name_row(finding: RowFinding, *, between: str = " ") -> Phrase:
    """Name a row by its mark, its workload and, if it has one, its metric."""
    mark, metric = (
        phrases.MARKS[finding.severity][0],
        phrases.metric_title(phrases.metric(finding.row)),
    )
    named = (Words(between), metric) if metric else ()
    return (Words(f"{mark} "), finding.row.workload, *named)


def _unbreak(text: Words) -> Phrase:
    """Keep a number and its unit on one line of a narrow cell."""
    return (Words(_UNBROKEN_SPACE.sub("\N{NO-BREAK SPACE}", text)),)
