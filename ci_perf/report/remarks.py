"""Remarks on a row that its verdict does not make: why, and what would decide it."""

import math
from collections.abc import Iterable

from ci_perf.judging import signs
from ci_perf.judging.policy import PREDICTING_SESSIONS
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Code, Numerics, Row, Uncompared, Verdict
from ci_perf.report import phrases, same_program, units
from ci_perf.report.escape import Words

# That larger losses are excluded says nothing.
_LARGEST_EXCLUDED = 10.0
# What a reason code means, where the verdict alone does not say it. docs/judging.md has them all.
_SAID = {
    Code.ACCEPTED: "accepted in this change",
    Code.BASELINE_MOVED: "the machine or the baseline changed{drift}, not the code",
    Code.CPU_TIME: "no answer by the wall, and CPU time has not changed",
    Code.HISTORY_ALONE: "history alone",
    Code.MACHINE_MOVED: "the speed of the machine changed",
    Code.OTHER_PACKAGES: "its history had other packages{drift}; the base was launched with the "
    "new ones",
    Code.RANGES_OVERLAP: "some processes are beyond the limit and some are not",
    Code.ROUNDED: "rounding hides whether it changed",
    Code.TOO_FEW_PAIRS: "too few to know how much pairs differ",
    Code.TOO_FEW_SESSIONS: "too few sessions of this machine to know how much they differ",
    Code.TWO_MODES: "launches are either fast or slow",
    Code.WORSE_BY_HISTORY: "launched by itself, the head took more than in any pair",
}
# The same, where pairs have decided.
_SAID_BY_PAIRS = {
    Code.MACHINE_MOVED: "the clocks differ; in clock cycles nothing changed",
    Code.WORSE_BY_HISTORY: "worse than its history{drift}",
}


def of(row: Row) -> Words:
    """Say what the mark and the numbers of a row do not; empty where nothing is missing."""
    if row.code is Code.UNTRUSTED:
        return Words("the machine could not be trusted")
    if isinstance(row, Uncompared):
        return Words(_of_uncompared(row))
    if isinstance(row, Numerics):
        is_other = row.verdict is Verdict.NUMERICS_CHANGED
        varies = "differs between processes of the head" if row.code is Code.NUMERICS_VARY else ""
        harmless = "does not fail the job" if is_other and not row.gate else ""
        return Words("; ".join(filter(None, (varies, harmless))))
    is_inconclusive = row.verdict is Verdict.INCONCLUSIVE
    said = (
        "suite.toml requires an answer" if signs.lacks_answer(row) else "",
        excluded(row) if is_inconclusive else "",
        _why(row),
        _contrary(row),
        _signs(row),
        "each side ran its own workload file, because they differ" if row.own_file else "",
        _resolution(row),
    )
    return Words("; ".join(filter(None, said)))


def _of_uncompared(row: Uncompared) -> str:
    if row.same:
        return same_program.remark(row.same)
    if row.code is Code.NOT_COMPARABLE:
        return "" if row.gate else "judged by pairs instead"
    if row.code is Code.MISSING and row.metric:
        return "in the baseline, not in this run"
    if row.code is Code.MISSING:
        return "the base has it, and it was not measured"
    if row.code is Code.NEW:
        return "no baseline yet" + (", and the base could not be launched" if row.note else "")
    return ""


def _why(row: Change) -> str:
    """Say why a row has its verdict, and of an open one what would decide it."""
    if row.note and row.code in {Code.BASE_FAILED, Code.HISTORY_ALONE}:
        return _without_base(row)
    said = _reason(row)
    is_open = row.verdict in {Verdict.INCONCLUSIVE, Verdict.LIKELY_SLOWER}
    by_itself = signs.is_cut_short(row) or signs.is_by_history_alone(row)
    if not is_open or by_itself or (said and row.remedy is None):
        return said
    return "; ".join(filter(None, (said, _what_decides(row))))


