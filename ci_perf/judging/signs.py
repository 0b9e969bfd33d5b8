"""Signs of a loss that noise hides: exact evidence of the same workload, and how far a row lies.

Operators, FLOPs, compiled graphs, allocated memory and numerics repeat on the busiest machine. So
where no number of launches decides a time, they say whether the code does more work.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ci_perf.judging import decide
from ci_perf.judging.policy import FLOAT_ERROR, KIND_OF, LOOKS
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Numerics, Row, Signs, Verdict
from ci_perf.model.metrics import Kind

FAR_BEYOND_LIMIT, NO_SIGN = "far_beyond_limit", "no_sign"
CODES = (FAR_BEYOND_LIMIT, NO_SIGN)

_OPEN = frozenset({Verdict.UNCONFIRMED, Verdict.INCONCLUSIVE})
# What more work makes slower, and what is counted of that work.
SLOWED = frozenset({metrics.STEP_TIME.name, metrics.STEP_CPU.name, metrics.STEP_P95.name})
_COUNTS = frozenset(metric.name for metric in metrics.JUDGED if metric.kind is Kind.COUNT)
_WORK = frozenset({metrics.OPERATORS.name, metrics.FLOPS.name})
_EXACT = _COUNTS | {metrics.PEAK_ALLOCATED.name}
# What explains a loss as well as more work would.
_NOT_BY_WORK = frozenset({decide.CLOCKS_MOVED, decide.OTHER_PACKAGES})
# Reason codes that say no more than that launches were too few, or too different.
_TOO_FEW_PAIRS = frozenset({decide.TOO_FEW_PAIRS, decide.SPREAD, decide.WORSE_BY_HISTORY})
_ONLY_NOISE = _TOO_FEW_PAIRS | {decide.TOO_FEW_SESSIONS}


def is_far(row: Change) -> bool:
    """Whether the head is worse by more than the limit, proven or not.

    Up to the limit a row may rightly be called unchanged; beyond it only an alarm would be right.
    """
    return row.ratio is not None and row.ratio - 1 > row.limit + FLOAT_ERROR


def is_open_loss(row: Row) -> bool:
    """Whether a row must not end green: it looks worse, or has no answer where one is required."""
    return looks_worse(row) or lacks_answer(row)


def lacks_answer(row: Row) -> bool:
    """Whether a row that gates has no answer, and suite.toml requires one."""
    return isinstance(row, Change) and row.gate and row.require and row.verdict in _OPEN


def looks_worse(row: Row) -> bool:
    """Whether a row that gates looks like a loss which nothing proves.

    After the pairs that an alarm needs, an estimate beyond the limit is no such sign: the noise
    that hides a loss makes one, too. The row then says which losses it excludes.
    """
    if not isinstance(row, Change) or not row.gate:
        return False
    is_suspected = is_far(row) or row.code == decide.WORSE_BY_HISTORY
    has_enough_pairs = row.pairs >= LOOKS[0] and row.code != decide.CLOCKS_MOVED
    is_unproven = row.verdict in _OPEN and is_suspected and not has_enough_pairs
    return row.verdict is Verdict.LIKELY_SLOWER or is_unproven


def read(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows by workload, noisy ones with the signs that its exact ones give."""
    by_workload = sorted(rows, key=lambda row: row.workload)
    for _, group in itertools.groupby(by_workload, key=lambda row: row.workload):
        of_workload = list(group)
        signs = _signs(of_workload)
        yield from (_with_signs(row, signs) for row in of_workload)


def _signs(rows: Sequence[Row]) -> Signs | None:
    """Compare what is exact; `None` where it is not known, or moved without any direction."""
    compared = [row for row in rows if not isinstance(row, Numerics)]
    exact = {row.metric: row.verdict for row in compared if row.metric in _EXACT}
    worse = tuple(name for name, verdict in exact.items() if verdict is Verdict.REGRESSED)
    better = tuple(name for name, verdict in exact.items() if verdict is Verdict.IMPROVED)
    equal = tuple(name for name, verdict in exact.items() if verdict is Verdict.UNCHANGED)
    if worse and _COUNTS.isdisjoint(better):
        return Signs(direction="worse", moved=worse, equal=equal)
    if worse or better:
        return Signs(direction="mixed" if worse else "better", moved=worse + better, equal=equal)
    numerics = [row.verdict for row in rows if isinstance(row, Numerics)]
    is_known = not exact.keys().isdisjoint(_WORK)
    is_equal = all(verdict is Verdict.UNCHANGED for verdict in (*exact.values(), *numerics))
    return Signs(direction="equal", equal=equal) if is_known and is_equal else None


def _with_signs(row: Row, signs: Signs | None) -> Row:
    """Add the signs to a noisy row; they may change its verdict and its reason."""
    if not isinstance(row, Change) or metrics.BY_NAME[row.metric].kind not in KIND_OF:
        return row
    verdict = Verdict.LIKELY_SLOWER if _is_likely_slower(row, signs) else row.verdict
    return msgspec.structs.replace(
        row, verdict=verdict, code=_code(row, verdict, signs), signs=signs
    )


def _is_likely_slower(row: Change, signs: Signs | None) -> bool:
    is_slower = is_far(row) or row.code == decide.WORSE_BY_HISTORY
    does_more = signs is not None and signs.direction == "worse"
    is_undecided = row.verdict in _OPEN and row.code not in _NOT_BY_WORK
    return is_undecided and row.metric in SLOWED and is_slower and does_more


def _code(row: Change, verdict: Verdict, signs: Signs | None) -> str:
    """Return a better reason code than noise, where there is one."""
    is_open = verdict in _OPEN or verdict is Verdict.LIKELY_SLOWER
    if is_open and is_far(row):
        is_cut_short = 0 < row.pairs < LOOKS[0] and row.code in _TOO_FEW_PAIRS
        return FAR_BEYOND_LIMIT if is_cut_short else row.code
    is_equal = signs is not None and signs.direction == "equal"
    is_near = row.ratio is not None and row.ratio * (1 + row.limit) >= 1 - FLOAT_ERROR
    return NO_SIGN if is_open and is_equal and is_near and row.code in _ONLY_NOISE else row.code
