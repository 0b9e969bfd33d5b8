"""Remarks on a row that its verdict does not make: why, and what would decide it."""

import math
from collections.abc import Iterable

from ci_perf.judging import signs
from ci_perf.model.comparison import (
    Change,
    Remedy,
    Row,
    Severity,
    Uncompared,
    Verdict,
    severity_of,
)
from ci_perf.report import phrases, same_program, units
from ci_perf.report.escape import Words

# That larger losses are excluded says nothing.
_LARGEST_EXCLUDED = 10.0
# What a workload computes, before how fast it does.
_NUMERICS = frozenset({Severity.NUMERICS_CHANGED, Severity.NUMERICS_VARY})
_PREDICTED, _ALONE = "predicted", "history alone"
# What a reason code means, where the verdict alone does not say it. docs/judging.md has them all.
_SAID = {
    "accepted": "accepted in this change",
    "assumed": "too few sessions to know how much they differ",
    "canary_moved": "the speed of the machine changed",
    "cleared_by_cpu_time": "no answer by the wall, and CPU time has not changed",
    "clocks_moved": "the clocks differ; in clock cycles nothing changed",
    "failed_on_base": "failed on the base, missing on the head",
    "metric_missing": "in the baseline, not in this run",
    "metric_new": "no baseline yet",
    "missing": "has a baseline, but was not measured",
    "more_cpu_time": "more CPU time in all, and no loss by the wall",
    "more_work": "it does more work, and its history does not exclude a loss beyond the limit",
    "new": "no baseline yet",
    "new_since_failed": "failed on the base",
    "no_sign": "no sign of a change",
    "other_machine": "another machine",
    "other_node": "its history is of another node, which may be faster or slower",
    "other_parameters": "other parameters",
    "other_software": "other software (a hard fact in suite.toml)",
    "other_step": "a step is not the same on both sides",
    _PREDICTED: _ALONE,
    "proven_before": "an earlier run of these commits proved it, and all pairs together do not "
    "take that back",
    "ranges_overlap": "some processes are beyond the limit and some are not",
    "rounded": "rounding hides whether it changed",
    "too_few_pairs": "too few to know how much pairs differ",
    "too_few_sessions": "too few to know how much sessions differ",
    "two_modes": "launches are either fast or slow",
    "unlike_pairs": "launched by itself, the head took more than in any pair",
}
BASE_FAILED = "base_failed"
NOT_CONFIRMED, MOVER_UNKNOWN = "not_confirmed", "mover_unknown"
OTHER_PACKAGES = "other_packages"
FAR_BEYOND_LIMIT, WORSE_BY_HISTORY = "far_beyond_limit", "worse_by_history"
_MOVER_UNKNOWN = (
    "differs from its history{}; the cause may be the machine, the baseline or this change"
)
_BY_PAIRS = "judged by pairs instead"
_TRIED = ", and the base could not be launched"


def of(row: Row) -> Words:
    """Say what the mark and the numbers of a row do not; empty where nothing is missing."""
    first = (_required(row), _excluded(row), _said(row), _contrary(row))
    said = "; ".join(filter(None, (*first, _signs(row), _own_file(row), _rounded(row))))
    severity = severity_of(row)
    if severity in _NUMERICS:
        return Words("" if row.gate else "does not fail the job")
    if severity is Severity.INCOMPARABLE and not row.gate:
        said = f"{_BY_PAIRS}; {said}" if said else _BY_PAIRS
    return Words(said)


def undecided(row: Change) -> str:
    """Say what would decide a row; empty where nobody can know."""
    if row.remedy is not None:
        return _remedy(row.remedy)
    if row.smallest_detectable is None:
        return ""
    return f"a change of {units.about(row.smallest_detectable)} or more would have been proven"


