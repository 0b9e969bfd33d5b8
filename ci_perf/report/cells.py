"""The text of each cell of a table, the same for every form of report.

Cells of our own are `Words`; `workload`, `note` and unknown metrics are foreign and stay plain
strings, for the renderer to escape.
"""

from dataclasses import dataclass

from ci_perf.judging.policy import KIND_OF
from ci_perf.model import metrics
from ci_perf.model.comparison import (
    Change,
    Numerics,
    Row,
    Severity,
    Uncompared,
    severity_of,
)
from ci_perf.model.metrics import Better, Kind
from ci_perf.model.summary import Numbers
from ci_perf.report import phrases, remarks, rules, units
from ci_perf.report.escape import Sentence, Words
from ci_perf.report.phrases import Phrase

HEADING = tuple(
    map(Words, ("", "Workload, metric", "Base → head", "Change [interval]", "Limit", "Evidence"))
)

# The parts of a cell, shown below each other.
Cell = tuple[Phrase, ...]
# A baseline keeps nine digits.
_ROUNDING = 1e-8
# An interval that is wider than this factor, and holds "no change", says nothing of the size.
_MEANINGLESS = 10.0
# Rows for which it matters what could have been detected.
_OPEN = frozenset({Severity.LIKELY_SLOWER, Severity.INCONCLUSIVE})


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """The cells of one row. ``rate`` is the throughput on both sides, ``remark`` our own note.

    ``detects`` is the smallest detectable change of an undecided row, where its limit is smaller.
    ``evidence`` counts the pairs or the sessions that decided; ``rule`` draws how they did.
    """

    severity: Severity
    icon: Words
    workload: str
    metric: str
    base: Words
    head: Words
    rate: Words
    change: Words
    rule: Words
    limit: Words
    detects: Words
    evidence: Words
    remark: Words
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLine:
    """One line of a table: one row, or the exact rows of a workload with the same mark.

    ``opens``: this is the first line of its workload, so it names the workload.
    """

    rows: tuple[TableRow, ...]
    opens: bool

    @property
    def first(self) -> TableRow:
        """Return the row that stands for what all rows of the line share."""
        return self.rows[0]


def of(line: TableLine, *, is_brief: bool = False) -> tuple[Cell, ...]:
    """Return the mark, the name, both values, the change, the limit and the evidence.

    Brief: without the throughput and the smallest detectable change.
    """
    first, rows = line.first, line.rows
    rate, detects = ((), ()) if is_brief else (_part(first.rate), _part(first.detects))
    return (
        ((first.icon,),),
        _name(line),
        (*_values(line), *rate),
        _each([row.change for row in rows]),
        (*_each([row.limit for row in rows]), *detects),
        (*_part(first.evidence), *_remark(line)),
    )


def _name(line: TableLine) -> Cell:
    """Name the workload where its lines begin, then the metrics of this one, if it has some."""
    metrics: list[str] = []
    for row in line.rows:
        metrics += [Words(", "), row.metric] if metrics else [row.metric]
    workload = (line.first.workload,)
    if not any(metrics):
        return (workload,)
    return (workload, tuple(metrics)) if line.opens else (tuple(metrics),)


def _values(line: TableLine) -> Cell:
    """Show both sides of every row, below each other unless nothing has moved."""
    shown = [units.both(row.base, row.head) for row in line.rows]
    if all(row.base == row.head for row in line.rows):
        return ((Words(", ".join(shown)),),)
    return tuple((text,) for text in shown)


def _each(shown: list[Words]) -> Cell:
    """Put the cells of the rows below each other; what they share stands once."""
    return tuple((text,) for text in (shown[:1] if len(set(shown)) == 1 else shown))


def _part(text: Words) -> Cell:
    return ((text,),) if text else ()


def _remark(line: TableLine) -> Cell:
    """Say what the numbers do not, and quote the note of the measured code."""
    said = Words("; ".join(dict.fromkeys(row.remark for row in line.rows if row.remark)))
    note = Sentence(line.first.note)
    if not note:
        return _part(said)
    return ((said, Words(": "), note),) if said else ((note,),)


# --- the texts of one row


def shown(row: Row) -> TableRow:
    """Compute every cell of one row."""
    if isinstance(row, Numerics):
        return _of_numerics(row)
    return _of_change(row) if isinstance(row, Change) else _of_uncompared(row)


def _of_change(row: Change) -> TableRow:
    severity, unit = severity_of(row), phrases.unit(row.metric)
    return TableRow(
        severity=severity,
        icon=phrases.ICON[severity],
        workload=row.workload,
        metric=phrases.metric_title(row.metric),
        base=units.value(row.base, unit),
        head=units.value(row.head, unit),
        rate=_rate(row),
        change=change(row),
        rule=rules.text(row),
        limit=_limit(row),
        detects=_detects(row),
        evidence=_evidence(row),
        remark=remarks.describe(row),
        note=row.note,
    )


