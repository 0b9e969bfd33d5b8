"""The rows of the tables: every cell computed here, so that a template only loops.

Cells of our own are `Words`; `workload`, `note` and unknown metrics are foreign and stay plain
strings, for the renderer to escape.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ci_perf.judge.policy import KIND_OF
from ci_perf.model import metrics
from ci_perf.model.comparison import (
    Change,
    Numerics,
    Row,
    Severity,
    Uncompared,
    Verdict,
    severity_of,
)
from ci_perf.model.metrics import Better, Kind
from ci_perf.model.summary import Numbers
from ci_perf.report import remarks, units, words
from ci_perf.report.escape import Words
from ci_perf.report.words import Phrase

# A baseline keeps nine digits.
_ROUNDING = 1e-8
# Numbers without noise: those of a workload share one line of the table.
_EXACT = frozenset({Kind.COUNT, Kind.DEVICE_MEMORY})
# An interval that is wider than this factor, and holds "no change", says nothing of the size.
_MEANINGLESS = 10.0
# Where it matters what could have been seen.
_OPEN = frozenset({Severity.LIKELY_SLOWER, Severity.INCONCLUSIVE, Severity.UNCONFIRMED})
# These need nobody's eyes, and are folded.
_QUIET = frozenset({Severity.NOT_GATING, Severity.UNCHANGED})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """The cells of one row. ``rate`` is the throughput on both sides, ``remark`` our own note.

    ``detects`` is the smallest detectable change of an undecided row, where its limit is smaller.
    ``evidence`` counts the pairs or the sessions that decided.
    """

    severity: Severity
    icon: Words
    workload: str
    metric: str
    base: Words
    head: Words
    rate: Words
    change: Words
    limit: Words
    detects: Words
    evidence: Words
    remark: Words
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of a table: one row, or the exact rows of a workload that have the same mark.

    ``opens``: the first line of its workload, which names it.
    """

    rows: tuple[TableRow, ...]
    opens: bool

    @property
    def first(self) -> TableRow:
        """Return the row that stands for what all rows of the line share."""
        return self.rows[0]


def worst_first(rows: Iterable[Row]) -> list[Row]:
    """Order rows as people should read them: by severity, losses first, by how far they went."""
    return sorted(rows, key=lambda row: (severity_of(row).rank, is_gain(row), -closeness(row)))


def is_gain(row: Row) -> bool:
    """Whether it is a suspicion that nobody minds."""
    is_suspected = row.verdict is Verdict.UNCONFIRMED
    return is_suspected and isinstance(row, Change) and row.ratio is not None and row.ratio < 1


def changed(rows: Iterable[Row]) -> list[Line]:
    """Everything that somebody should look at: by workload, the worst first."""
    return _lines(row for row in worst_first(rows) if severity_of(row) not in _QUIET)


def quiet(rows: Iterable[Row]) -> list[Line]:
    """Everything else, closest to its limit first; what cannot fail the job comes last."""
    return _lines(_quiet(rows))


def _lines(rows: Iterable[Row]) -> list[Line]:
    """Bring the rows of a workload together, and its exact rows of one severity into one line."""
    workloads: dict[str, dict[Severity | int, list[Row]]] = {}
    for position, row in enumerate(rows):
        key = severity_of(row) if _is_exact(row) else position
        workloads.setdefault(row.workload, {}).setdefault(key, []).append(row)
    return [
        Line(rows=tuple(map(shown, together)), opens=position == 0)
        for lines in workloads.values()
        for position, together in enumerate(lines.values())
    ]


def _is_exact(row: Row) -> bool:
    known = metrics.BY_NAME.get(row.metric) if isinstance(row, Change) else None
    return known is not None and known.kind in _EXACT


