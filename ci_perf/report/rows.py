"""The rows of the tables: every cell computed here, so that a template only loops.

Cells of our own are `Words`; `workload`, `note` and unknown metrics are foreign and stay plain
strings, for the renderer to escape.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Numerics, Row, Uncompared, Verdict
from ci_perf.model.metrics import Better, Kind
from ci_perf.model.summary import Numbers
from ci_perf.report import remarks, standings, units, words
from ci_perf.report.escape import Words
from ci_perf.report.standings import Standing
from ci_perf.report.words import Phrase

# A baseline keeps nine digits.
_ROUNDING = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """One line of a table. ``rate`` is the throughput on both sides, ``remark`` our own note.

    ``detects`` is the smallest detectable change, empty where the limit is.
    """

    standing: Standing
    icon: Words
    workload: str
    metric: str
    base: Words
    head: Words
    rate: Words
    change: Words
    limit: Words
    detects: Words
    processes: Words
    remark: Words
    note: str


def worst_first(rows: Iterable[Row]) -> list[Row]:
    """Order rows as people should read them: by standing, losses first, by how far they went."""
    return sorted(
        rows, key=lambda row: (standings.ORDER[standings.of(row)], _is_gain(row), -closeness(row))
    )


def _is_gain(row: Row) -> bool:
    """Whether it is a suspicion that nobody minds."""
    is_suspected = row.verdict is Verdict.UNCONFIRMED
    return is_suspected and isinstance(row, Change) and row.ratio is not None and row.ratio < 1


def changed(rows: Iterable[Row]) -> list[TableRow]:
    """Everything that somebody should look at, worst first."""
    return [shown(row) for row in worst_first(rows) if standings.of(row) not in standings.QUIET]


def quiet(rows: Iterable[Row]) -> list[TableRow]:
    """Everything else, closest to its limit first; what cannot fail the job comes last."""
    return [shown(row) for row in _quiet(rows)]


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
    found = [row for row in rows if standings.of(row) in standings.QUIET]
    return sorted(found, key=lambda row: (not _gates(row), -closeness(row)))


def _gates(row: Row) -> bool:
    return isinstance(row, Change) and row.gate


def shown(row: Row) -> TableRow:
    """Compute every cell of one row."""
    if isinstance(row, Numerics):
        return _of_numerics(row)
    return _of_change(row) if isinstance(row, Change) else _of_uncompared(row)


def _of_change(row: Change) -> TableRow:
    found, unit = standings.of(row), words.unit(row.metric)
    return TableRow(
        standing=found,
        icon=standings.ICON[found],
        workload=row.workload,
        metric=words.metric_title(row.metric),
        base=units.value(row.base, unit),
        head=units.value(row.head, unit),
        rate=_rate(row),
        change=change(row),
        limit=_limit(row),
        detects=_detects(row),
        processes=_launches(row),
        remark=remarks.of(row),
        note=row.note,
    )


def _of_uncompared(row: Uncompared) -> TableRow:
    found = standings.of(row)
    return TableRow(
        standing=found,
        icon=standings.ICON[found],
        workload=row.workload,
        metric=words.metric_title(row.metric) if row.metric else Words("whole workload"),
        base=_alone(row.base, row.metric),
        head=_alone(row.head, row.metric),
        rate=Words(""),
        change=units.NOTHING,
        limit=units.NOTHING,
        detects=Words(""),
        processes=units.NOTHING,
        remark=remarks.of(row),
        note=row.note,
    )


def _of_numerics(row: Numerics) -> TableRow:
    """Show the number by which the two sides are judged, with its place."""
    found, place = standings.of(row), row.place
    base, head = units.NOTHING, units.NOTHING
    if row.difference is not None and place < len(row.base):
        old, new = row.base[place], row.head[place]
        if row.difference < _ROUNDING:
            new = old  # digits that no baseline keeps are no difference
        base, head = units.plain(old, new), units.plain(new, old)
    return TableRow(
        standing=found,
        icon=standings.ICON[found],
        workload=row.workload,
        metric=words.NUMERICS,
        base=base,
        head=head,
        rate=which(row) if row.difference is not None else Words(""),
        change=apart(row),
        limit=_with_gate(units.limit(row.tolerance), gate=row.gate),
        detects=Words(""),
        processes=units.NOTHING,
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
        is_share = known is not None and known.kind is Kind.SHARE
        if row.head == row.base or row.ratio is None or is_share:
            return text
        return Words(f"{text} ({units.difference(row.base, row.head, words.unit(row.metric))})")
    assert row.ratio is not None
    if known and known.better is Better.HIGHER:
        return units.change(1 / row.ratio, 1 / row.interval.high, 1 / row.interval.low)
    return units.change(row.ratio, row.interval.low, row.interval.high)


def moved(row: Change) -> Words:
    """Show how far a metric itself has moved, up or down, whichever of them is worse."""
    known = metrics.BY_NAME.get(row.metric)
    if known and known.kind is Kind.SHARE:
        return units.points(row.head - row.base)
    if row.ratio is None:
        return units.difference(row.base, row.head, words.unit(row.metric))
    return words.moved(row.metric, row.ratio)


def _limit(row: Change) -> Words:
    """Show a limit as a share; one that is larger than the baseline itself as a quantity."""
    known = metrics.BY_NAME.get(row.metric)
    size: str = units.limit(row.limit)
    if known and known.kind is Kind.SHARE:
        size = units.points(row.limit * row.base).lstrip("+") if row.base else units.NOTHING
    elif row.limit > 1:
        size = remarks.quantity(row, row.limit)
    return _with_gate(size, gate=row.gate)


def _detects(row: Change) -> Words:
    """Show the smallest detectable change, where it is another than the limit."""
    found = row.smallest_detectable
    if found is None or found <= row.limit:
        return Words("")
    shown = remarks.quantity(row, found) if row.limit > 1 else units.about(found)
    return Words(f"detects {shown}")


def _launches(row: Change) -> Words:
    """Count the launches that decided: pairs of them, or those of each side."""
    if row.pairs:
        return Words(remarks.pairs(row.pairs))
    return Words(f"{row.base_processes} v {row.head_processes}")


def _with_gate(size: str, *, gate: bool) -> Words:
    return Words(size + ("" if gate else ", no gate"))