def _of_uncompared(row: Uncompared) -> TableRow:
    severity = severity_of(row)
    return TableRow(
        severity=severity,
        icon=phrases.ICON[severity],
        workload=row.workload,
        metric=phrases.metric_title(row.metric) if row.metric else Words(""),
        base=_alone(row.base, row.metric),
        head=_alone(row.head, row.metric),
        rate=Words(""),
        change=units.NOTHING,
        rule=Words(""),
        limit=units.NOTHING,
        detects=Words(""),
        evidence=Words(""),
        remark=remarks.describe(row),
        note=row.note,
    )


def _of_numerics(row: Numerics) -> TableRow:
    """Show the number by which the two sides are judged, with its place."""
    severity, place = severity_of(row), row.place
    base, head = units.NOTHING, units.NOTHING
    if row.difference is not None and place < len(row.base):
        old, new = row.base[place], row.head[place]
        if row.difference < _ROUNDING:
            new = old  # digits that no baseline keeps are no difference
        base, head = units.plain(old, new), units.plain(new, old)
    return TableRow(
        severity=severity,
        icon=phrases.ICON[severity],
        workload=row.workload,
        metric=phrases.NUMERICS,
        base=base,
        head=head,
        rate=which(row) if row.difference is not None else Words(""),
        change=apart(row),
        rule=Words(""),
        limit=units.limit(row.tolerance),
        detects=Words(""),
        evidence=Words(""),
        remark=remarks.describe(row),
        note=row.note,
    )


def which(row: Numerics) -> Words:
    """Name the number that is shown: the loss of a step, or a checksum of an output tensor."""
    if row.place < row.losses:
        return Words(f"loss of step {row.place + 1}")
    return Words(f"output, tensor {(row.place - row.losses) // 2 + 1}")


def apart(row: Numerics) -> Words:
    """Say how far the two sides are apart: the largest difference, or how many numbers each has."""
    if row.difference is None:
        return Words(f"{len(row.base)} numbers → {len(row.head)}")
    if row.difference < _ROUNDING:
        return Words("the same")
    return Words(f"up to {100 * row.difference:.3g} % apart")


def _alone(numbers: Numbers, metric: str) -> Words:
    """Show the number of a side without a partner; the step time stands for a whole workload."""
    name = metric or phrases.STEP_TIME
    return units.value(numbers[name], phrases.unit(name)) if name in numbers else units.NOTHING


def _rate(row: Change) -> Words:
    """Show the throughput that follows from a step time; "steps/s" would only repeat it."""
    if row.metric != phrases.STEP_TIME or row.item_unit == "step":
        return Words("")
    base = units.throughput(row.items_per_step, row.base, row.item_unit)
    head = units.throughput(row.items_per_step, row.head, row.item_unit)
    return Words(f"{base.split(' ')[0]} → {head}") if base and head else Words("")


def change(row: Change) -> Words:
    """Show how far a metric has moved, with its interval or its absolute difference."""
    known = metrics.BY_NAME.get(row.metric)
    if row.interval is None:
        text = moved(row)
        if known is not None and known.kind in KIND_OF and row.head != row.base:
            return Words(f"{text} [bounds unknown]")  # too few pairs to know how much they differ
        is_share = known is not None and known.kind is Kind.SHARE
        if row.head == row.base or row.ratio is None or is_share:
            return text
        return Words(f"{text} ({units.difference(row.base, row.head, phrases.unit(row.metric))})")
    assert row.ratio is not None
    low, high = row.interval.low, row.interval.high
    if _is_meaningless(low, high):
        return Words(f"{moved(row)} [bounds unknown]")
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
        return units.difference(row.base, row.head, phrases.unit(row.metric))
    return phrases.moved(row.metric, row.ratio)


def alarm_size(row: Change) -> float:
    """Return the size that must be proven exceeded: of what is noisy, half the limit."""
    return row.limit / 2 if row.interval is not None else row.limit


def _limit(row: Change) -> Words:
    """Show the limit as a share, or as a quantity where it is larger than the baseline itself."""
    known = metrics.BY_NAME.get(row.metric)
    if known and known.kind is Kind.SHARE:
        points = units.points(row.limit * row.base).lstrip("+")
        return Words(points) if row.base else units.NOTHING
    size = remarks.quantity(row, row.limit) if row.limit > 1 else units.limit(row.limit)
    return Words(size)


def _detects(row: Change) -> Words:
    """Show the smallest detectable change of an open row, where it is another than the limit."""
    size = row.smallest_detectable
    if severity_of(row) not in _OPEN or size is None or size <= row.limit:
        return Words("")
    text = remarks.quantity(row, size) if row.limit > 1 else units.about(size)
    return Words(f"detects {text}")


def _evidence(row: Change) -> Words:
    """Count what decided: pairs of launches, sessions of the baseline, or launches alone."""
    if row.pairs:
        return units.numbered(row.pairs, "pair")
    if row.base_sessions:
        return units.numbered(row.base_sessions, "session")
    return Words(f"{row.base_processes} v {row.head_processes} launches")
