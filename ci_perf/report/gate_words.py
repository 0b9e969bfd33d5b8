"""What a pull request does to the gate that judges it, in words: one line for each kind."""

from collections.abc import Iterable

from ci_perf.model.gate_change import GateChange
from ci_perf.model.metrics import Unit
from ci_perf.model.suite import Limit
from ci_perf.report import phrases, units
from ci_perf.report.escape import Phrase, Sentence, Words

_NONE = Words("none")


def group_by_kind(
    changes: Iterable[GateChange], *, has_reasons: bool = False
) -> dict[str, list[Phrase]]:
    """Say what is changed, by our word for it, in the order of `changes`."""
    said: dict[str, list[Phrase]] = {}
    for change in changes:
        reason = change.reason if has_reasons else ""
        why = (Words(", because: "), Sentence(reason)) if reason else ()
        # `mlp` step time 5 % → 900 %
        name = phrases.metric_title(change.name)
        parts = [part for part in ((change.workload,), (name,), _values(change)) if any(part)]
        shown = phrases.join_phrases(parts, most=len(parts), between=" ")
        said.setdefault(change.kind.value, []).append((*shown, *why))
    return said


def list_lines(changes: Iterable[GateChange]) -> list[Phrase]:
    """Make a line of each kind of change, with the reasons that the author gives."""
    said = group_by_kind(changes, has_reasons=True).items()
    return [(Words(f"{kind}: "), *phrases.join_phrases(named)) for kind, named in said]


def _values(change: GateChange) -> Phrase:
    unit, before, after = phrases.unit(change.name), change.before, change.after
    if isinstance(before, Limit) and isinstance(after, Limit):
        return (Words(f"{_limit(before, unit)} → {_limit(after, unit)}"),)
    if isinstance(before, int | float) and isinstance(after, int | float):
        moved = f" ({units.percent(after / before - 1)})" if before else ""
        return (units.both(units.value(before, unit), units.value(after, unit)), Words(moved))
    old, new = (side if isinstance(side, str) else "" for side in (before, after))
    if not (old or new):
        return ()
    return (*((old, Words(" ")) if old else ()), Words("→ "), new or _NONE)


def _limit(limit: Limit, unit: Unit | None) -> Words:
    """Show the share, the size or both; the larger one counts."""
    share = [units.limit(limit.relative)] if limit.relative or not limit.absolute else []
    size = [units.value(limit.absolute, unit)] if limit.absolute else []
    return Words(" or ".join([*share, *size]))