def quiet_summary(rows: Iterable[Row]) -> Phrase:
    """Count the folded rows, and name the one that a reader would ask about."""
    found = _quiet(rows)
    if not found:
        return ()
    counts, closest = words.tally(found), found[0]
    if not isinstance(closest, Change) or closest.ratio is None or not closest.gate:
        return (Words(counts),)
    word = "limit" if _bound(closest) == closest.limit else "margin"
    size = f" {moved(closest)}, {word} {units.limit(_bound(closest))})"
    title = words.metric_title(closest.metric)
    near = Words(f"{counts} (closest to its {word}: ")
    return (near, closest.workload, Words(" "), title, Words(size))


def failed(rows: Iterable[Row]) -> list[Uncompared]:
    """Pick the workloads that have no numbers but a reason."""
    return [row for row in rows if isinstance(row, Uncompared) and row.verdict is Verdict.FAILED]


def closeness(row: Row) -> float:
    """How much of its limit, or of the margin within which it is unchanged, a change uses up.

    1 is at the limit. Nothing to compare is 0.
    """
    if isinstance(row, Uncompared):
        return 0.0
    if isinstance(row, Numerics):
        return math.inf if row.difference is None else _share_of(row.difference, row.tolerance)
    if row.ratio is None:
        return math.inf if row.head != row.base else 0.0
    return _share_of(abs(row.ratio - 1), _bound(row))


def _bound(row: Change) -> float:
    """Return the size that a row has surely not reached; of what is noisy that is its margin."""
    return row.margin if row.verdict is Verdict.UNCHANGED else row.limit


def _share_of(size: float, limit: float) -> float:
    if size == 0:
        return 0.0
    return size / limit if limit > 0 else math.inf


def _quiet(rows: Iterable[Row]) -> list[Row]:
    found = [row for row in rows if severity_of(row) in _QUIET]
    return sorted(found, key=lambda row: (not _gates(row), -closeness(row)))


def _gates(row: Row) -> bool:
    return isinstance(row, Change) and row.gate


def shown(row: Row) -> TableRow:
    """Compute every cell of one row."""
    if isinstance(row, Numerics):
        return _of_numerics(row)
    return _of_change(row) if isinstance(row, Change) else _of_uncompared(row)


def _of_change(row: Change) -> TableRow:
    found, unit = severity_of(row), words.unit(row.metric)
    return TableRow(
        severity=found,
        icon=words.ICON[found],
        workload=row.workload,
        metric=words.metric_title(row.metric),
        base=units.value(row.base, unit),
        head=units.value(row.head, unit),
        rate=_rate(row),
        change=change(row),
        limit=_limit(row),
        detects=_detects(row),
        evidence=_evidence(row),
        remark=remarks.of(row),
        note=row.note,
    )


def _of_uncompared(row: Uncompared) -> TableRow:
    found = severity_of(row)
    return TableRow(
        severity=found,
        icon=words.ICON[found],
        workload=row.workload,
        metric=words.metric_title(row.metric) if row.metric else Words(""),
        base=_alone(row.base, row.metric),
        head=_alone(row.head, row.metric),
        rate=Words(""),
        change=units.NOTHING,
        limit=units.NOTHING,
        detects=Words(""),
        evidence=Words(""),
        remark=remarks.of(row),
        note=row.note,
    )


def _of_numerics(row: Numerics) -> TableRow:
    """Show the number by which the two sides are judged, with its place."""
    found, place = severity_of(row), row.place
    base, head = units.NOTHING, units.NOTHING
    if row.difference is not None and place < len(row.base):
        old, new = row.base[place], row.head[place]
        if row.difference < _ROUNDING:
            new = old  # digits that no baseline keeps are no difference
        base, head = units.plain(old, new), units.plain(new, old)
    return TableRow(
        severity=found,
        icon=words.ICON[found],
        workload=row.workload,
        metric=words.NUMERICS,
        base=base,
        head=head,
        rate=which(row) if row.difference is not None else Words(""),
        change=apart(row),
        limit=units.limit(row.tolerance),
        detects=Words(""),
        evidence=Words(""),
        remark=remarks.of(row),
        note=row.note,
    )


