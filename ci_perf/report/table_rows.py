"""Which rows a table shows, in which order, and the cells of each."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from ci_perf.model.comparison import (
    Change,
    Code,
    Numerics,
    Row,
    Severity,
    Uncompared,
    Verdict,
    severity_of,
)
from ci_perf.report import cells, phrases
from ci_perf.report.escape import BOLD, Phrase, Sentence, Words
from ci_perf.report.tables import Table

R = TypeVar("R", bound=Row)
# These rows need nobody's attention.
_QUIET = frozenset({Severity.NOT_GATING, Severity.UNCHANGED})
_BOLD = frozenset({Severity.REGRESSED, Severity.NUMERICS_CHANGED})
_HEADING = ("Workload", "Base → head", "Change", "Limit", "Evidence")
_FEWEST_CASES = 2
# What is said of these is no change between both sides.
_OTHER_SIZE = frozenset({Code.UNTRUSTED, Code.WORSE_BY_HISTORY})
# In a cell of numbers a line may break before a bracket, and nowhere else.
_UNBROKEN_SPACE = re.compile(r" (?![\[(])")


def worst_first(rows: Iterable[R]) -> list[R]:
    """Order rows as people should read them: by severity, losses first, by how far they went."""
    return sorted(
        rows,
        key=lambda row: (
            severity_of(row).rank,
            # Of suspicions, losses come before gains.
            row.verdict is Verdict.INCONCLUSIVE and row.code is Code.HISTORY_ALONE,
            -_find_closeness(row),
        ),
    )


def is_quiet(row: Row) -> bool:
    """Whether nobody needs to look at a row."""
    return severity_of(row) in _QUIET


def list_shown(rows: Iterable[Row]) -> list[Row]:
    """List the rows of a table, the worst first.

    A new workload whose pairs have rows of their own has none itself.
    """
    return [
        row
        for row in worst_first(rows)
        if not isinstance(row, Uncompared) or row.verdict is not Verdict.NEW or row.head or row.note
    ]


def group_families(rows: Iterable[Row]) -> list[list[Row]]:
    """Put the cases of a family that went the same way together, in the place of the first one."""
    groups: dict[object, list[Row]] = {}
    for number, row in enumerate(rows):
        key: object = number
        if isinstance(row, Change) and row.family:
            key = (row.family, row.metric, severity_of(row), row.verdict, row.gate)
        groups.setdefault(key, []).append(row)
    return list(groups.values())


def describe_cases(group: Iterable[Row]) -> Words:
    """Count the cases of a family, and say how far they went; nothing of one row."""
    cases = [row for row in group if isinstance(row, Change)]
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


def list_cases(group: Sequence[Row], *, most: int) -> Phrase:
    """Name the cases that one line of a table stands for, each with its change."""
    cases = [row for row in group if isinstance(row, Change) and row.family]
    name = cases[0].family.name if cases[0].family else ""
    named: Iterator[Phrase] = (
        (row.workload.removeprefix(f"{name}."), Words(f" {cells.render_moved(row)}"))
        for row in cases
    )
    return (name, Words(": "), *phrases.join_phrases(named, most=most))


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


# --- the cells


def make_table(groups: Sequence[Sequence[Row]], *, has_evidence: bool) -> Table:
    """Make a table with a line for each group of rows, which shows its first one.

    With ``has_evidence`` it says of each what decided, or would.
    """
    heading = _HEADING if has_evidence else _HEADING[:-1]
    return Table(
        heading=heading,
        rows=[_make_cells(group, has_evidence=has_evidence) for group in groups],
        left=_HEADING[-1:],
        styles=[phrases.MARKS[severity_of(row)][1] for row, *_ in groups],
    )


def _make_cells(group: Sequence[Row], *, has_evidence: bool) -> Sequence[Phrase]:
    """Write the mark and the name, both values, the change, the limit and the evidence."""
    row, words = group[0], cells.describe(group[0])
    said = describe_cases(group)
    between = "\n" if has_evidence else " "
    stands_for = (Words(f"{between}(stands for {said})"),) if said else ()
    bold = (BOLD,) if severity_of(row) in _BOLD else ()
    values, limit = _unbreak(words.values), _unbreak(words.limit)
    change = (*bold, *_unbreak(words.change), *bold)
    if not has_evidence:
        return (*name_row(row), *stands_for), values, change, limit
    note = (Words(": " if words.remark else ""), Sentence(words.note)) if words.note else ()
    evidence: list[Phrase] = [(words.evidence,), (words.rate,), (words.remark, *note)]
    return (
        (*name_row(row, between=between), *stands_for),
        values,
        change,
        limit,
        phrases.join_phrases(filter(any, evidence), most=len(evidence), between="\n"),
    )


def name_row(row: Row, *, between: str = " ") -> Phrase:
    """Name a row by its mark, its workload and, if it has one, its metric."""
    mark, metric = phrases.MARKS[severity_of(row)][0], phrases.metric_title(phrases.metric(row))
    named = (Words(between), metric) if metric else ()
    return (Words(f"{mark} "), row.workload, *named)


def _unbreak(text: Words) -> Phrase:
    """Keep a number and its unit on one line of a narrow cell."""
    return (Words(_UNBROKEN_SPACE.sub("\N{NO-BREAK SPACE}", text)),)
