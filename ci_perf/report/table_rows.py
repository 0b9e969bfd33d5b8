"""Which rows a table shows, in which order, and which of them share a line."""

import math
from collections.abc import Iterable

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
from ci_perf.report import cells, phrases, units
from ci_perf.report.cells import TableLine
from ci_perf.report.escape import Words
from ci_perf.report.phrases import Phrase

# Numbers without noise: those of a workload share one line of the table.
_EXACT = frozenset({Kind.COUNT, Kind.DEVICE_MEMORY})
# These rows are folded.
_QUIET = frozenset({Severity.NOT_GATING, Severity.UNCHANGED})


def worst_first(rows: Iterable[Row]) -> list[Row]:
    """Order rows as people should read them: by severity, losses first, by how far they went."""
    return sorted(rows, key=lambda row: (severity_of(row).rank, is_gain(row), -closeness(row)))


def is_gain(row: Row) -> bool:
    """Whether the row is a suspected gain."""
    return row.verdict is Verdict.INCONCLUSIVE and row.code is Code.HISTORY_ALONE


def is_quiet(row: Row) -> bool:
    """Whether a row is folded: nobody needs to look at it."""
    return severity_of(row) in _QUIET


def changed(rows: Iterable[Row]) -> list[TableLine]:
    """Everything that somebody should look at: by workload, the worst first."""
    return _lines(row for row in worst_first(rows) if not (is_quiet(row) or _is_empty(row)))


def _is_empty(row: Row) -> bool:
    """Whether a row says nothing: a new workload, whose pairs have rows of their own."""
    is_new = isinstance(row, Uncompared) and row.verdict is Verdict.NEW
    return is_new and not (row.head or row.note)


def quiet(rows: Iterable[Row]) -> list[TableLine]:
    """Everything else, closest to its limit first; what cannot fail the job comes last."""
    return _lines(_quiet(rows))


def _lines(rows: Iterable[Row]) -> list[TableLine]:
    """Bring the rows of a workload together, and its exact rows of one severity into one line."""
    workloads: dict[str, dict[Severity | int, list[Row]]] = {}
    for position, row in enumerate(rows):
        key = severity_of(row) if _is_exact(row) else position
        workloads.setdefault(row.workload, {}).setdefault(key, []).append(row)
    return [
        TableLine(rows=tuple(map(cells.shown, together)), opens=position == 0)
        for lines in workloads.values()
        for position, together in enumerate(lines.values())
    ]


def _is_exact(row: Row) -> bool:
    known = metrics.BY_NAME.get(row.metric) if isinstance(row, Change) else None
    return known is not None and known.kind in _EXACT


def quiet_summary(rows: Iterable[Row]) -> Phrase:
    """Count the folded rows, and name the one closest to its limit."""
    folded = _quiet(rows)
    if not folded:
        return ()
    counts, closest = phrases.tally(folded), folded[0]
    if not isinstance(closest, Change) or closest.ratio is None or not closest.gate:
        return (Words(counts),)
    size = f" {cells.moved(closest)}, limit {units.limit(closest.limit)})"
    title = phrases.metric_title(closest.metric)
    near = Words(f"{counts} (closest to its limit: ")
    return (near, closest.workload, Words(" "), title, Words(size))


def failed(rows: Iterable[Row]) -> list[Uncompared]:
    """Pick the workloads that have no numbers but a reason."""
    return [row for row in rows if isinstance(row, Uncompared) and row.code is Code.FAILED]


def closeness(row: Row) -> float:
    """Return how much of its limit a change uses up.

    1 is at the limit. Nothing to compare is 0.
    """
    if isinstance(row, Uncompared):
        return 0.0
    if isinstance(row, Numerics):
        return math.inf if row.difference is None else _share_of(row.difference, row.tolerance)
    if row.ratio is None:
        return math.inf if row.head != row.base else 0.0
    return _share_of(abs(row.ratio - 1), row.limit)


def _share_of(size: float, limit: float) -> float:
    if size == 0:
        return 0.0
    return size / limit if limit > 0 else math.inf


def _quiet(rows: Iterable[Row]) -> list[Row]:
    unseen = [row for row in rows if is_quiet(row)]
    return sorted(unseen, key=lambda row: (not _gates(row), -closeness(row)))


def _gates(row: Row) -> bool:
    return isinstance(row, Change) and row.gate