def which(row: Numerics) -> Words:
    """Name the number that is shown: the loss of a step, or a checksum of an output tensor."""
    if row.place < row.losses:
        return Words(f"loss of step {row.place + 1}")
    return Words(f"output, tensor {(row.place - row.losses) // 2 + 1}")


def apart(row: Numerics) -> Words:
    """Say how far the two sides are apart: by the largest difference, or by how many they are."""
    if row.difference is None:
        return Words(f"{len(row.base)} numbers → {len(row.head)}")
    if row.difference < _ROUNDING:
        return Words("the same")
    return Words(f"up to {100 * row.difference:.3g} % apart")


def _alone(numbers: Numbers, metric: str) -> Words:
    """Show the number of a side without a partner; the step time stands for a whole workload."""
    name = metric or words.STEP_TIME
    return units.value(numbers[name], words.unit(name)) if name in numbers else units.NOTHING


def _rate(row: Change) -> Words:
    """Show the throughput that a step time means; "steps/s" would only repeat it."""
    if row.metric != words.STEP_TIME or row.item_unit == "step":
        return Words("")
    base = units.throughput(row.items_per_step, row.base, row.item_unit)
    head = units.throughput(row.items_per_step, row.head, row.item_unit)
    return Words(f"{base.split(' ')[0]} → {head}") if base and head else Words("")


def change(row: Change) -> Words:
    """Show how far a metric has moved, with its interval, or with the difference it means."""
    known = metrics.BY_NAME.get(row.metric)
    if row.interval is None:
        text = moved(row)
        if known is not None and known.kind in KIND_OF and row.head != row.base:
            return Words(f"{text} [unknown]")  # too few pairs to know how much they differ
        is_share = known is not None and known.kind is Kind.SHARE
        if row.head == row.base or row.ratio is None or is_share:
            return text
        return Words(f"{text} ({units.difference(row.base, row.head, words.unit(row.metric))})")
    assert row.ratio is not None
    low, high = row.interval.low, row.interval.high
    if _is_meaningless(low, high):
        return Words(f"{moved(row)} [unknown]")
    if known and known.better is Better.HIGHER:
        return units.change(1 / row.ratio, 1 / high, 1 / low)
    return units.change(row.ratio, low, high)


def _is_meaningless(low: float, high: float) -> bool:
    """Whether an interval allows both much less and much more."""
    return low < 1 < high and high > _MEANINGLESS * low


def moved(row: Change) -> Words:
    """Show how far a metric itself has moved, up or down, whichever of them is worse."""
    known = metrics.BY_NAME.get(row.metric)
    if known and known.kind is Kind.SHARE:
        return units.points(row.head - row.base)
    if row.ratio is None:
        return units.difference(row.base, row.head, words.unit(row.metric))
    return words.moved(row.metric, row.ratio)


def _limit(row: Change) -> Words:
    """Show the size that a change must exceed; of an unchanged row the margin that it keeps.

    It is a share; one that is larger than the baseline itself is shown as a quantity.
    """
    known = metrics.BY_NAME.get(row.metric)
    bound = _bound(row)
    size: str = units.limit(bound)
    if known and known.kind is Kind.SHARE:
        size = units.points(bound * row.base).lstrip("+") if row.base else units.NOTHING
    elif row.limit > 1:
        size = remarks.quantity(row, bound)
    return Words(f"margin {size}" if bound != row.limit else size)


def _detects(row: Change) -> Words:
    """Show the smallest detectable change of an open row, where it is another than the limit."""
    found = row.smallest_detectable
    if severity_of(row) not in _OPEN or found is None or found <= row.limit:
        return Words("")
    shown = remarks.quantity(row, found) if row.limit > 1 else units.about(found)
    return Words(f"detects {shown}")


def _evidence(row: Change) -> Words:
    """Count what decided: pairs of launches, sessions of the baseline, or launches alone."""
    if row.pairs:
        return Words(remarks.pairs(row.pairs))
    if row.base_sessions:
        return units.numbered(row.base_sessions, "session")
    return Words(f"{row.base_processes} v {row.head_processes} launches")