def _said(row: Row) -> str:
    if isinstance(row, Uncompared) and row.same:
        return same_program.remark(row.same)
    if not isinstance(row, Change):
        is_tried = row.verdict is Verdict.NEW and row.note
        return _SAID.get(row.code, "") + (_TRIED if is_tried else "")
    if row.code == BASE_FAILED or (row.verdict is Verdict.UNCONFIRMED and row.note):
        return _without_base(row)
    if row.code == FAR_BEYOND_LIMIT:
        end = "prove it" if row.verdict is Verdict.LIKELY_SLOWER else "decide"
        return f"far beyond its limit: a larger budget would {end}"
    if row.code == MOVER_UNKNOWN:
        return _MOVER_UNKNOWN.format(drift(row))
    if row.code == OTHER_PACKAGES:
        moved = drift(row) if row.verdict is Verdict.UNCHANGED else ""
        return f"its history had other packages{moved}; the base was launched with the new ones"
    if row.code == NOT_CONFIRMED:
        return f"the machine or the baseline changed{drift(row)}, not the code"
    said = _SAID.get(row.code, "")
    if row.code == WORSE_BY_HISTORY:
        said = f"worse than its history{drift(row)}"
    is_open = row.verdict in {Verdict.INCONCLUSIVE, Verdict.LIKELY_SLOWER}
    if not is_open or (said and row.remedy is None):
        return said
    return "; ".join(part for part in (said, undecided(row)) if part)


def _required(row: Row) -> str:
    return "suite.toml requires an answer" if signs.lacks_answer(row) else ""


def _excluded(row: Row) -> str:
    if isinstance(row, Change) and row.verdict is Verdict.INCONCLUSIVE:
        return excluded(row)
    return ""


def excluded(row: Change) -> str:
    """Say which losses the interval of a row excludes; empty where it excludes none."""
    loss = row.interval.high - 1 if row.interval is not None else math.inf
    if loss > _LARGEST_EXCLUDED:
        return ""
    return f"no loss above {units.rounded_up(loss)}" if loss > 0 else "no loss"


def _without_base(row: Change) -> str:
    """Say that the base could not be launched, or since when."""
    known = _ALONE if row.code == _PREDICTED else _SAID.get(row.code, "")
    since = f" after {units.numbered(row.pairs, 'pair')}" if row.pairs else ""
    no_base = f"the base could not be launched{since}"
    return f"{known}; {no_base}" if known else no_base


def _signs(row: Row) -> str:
    """Name exact metrics: the worse ones of a loss that is not proven, all of an open row."""
    if not isinstance(row, Change) or row.metric not in signs.SLOWED or row.signs is None:
        return ""
    if row.verdict is Verdict.INCONCLUSIVE:
        said = (("moved", row.signs.moved), ("the same", row.signs.equal))
        return "; ".join(f"{what}: {_titles(names)}" for what, names in said if names)
    is_slower = row.ratio is not None and row.ratio > 1
    is_unproven = row.verdict in {Verdict.LIKELY_SLOWER, Verdict.UNCHANGED}
    if row.signs.direction != "worse" or not (is_slower and is_unproven):
        return ""
    return f"also worse: {_titles(row.signs.moved)}"


def _titles(names: Iterable[str]) -> str:
    return ", ".join(map(phrases.metric_title, names))


def _contrary(row: Row) -> str:
    """Say that the history proves the contrary of what the pairs show."""
    if not isinstance(row, Change) or row.contrary is None:
        return ""
    return f"its history shows the contrary{drift(row)}: do the sides stand in their places?"


def _own_file(row: Row) -> str:
    """Say when the two sides did not run the same file: a change may lie in that alone."""
    is_own = isinstance(row, Change) and row.own_file
    return "each side ran its own workload file, because they differ" if is_own else ""


def _rounded(row: Row) -> str:
    """Say how coarse the numbers are, where that is a large part of the limit."""
    if not isinstance(row, Change) or not row.tick or row.tick < row.limit / 4:
        return ""
    return f"the numbers have a resolution of {units.about(row.tick)}"


def drift(row: Change) -> str:
    """Say how far the head lies from its history, in brackets; empty where it has none."""
    return f" ({phrases.moved(row.metric, row.drift)})" if row.drift else ""


def quantity(row: Change, share: float) -> str:
    """Show a share of the base in the unit of the metric."""
    return units.value(share * row.base, phrases.unit(row.metric))


def _remedy(remedy: Remedy) -> str:
    if remedy.pairs is not None:
        return f"about {units.numbered(remedy.pairs, 'pair')} would decide"
    spread, quiet = units.about(remedy.spread), units.about(remedy.quiet_spread)
    return f"pairs differ by {spread}; {quiet} would decide"
