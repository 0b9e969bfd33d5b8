"""Whether the demo came out as planted. Pure: a comparison in, sentences out."""

from dataclasses import dataclass

from ci_perf.errors import ExitCode
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Comparison, Numerics, Row, Uncompared, Verdict


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A row that a commit of examples/tiny_vision/changes makes worse, and how."""

    workload: str
    metric: str
    cause: str


PLANTED = (
    Planted(
        workload="classify_images",
        metric=metrics.STEP_TIME.name,
        cause="a Python loop over the batch",
    ),
    Planted(
        workload="search_gallery",
        metric=metrics.HOST_RSS_PEAK.name,
        cause="a second copy of the gallery, in fp64",
    ),
)
# What a row that nobody made worse may be called on a restless machine.
_HARMLESS = frozenset(
    {Verdict.UNCHANGED, Verdict.INCONCLUSIVE, Verdict.UNCONFIRMED, Verdict.IMPROVED}
)
# What a planted row may be called where the machine is too busy to prove it.
_SEEN = frozenset(
    {Verdict.REGRESSED, Verdict.UNCONFIRMED, Verdict.LIKELY_SLOWER, Verdict.INCONCLUSIVE}
)


def surprises(comparison: Comparison, exit_code: int) -> tuple[str, ...]:
    """Name everything that is not as planted; empty when the demo came out well."""
    found = [_missed(planted, comparison) for planted in PLANTED]
    found += [_blamed(row) for row in comparison.rows if not _is_planted(row)]
    if exit_code != ExitCode.REGRESSED:
        found.append(f"`ci-perf check`: expected exit code {ExitCode.REGRESSED}, found {exit_code}")
    return tuple(filter(None, found))


def is_undecided(comparison: Comparison) -> bool:
    """Whether noise alone kept the demo from coming out: nothing is blamed that nobody planted."""
    rows = [planted_row(planted, comparison) for planted in PLANTED]
    is_seen = all(row is not None and row.verdict in _SEEN for row in rows)
    return is_seen and not any(_blamed(row) for row in comparison.rows if not _is_planted(row))


def planted_row(planted: Planted, comparison: Comparison) -> Change | None:
    """Find the row of a planted change; `None` when it was not compared."""
    for row in comparison.rows:
        if isinstance(row, Change) and _names(planted, row):
            return row
    return None


def _missed(planted: Planted, comparison: Comparison) -> str:
    row = planted_row(planted, comparison)
    if row is None:
        return f"{planted.workload}: {planted.metric}: expected regressed, found no such row"
    if row.verdict is not Verdict.REGRESSED:
        return f"{_name(row)}: expected regressed, found {row.verdict.value} ({row.code})"
    return ""


def _blamed(row: Row) -> str:
    """Say what is wrong with a row that no change made worse."""
    if isinstance(row, Uncompared):
        return f"{_name(row)}: expected a comparison, found {row.verdict.value}: {row.note}"
    if isinstance(row, Numerics):
        return _other_numbers(row)
    if row.gate and row.verdict not in _HARMLESS:
        return f"{_name(row)}: expected unchanged, found {row.verdict.value} ({row.code})"
    return ""


def _other_numbers(row: Numerics) -> str:
    """Say what is wrong with what a workload computes: every change here is harmless to that."""
    if row.verdict is Verdict.NUMERICS_CHANGED:
        return f"{row.workload}: expected the same numbers, found others ({row.code})"
    return ""


def _is_planted(row: Row) -> bool:
    return not isinstance(row, Numerics) and any(_names(planted, row) for planted in PLANTED)


def _names(planted: Planted, row: Change | Uncompared) -> bool:
    return (planted.workload, planted.metric) == (row.workload, row.metric)


def _name(row: Change | Uncompared) -> str:
    return f"{row.workload}: {row.metric}" if row.metric else row.workload