def _reason(row: Change) -> str:
    if signs.has_no_sign(row):
        return "no sign of a change"
    if signs.is_cut_short(row):
        end = "prove it" if row.verdict is Verdict.LIKELY_SLOWER else "decide"
        return f"far beyond its limit: a larger budget would {end}"
    if special := _special(row):
        return special
    by_pairs = _SAID_BY_PAIRS.get(row.code, "") if row.pairs else ""
    is_excused = row.code is Code.OTHER_PACKAGES and row.verdict is not Verdict.UNCHANGED
    said = by_pairs or _SAID.get(row.code, "")
    return said.format(drift="" if is_excused else drift(row))


def _special(row: Change) -> str:
    """Say what follows from more than the code."""
    does_more = row.signs is not None and row.signs.direction == "worse"
    match row.code:
        case Code.WITHIN_LIMIT if signs.has_drifted(row):
            return (
                f"differs from its history{drift(row)}; the cause may be the machine, the baseline "
                "or this change"
            )
        case Code.BEYOND_LIMIT if row.earlier_pairs and _holds_no_change(row):
            return (
                "an earlier run of these commits proved it, and all pairs together do not take "
                "that back"
            )
        case Code.HISTORY_ALONE if row.base_sessions < PREDICTING_SESSIONS:
            return _SAID[Code.TOO_FEW_SESSIONS]
        case Code.SPREAD if does_more and not row.pairs:
            return "it does more work, and its history does not exclude a loss beyond the limit"
        case Code.CPU_TIME if row.metric == metrics.STEP_CPU.name:
            return "more CPU time in all, and no loss by the wall"
        case _:
            return ""


def _holds_no_change(row: Change) -> bool:
    return row.interval is not None and row.interval.low <= 1 <= row.interval.high


def _what_decides(row: Change) -> str:
    """Say what would decide a row; empty where nobody can know."""
    if row.remedy is not None and row.remedy.pairs is not None:
        return f"about {units.numbered(row.remedy.pairs, 'pair')} would decide"
    if row.remedy is not None:
        spread, quiet = units.about(row.remedy.spread), units.about(row.remedy.quiet_spread)
        return f"pairs differ by {spread}, and {quiet} or less would decide"
    if row.smallest_detectable is None:
        return ""
    return f"a change of {units.about(row.smallest_detectable)} or more would have been proven"


def excluded(row: Change) -> str:
    """Say which losses the interval of a row excludes; empty where it excludes none."""
    loss = row.interval.high - 1 if row.interval is not None else math.inf
    if loss > _LARGEST_EXCLUDED:
        return ""
    return f"no loss above {units.rounded_up(loss)}" if loss > 0 else "no loss"


def _without_base(row: Change) -> str:
    """Say that the base could not be launched, or since when."""
    known = _reason(row) if row.code is Code.HISTORY_ALONE else ""
    since = f" after {units.numbered(row.pairs, 'pair')}" if row.pairs else ""
    return "; ".join(filter(None, (known, f"the base could not be launched{since}")))


def _signs(row: Change) -> str:
    """Name exact metrics: the worse ones of a loss that is not proven, all of an open row."""
    if row.metric not in signs.SLOWED or row.signs is None:
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


def _contrary(row: Change) -> str:
    """Say that the history proves the contrary of what the pairs show."""
    if row.contrary is None:
        return ""
    return f"its history shows the contrary{drift(row)}: do the sides stand in their places?"


def _resolution(row: Change) -> str:
    """Say how coarse the numbers are, where that is a large part of the limit."""
    if not row.tick or row.tick < row.limit / 4:
        return ""
    return f"the numbers have a resolution of {units.about(row.tick)}"


def drift(row: Change) -> str:
    """Say how far the head lies from its history, in brackets; empty where it has none."""
    return f" ({phrases.moved(row.metric, row.drift)})" if row.drift else ""


def quantity(row: Change, share: float) -> str:
    """Show a share of the base in the unit of the metric."""
    return units.value(share * row.base, phrases.unit(row.metric))
