"""The numbers of each row of a comparison, the same for every form of report.

Cells of our own are `Words`; `workload`, `note` and unknown metrics are foreign and stay plain
strings, for the renderer to escape.
"""

from dataclasses import dataclass

from ci_perf.judging.policy import KIND_OF
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Numerics, Row, Uncompared
from ci_perf.model.metrics import Better, Kind, Unit
from ci_perf.model.summary import Numbers
from ci_perf.report import phrases, units
from ci_perf.report.escape import Words

_EMPTY = Words("")
# A baseline keeps nine digits.
_ROUNDING = 1e-8
# An interval that is wider than this factor, and holds "no change", says nothing of the size.
_MEANINGLESS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RowWords:
    """The numbers of one row. ``rate`` is the throughput on both sides.

    ``evidence`` counts the pairs or the sessions that decided.
    """

    base: Words = units.NOTHING
    head: Words = units.NOTHING
    rate: Words = _EMPTY
    change: Words = units.NOTHING
    limit: Words = units.NOTHING
    evidence: Words = _EMPTY

    @property
    def values(self) -> Words:
        """Show the numbers of both sides."""
        return units.both(self.base, self.head)


def describe(row: Row) -> RowWords:
    """Write every number of one row."""
    if isinstance(row, Numerics):
        return _describe_numerics(row)
    if isinstance(row, Uncompared):
        return RowWords(
            base=_show_alone(row.base, row.metric),
            head=_show_alone(row.head, row.metric),
            change=Words(row.code.value.replace("_", " ")),
        )
    unit = phrases.unit(row.metric)
    return RowWords(
        base=units.value(row.base, unit),
        head=units.value(row.head, unit),
        rate=_show_rate(row),
        change=show_change(row),
        limit=_show_limit(row),
        evidence=_count_evidence(row),
    )


def _describe_numerics(row: Numerics) -> RowWords:
    """Show the number by which the two sides are judged, with its place."""
    base, head, which = units.NOTHING, units.NOTHING, _EMPTY
    if row.difference is None:
        apart = f"{len(row.base)} numbers → {len(row.head)}"
    else:
        which, is_same = name_number(row), row.difference < _ROUNDING
        apart = f"up to {units.significant(100 * row.difference)} % apart"
        apart = "the same" if is_same else apart
        if row.place < len(row.base):
            old, new = row.base[row.place], row.head[row.place]
            new = old if is_same else new  # digits that no baseline keeps are no difference
            base, head = units.plain(old, new), units.plain(new, old)
    return RowWords(
        base=base,
        head=head,
        rate=which,
        change=Words(apart),
        limit=units.limit(row.tolerance),
    )


def name_number(row: Numerics) -> Words:
    """Name the number that is shown: the loss of a step, or a checksum of an output tensor."""
    if row.place < row.losses:
        return Words(f"loss of step {row.place + 1}")
    return Words(f"output, tensor {(row.place - row.losses) // 2 + 1}")


def _show_alone(numbers: Numbers, metric: str) -> Words:
    """Show the number of a side without a partner; the step time stands for a whole workload."""
    name = metric or phrases.STEP_TIME
    return units.value(numbers[name], phrases.unit(name)) if name in numbers else units.NOTHING


def _show_rate(row: Change) -> Words:
    """Show the throughput that follows from a step time; "steps/s" would only repeat it."""
    if row.metric != phrases.STEP_TIME or row.item_unit == "step":
        return _EMPTY
    base = units.throughput(row.items_per_step, row.base, row.item_unit)
    head = units.throughput(row.items_per_step, row.head, row.item_unit)
    return Words(f"{base.split(' ')[0]} → {head}") if base and head else _EMPTY


def show_change(row: Change) -> Words:
    """Show how far a metric has moved, with its interval or its absolute difference."""
    known, text = metrics.find_metric(row.metric), render_moved(row)
    if row.interval is None:
        if row.head == row.base or _is_from_zero(row):
            return text
        if known is not None and known.kind in KIND_OF:
            return Words(f"{text} (no bounds)")  # too few pairs to know how much they differ
        if known is not None and known.kind is Kind.SHARE:
            return text
        return Words(f"{text} ({units.difference(row.base, row.head, phrases.unit(row.metric))})")
    assert row.ratio is not None
    low, high = row.interval.low, row.interval.high
    if low < 1 < high and high > _MEANINGLESS * low:
        return Words(f"{text} (no bounds)")
    if known and known.better is Better.HIGHER:
        return units.change(1 / row.ratio, 1 / high, 1 / low)
    return units.change(row.ratio, low, high)


def render_moved(row: Change) -> Words:
    """Show how far a metric itself has moved, up or down, whichever of them is worse."""
    known = metrics.find_metric(row.metric)
    if known and known.kind is Kind.SHARE:
        return units.points(row.head - row.base)
    if row.ratio is None or _is_from_zero(row):
        return units.difference(row.base, row.head, phrases.unit(row.metric))
    return phrases.render_moved(row.metric, row.ratio)


def _is_from_zero(row: Change) -> bool:
    """Whether a base of zero leaves nothing to be a share of; where more is better, too."""
    return row.ratio is None or (not row.ratio and row.head > row.base)


def _show_limit(row: Change) -> Words:
    """Show the limit in the unit of the metric, too, where that is what people think in.

    Points of a share alone; bytes beside their share; a quantity alone where the limit is larger
    than the baseline itself.
    """
    known, share = metrics.find_metric(row.metric), units.limit(row.limit)
    if known and known.kind is Kind.SHARE:
        points = units.points(row.limit * row.base).lstrip("+")
        return Words(points) if row.base else units.NOTHING
    quantity = units.value(row.limit * row.base, phrases.unit(row.metric))
    if row.limit > 1 and row.base:
        return quantity
    is_of_bytes = phrases.unit(row.metric) is Unit.BYTE and row.limit * row.base > 0
    return Words(f"{quantity} ({share})") if is_of_bytes else share


def _count_evidence(row: Change) -> Words:
    """Count what decided: pairs of launches, sessions of the baseline, or launches alone."""
    if row.pairs:
        return units.render_count(row.pairs, "pair")
    if row.base_sessions:
        return units.render_count(row.base_sessions, "session")
    return Words(f"{row.base_processes} v {row.head_processes} launches")
