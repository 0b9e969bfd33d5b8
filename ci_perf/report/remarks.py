"""Remarks on a row that its verdict does not make: why, and what would decide it."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ci_perf.judging import signs
from ci_perf.judging.policy import PREDICTING_SESSIONS
from ci_perf.model import metrics
from ci_perf.model.comparison import (
    Change,
    Code,
    Numerics,
    Row,
    Uncompared,
    Verdict,
    is_of_workload,
)
from ci_perf.report import phrases, same_program, units
from ci_perf.report.escape import Words
from ci_perf.report.sentences import write

R = TypeVar("R", Change, Row)
# The code of a row (`None`: any), what else holds of it, and what is said then.
_Rule = tuple[Code | None, Callable[[R], bool], str]
# That larger losses are excluded says nothing.
_LARGEST_EXCLUDED = 10.0
# What these say is in the numbers.
_PLAIN = frozenset({Code.WITHIN_LIMIT, Code.BEYOND_LIMIT})


def describe(row: Row) -> Words:
    """Say what the mark and the numbers of a row do not; empty where nothing is missing."""
    if isinstance(row, Uncompared) and row.same:
        return Words(same_program.render_remark(row.same))
    if isinstance(row, Uncompared) or row.code is Code.UNTRUSTED:
        return Words(_choose_words(_UNCOMPARED, row))
    return Words("; ".join(filter(None, _list_parts(row))))


def _list_parts(row: Numerics | Change) -> Iterator[str]:
    if isinstance(row, Numerics):
        if row.code is Code.NUMERICS_VARY:
            yield "differs between processes of the head"
        if row.verdict is Verdict.NUMERICS_CHANGED and not row.gate:
            yield "does not fail the job"
        return
    if signs.lacks_answer(row):
        yield "suite.toml requires an answer"
    if row.verdict is Verdict.INCONCLUSIVE:
        yield describe_excluded(row)
    is_unchanged_time = row.metric == phrases.STEP_TIME and row.verdict is Verdict.UNCHANGED
    if is_unchanged_time and row.item_unit == "run" and (excluded := describe_excluded(row)):
        yield f"{excluded} of the whole command; a step of it may be slower by more"
    yield from _explain_verdict(row)
    yield from _name_signs(row)
    if row.own_file:
        yield write("own_file")
    # How coarse the numbers are, where that is a large part of the limit.
    if row.tick and row.tick >= row.limit / 4:
        yield write("resolution", row=row)


def _explain_verdict(row: Change) -> Iterator[str]:
    """Say why a row has its verdict, and of an open one what would decide it."""
    reason = ""
    if (
        row.code not in _PLAIN or row.verdict in signs.UNPROVEN or row.drift or row.earlier_pairs
    ):  # few rows of a large suite
        reason = _explain_code(row)
    yield reason
    if row.note and row.code in {Code.BASE_FAILED, Code.HISTORY_ALONE}:
        yield write("no_base", row=row)
        return
    by_itself = signs.is_cut_short(row) or signs.is_by_history_alone(row)
    if row.verdict in signs.UNPROVEN and not by_itself and (row.remedy is not None or not reason):
        yield write("what_decides", row=row)


def _explain_code(row: Change) -> str:
    """Say what the code of a row means beside its numbers; empty where they say it."""
    words = _choose_words(_SPECIAL, row) or row.code.why
    return words.format(drift=describe_drift(row))


def _choose_words(rules: Iterable[_Rule[R]], row: R) -> str:
    """Return the words of the first rule that holds; empty where none does."""
    return next(
        (words for code, holds, words in rules if code in {None, row.code} and holds(row)), ""
    )


def _always(_row: Row) -> bool:
    return True


def _is_kept_proof(row: Change) -> bool:
    interval = row.interval
    return bool(row.earlier_pairs) and interval is not None and interval.low <= 1 <= interval.high


def _may_hide_more_work(row: Change) -> bool:
    return row.signs is not None and row.signs.direction == "worse" and not row.pairs


_DRIFTED = (
    "differs from its history{drift}; the cause may be the machine, the baseline or this change"
)
_KEPT = "an earlier run of these commits proved it, and all pairs together do not take that back"
_CONTRARY = "its history shows the contrary{drift}: do base and head stand in their places?"
_PACKAGES = "its history had other packages{drift}; the base was launched with the new ones"
_MORE_WORK = "it does more work, and its history does not exclude a slowdown beyond the limit"
_CUT_SHORT = "far beyond its limit, after too few pairs for a proof"
# What is said instead of the words of a code, `None` of any, where something else holds; in order.
_SPECIAL: tuple[_Rule[Change], ...] = (
    (None, signs.has_no_sign, "no sign of a change"),
    (None, signs.is_cut_short, _CUT_SHORT),
    (Code.WITHIN_LIMIT, signs.has_drifted, _DRIFTED),
    (
        Code.BEYOND_LIMIT,
        lambda row: row.verdict is Verdict.LIKELY_SLOWER,
        "base and head lie on two file systems",
    ),
    (Code.BEYOND_LIMIT, _is_kept_proof, _KEPT),
    (Code.BEYOND_LIMIT, signs.contradicts_history, _CONTRARY),
    (
        Code.CPU_TIME,
        lambda row: row.metric == metrics.STEP_CPU.name,
        "more CPU time in all, and no slowdown by the wall",
    ),
    (
        Code.HISTORY_ALONE,
        lambda row: row.base_sessions < PREDICTING_SESSIONS,
        Code.TOO_FEW_SESSIONS.why,
    ),
    (Code.OTHER_PACKAGES, lambda row: row.verdict is Verdict.UNCHANGED, _PACKAGES),
    (Code.SPREAD, _may_hide_more_work, _MORE_WORK),
    (
        Code.WORSE_BY_HISTORY,
        lambda row: not row.pairs,
        "launched by itself, the head took more than in any pair",
    ),
)


# What is said of a row without two numbers, or of any that cannot be trusted; in order.
_UNCOMPARED: tuple[_Rule[Row], ...] = (
    (Code.UNTRUSTED, _always, "the machine could not be trusted"),
    (Code.NOT_COMPARABLE, lambda row: not row.gate, "judged by pairs instead"),
    (Code.TOO_FEW_PAIRS, _always, "not compared: the check ended before a pair"),
    (Code.BASE_FAILED, _always, "no baseline, and the base could not be launched"),
    (
        Code.MISSING,
        lambda row: not is_of_workload(row),
        "the base reports it, and the head does not",
    ),
    (Code.MISSING, lambda row: bool(row.note), "the base has it, and it failed"),
    (Code.MISSING, _always, "the base has it, and it was not measured"),
    (Code.NEW, lambda row: not row.note, "no baseline yet"),
    (Code.NEW, _always, "no baseline yet, and the base could not be launched"),
)


def describe_excluded(row: Change) -> Words:
    """Say how much worse a row is not, by its interval; empty where that excludes nothing."""
    loss = row.interval.high - 1 if row.interval is not None else math.inf
    if loss > _LARGEST_EXCLUDED:
        return Words("")
    above = f" above {units.round_up(loss)}" if loss > 0 else ""
    return Words(f"no {phrases.name_worsening(row.metric)}{above}")


def _name_signs(row: Change) -> Iterator[str]:
    """Name the exact metrics that moved, and those that stayed, of a time that is not proven."""
    is_slower = row.verdict is Verdict.UNCHANGED and row.ratio is not None and row.ratio > 1
    is_unproven = row.verdict in signs.UNPROVEN or is_slower
    if row.signs is None or row.metric not in signs.SLOWED or not is_unproven:
        return
    if row.signs.moved:
        word = "also worse" if row.signs.direction == "worse" else "moved"
        yield f"{word}: {_join_titles(row.signs.moved)}"
    if row.signs.equal and row.verdict is Verdict.INCONCLUSIVE:
        yield f"the same: {_join_titles(row.signs.equal)}"


def _join_titles(names: Iterable[str]) -> str:
    """Join our titles: a name that this version does not know is foreign, and no remark."""
    return ", ".join(metrics.BY_NAME[name].title for name in names if name in metrics.BY_NAME)


def describe_drift(row: Change) -> Words:
    """Say how far the head lies from its history, in brackets; empty where it has none."""
    return Words(f" ({phrases.render_moved(row.metric, row.drift)})" if row.drift else "")
