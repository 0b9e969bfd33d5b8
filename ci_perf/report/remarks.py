"""Remarks on a row that its verdict does not make: why, and what would decide it."""

import math
from collections.abc import Iterable, Iterator

from ci_perf.judging import signs
from ci_perf.judging.policy import PREDICTING_SESSIONS
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Code, Numerics, Row, Uncompared, Verdict
from ci_perf.report import phrases, same_program
from ci_perf.report.escape import Words
from ci_perf.report.sentences import write

# That larger losses are excluded says nothing.
_LARGEST_EXCLUDED = 10.0
# What these say is in the numbers.
_PLAIN = frozenset({Code.WITHIN_LIMIT, Code.BEYOND_LIMIT})
_OPEN = frozenset({Verdict.INCONCLUSIVE, Verdict.LIKELY_SLOWER})


def describe(row: Row) -> Words:
    """Say what the mark and the numbers of a row do not; empty where nothing is missing."""
    if isinstance(row, Uncompared) and row.same:
        return Words(same_program.render_remark(row.same))
    if isinstance(row, Uncompared) or row.code is Code.UNTRUSTED:
        return write("uncompared", row=row)
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
    reason = Words("")
    if (
        row.code not in _PLAIN or row.verdict in _OPEN or row.drift or row.earlier_pairs
    ):  # few rows of a large suite
        few = PREDICTING_SESSIONS
        reason = write("code", row=row, signs=signs, drift=describe_drift(row), few=few)
    yield reason
    if row.note and row.code in {Code.BASE_FAILED, Code.HISTORY_ALONE}:
        yield write("no_base", row=row)
        return
    by_itself = signs.is_cut_short(row) or signs.is_by_history_alone(row)
    if row.verdict in _OPEN and not by_itself and (row.remedy is not None or not reason):
        yield write("what_decides", row=row)


def describe_excluded(row: Change) -> Words:
    """Say how much worse a row is not, by its interval; empty where that excludes nothing."""
    loss = row.interval.high - 1 if row.interval is not None else math.inf
    return (
        Words("")
        if loss > _LARGEST_EXCLUDED
        else write("excluded", loss=loss, word=phrases.name_worsening(row.metric))
    )


def _name_signs(row: Change) -> Iterator[str]:
    """Name the exact metrics that moved, and those that stayed, of a time that is not proven."""
    is_slower = row.verdict is Verdict.UNCHANGED and row.ratio is not None and row.ratio > 1
    is_unproven = row.verdict in _OPEN or is_slower
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
