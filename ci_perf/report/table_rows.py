"""Which rows a table shows, in which order, and which of them share a line."""

import math
import re
from collections.abc import Iterable, Sequence

from ci_perf.model import metrics
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
from ci_perf.model.metrics import Kind
from ci_perf.report import cells, phrases
from ci_perf.report.escape import BOLD, Sentence, Words
from ci_perf.report.phrases import Phrase
from ci_perf.report.sentences import say
from ci_perf.report.tables import Table

# Numbers without noise: those of a workload share one line of the table.
_EXACT = frozenset({Kind.COUNT, Kind.DEVICE_MEMORY})
# These rows are folded.
_QUIET = frozenset({Severity.NOT_GATING, Severity.UNCHANGED})
_BOLD = frozenset({Severity.REGRESSED, Severity.NUMERICS_CHANGED})
_HEADING = ("", "Workload, metric", "Base → head", "Change [interval]", "Limit", "Evidence")
# In a cell of numbers a line may break before a bracket, and nowhere else.
_UNBROKEN_SPACE = re.compile(r" (?![\[(])")

# Rows that share a line of a table.
Line = Sequence[Row]


def worst_first(rows: Iterable[Row]) -> list[Row]:
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
    """Whether a row is folded: nobody needs to look at it."""
    return severity_of(row) in _QUIET


def list_changed(rows: Iterable[Row]) -> list[Line]:
    """List everything that somebody should look at: by workload, the worst first.

    A new workload whose pairs have rows of their own has none itself.
    """
    return _group(
        row
        for row in worst_first(rows)
        if not is_quiet(row)
        and not (
            isinstance(row, Uncompared)
            and row.verdict is Verdict.NEW
            and not (row.head or row.note)
        )
    )


def list_quiet(rows: Iterable[Row]) -> list[Line]:
    """List everything else, closest to its limit first; what cannot fail the job comes last."""
    return _group(_sort_quiet(rows))


def _sort_quiet(rows: Iterable[Row]) -> list[Row]:
    quiet = (row for row in rows if is_quiet(row))
    return sorted(
        quiet, key=lambda row: (not (isinstance(row, Change) and row.gate), -_find_closeness(row))
    )


def _group(rows: Iterable[Row]) -> list[Line]:
    """Bring the rows of a workload together, and its exact rows of one severity into one line."""
    workloads: dict[str, dict[Severity | int, list[Row]]] = {}
    for position, row in enumerate(rows):
        known = metrics.BY_NAME.get(row.metric) if isinstance(row, Change) else None
        is_exact = known is not None and known.kind in _EXACT
        key = severity_of(row) if is_exact else position
        workloads.setdefault(row.workload, {}).setdefault(key, []).append(row)
    return [line for lines in workloads.values() for line in lines.values()]


def summarise_quiet(rows: Iterable[Row]) -> Phrase:
    """Count the folded rows, and name the one closest to its limit."""
    folded = _sort_quiet(rows)
    if not folded:
        return ()
    closest = folded[0]
    is_near = isinstance(closest, Change) and closest.ratio is not None and closest.gate
    return say(
        "quiet_rows",
        tally=phrases.tally(folded),
        closest=closest if is_near else None,
        cells=cells,
    )


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


def make_table(lines: Sequence[Line], *, is_narrow: bool = False) -> Table:
    """Make a table of lines; a narrow one leaves out what stands below the numbers."""
    workloads = [line[0].workload for line in lines]
    opens = [is_narrow or at == 0 or workloads[at - 1] != name for at, name in enumerate(workloads)]
    return Table(
        heading=_HEADING,
        rows=[
            _make_cells(line, opens=first, is_narrow=is_narrow)
            for line, first in zip(lines, opens, strict=True)
        ],
        left=_HEADING[-1:],
        styles=[phrases.MARKS[severity_of(line[0])].style for line in lines],
    )


def _make_cells(line: Line, *, opens: bool, is_narrow: bool) -> Sequence[Phrase]:
    """Write the mark, the name, both values, the change, the limit and the evidence."""
    severity, words = severity_of(line[0]), [cells.describe(row) for row in line]
    first = words[0]
    titles = phrases.joined(((each.metric,) for each in words if each.metric), most=len(words))
    name = (line[0].workload,) if opens or not titles else ()
    values = [each.values for each in words]
    if all(each.base == each.head for each in words):
        values = [Words(", ".join(values))]
    rate, detects = ([], []) if is_narrow else ([first.rate], [first.detects])
    bold = (BOLD,) if severity in _BOLD else ()
    remark = Words("; ".join(dict.fromkeys(each.remark for each in words if each.remark)))
    note = (Words(": " if remark else ""), Sentence(first.note)) if first.note else ()
    changes, limits = ([each.change for each in words], [each.limit for each in words])
    return (
        (phrases.MARKS[severity].icon,),
        _stack(name, titles),
        _stack(*map(_unbreak, values + rate)),
        _stack(*((*bold, *_unbreak(change), *bold) for change in _share(changes))),
        _stack(*map(_unbreak, _share(limits) + detects)),
        _stack((first.evidence,), (remark, *note)),
    )


def _share(texts: list[Words]) -> list[Words]:
    """Keep what all rows of a line share once."""
    return texts[:1] if len(set(texts)) == 1 else texts


def _unbreak(text: Words) -> Phrase:
    """Keep a number and its unit on one line of a narrow cell."""
    return (Words(_UNBROKEN_SPACE.sub("\N{NO-BREAK SPACE}", text)),)


def _stack(*parts: Phrase) -> Phrase:
    """Put the parts of a cell below each other."""
    return phrases.joined((part for part in parts if any(part)), most=len(parts), between="\n")
