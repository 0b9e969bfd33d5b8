"""Signs of a loss that noise hides: exact evidence of the same workload, and how far a row lies.

Operators, FLOPs, compiled graphs, allocated memory and numerics repeat on the busiest machine. So
where no number of launches decides a time, they say whether the code does more work.
"""

from collections.abc import Sequence

from ci_perf.judging.policy import FLOAT_ERROR, LOOKS
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Code, Numerics, Row, Signs, Verdict
from ci_perf.model.metrics import Kind

# What more work makes slower, and what is counted of that work.
SLOWED = frozenset({metrics.STEP_TIME.name, metrics.STEP_CPU.name, metrics.STEP_P95.name})
_COUNTS = frozenset(metric.name for metric in metrics.JUDGED if metric.kind is Kind.COUNT)
_WORK = frozenset({metrics.OPERATORS.name, metrics.FLOPS.name})
_EXACT = _COUNTS | {metrics.PEAK_ALLOCATED.name}
# Verdicts of what looks like a change, or may be one, and is not proven.
UNPROVEN = frozenset({Verdict.INCONCLUSIVE, Verdict.LIKELY_SLOWER})
# Reason codes that say no more than that launches were too few, or too different.
TOO_FEW_PAIRS = frozenset({Code.TOO_FEW_PAIRS, Code.SPREAD, Code.WORSE_BY_HISTORY})
_ONLY_NOISE = TOO_FEW_PAIRS | {Code.TOO_FEW_SESSIONS}


def is_far(row: Change) -> bool:
    """Whether the head is worse by more than the limit, proven or not.

    Up to the limit a row may rightly be called unchanged; beyond it only an alarm would be right.
    """
    return row.ratio is not None and row.ratio - 1 > row.limit + FLOAT_ERROR


def is_cut_short(row: Change) -> bool:
    """Whether a loss is far beyond its limit, after fewer pairs than an alarm needs."""
    return row.code is Code.TOO_FEW_PAIRS and row.pairs > 0 and is_far(row)


def has_drifted(row: Change) -> bool:
    """Whether the head lies beyond half the limit from its history, where pairs have decided."""
    if row.drift is None or not row.pairs:
        return False
    # A count that fell to zero has moved, however much.
    return not row.drift or max(row.drift, 1 / row.drift) - 1 > row.limit / 2 + FLOAT_ERROR


def contradicts_history(row: Change) -> bool:
    """Whether pairs prove a change, and the history shows one beyond half the limit against it."""
    is_opposite = (
        row.drift is not None and row.ratio is not None and (row.drift > 1) != (row.ratio > 1)
    )
    return is_opposite and has_drifted(row)


def shows_more_work(row: Change) -> bool:
    """Whether a time is far beyond its limit, and exact evidence says that the code does more."""
    does_more = row.signs is not None and row.signs.direction == "worse"
    return does_more and row.metric in SLOWED and is_far(row)


def is_by_history_alone(row: Row) -> bool:
    """Whether a loss is suspected, and nothing but its history speaks for that."""
    return (
        isinstance(row, Change)
        and row.verdict is Verdict.LIKELY_SLOWER
        and row.code is Code.HISTORY_ALONE
        and not shows_more_work(row)
    )


def has_no_sign(row: Change) -> bool:
    """Whether a row has no answer, and what is exact is the same on both sides."""
    if row.code not in _ONLY_NOISE or is_far(row):
        return False
    is_equal = row.signs is not None and row.signs.direction == "equal"
    is_near = row.ratio is not None and row.ratio * (1 + row.limit) >= 1 - FLOAT_ERROR
    return is_equal and is_near


def is_open_loss(row: Row) -> bool:
    """Whether a row must not end green: it looks worse, or has no answer where one is required."""
    return looks_worse(row) or lacks_answer(row)


def lacks_answer(row: Row) -> bool:
    """Whether a row that gates has no answer, and suite.toml requires one."""
    return isinstance(row, Change) and row.gate and row.require and is_open(row)


def looks_worse(row: Row) -> bool:
    """Whether a row that gates looks like a loss which nothing proves.

    After the pairs that an alarm needs, an estimate beyond the limit is no such sign: the noise
    that hides a loss makes one, too. The row then says which losses it excludes.
    """
    if not isinstance(row, Change) or not row.gate:
        return False
    if row.verdict is Verdict.LIKELY_SLOWER and not is_by_history_alone(row):
        return True
    is_worse_by_history = row.code is Code.WORSE_BY_HISTORY and not has_no_sign(row)
    return is_open(row) and (is_far(row) or is_worse_by_history) and row.pairs < LOOKS[0]


def is_open(row: Change) -> bool:
    """Whether a row has no answer, though its machine can be trusted."""
    is_inconclusive = row.verdict is Verdict.INCONCLUSIVE and row.code is not Code.UNTRUSTED
    return is_inconclusive or is_by_history_alone(row)


def find_signs(rows: Sequence[Row]) -> Signs | None:
    """Compare the exact rows of a workload; `None` where they are not known, or moved no way."""
    compared = [row for row in rows if not isinstance(row, Numerics)]
    exact = {row.metric: row.verdict for row in compared if row.metric in _EXACT}
    worse = tuple(name for name, verdict in exact.items() if verdict is Verdict.REGRESSED)
    better = tuple(name for name, verdict in exact.items() if verdict is Verdict.IMPROVED)
    equal = tuple(name for name, verdict in exact.items() if verdict is Verdict.UNCHANGED)
    if worse and _COUNTS.isdisjoint(better):
        return Signs(direction="worse", moved=worse, equal=equal)
    if better:
        return Signs(direction="mixed" if worse else "better", moved=worse + better, equal=equal)
    numerics = [row.verdict for row in rows if isinstance(row, Numerics)]
    is_known = not exact.keys().isdisjoint(_WORK)
    is_equal = all(verdict is Verdict.UNCHANGED for verdict in (*exact.values(), *numerics))
    return Signs(direction="equal", equal=equal) if is_known and is_equal else None
