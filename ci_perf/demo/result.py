"""How the demo ended: whether the verdict is as planted, and what a person is told of it. Pure."""

from collections import Counter
from dataclasses import dataclass

from ci_perf.errors import ExitCode
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Comparison, Numerics, Row, Uncompared, Verdict
from ci_perf.model.metrics import BY_NAME
from ci_perf.report import units


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
AS_PLANTED = """\
A CI job would have ended with exit code {code}: regressions are proven, and this is the only code
that blames the pull request.
{causes}
Nothing else was blamed, the harmless refactoring included. The other metrics that can fail a job:
{rest}."""
UNDECIDED = """\
A CI job would have ended with exit code {code}. Nothing was blamed that nobody planted, but this
machine could not prove all that was planted:
{surprises}
{busy}
`ci-perf demo --keep DIR` keeps the repository and the numbers."""
NOT_AS_PLANTED = """\
A CI job would have ended with exit code {code}, but the demo did not come out as planted:
{surprises}
{busy}
`ci-perf demo --keep DIR` keeps the repository and the numbers."""
_AGAIN = "try again when it is quiet."
_MAYBE_BUSY = f"Most often other programs kept this machine busy: {_AGAIN}"
_PRESSURE = frozenset({"host_pressure", "memory_pressure"})
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
    lines = [_missed(planted, comparison) for planted in PLANTED]
    lines += [_blamed(row) for row in comparison.rows if not _is_planted(row)]
    if exit_code != ExitCode.REGRESSED:
        lines.append(f"`ci-perf check`: expected exit code {ExitCode.REGRESSED}, found {exit_code}")
    return tuple(filter(None, lines))


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


def spoken(comparison: Comparison, exit_code: int, surprises: tuple[str, ...]) -> str:
    """Tell a person how it ended."""
    if surprises:
        text = UNDECIDED if is_undecided(comparison) else NOT_AS_PLANTED
        listed = "\n".join(f"  {line}" for line in surprises)
        return text.format(code=exit_code, surprises=listed, busy=_busy(comparison))
    causes = "\n".join(_cause(planted, comparison) for planted in PLANTED)
    return AS_PLANTED.format(code=exit_code, causes=causes, rest=_rest(comparison))


def _busy(comparison: Comparison) -> str:
    """Say what is known of the other programs on this machine."""
    reasons = (reason for reason in comparison.validity.reasons if reason.code in _PRESSURE)
    pressure = next(reasons, None)
    return f"This machine was too busy ({pressure.detail}): {_AGAIN}" if pressure else _MAYBE_BUSY


def _cause(planted: Planted, comparison: Comparison) -> str:
    row = planted_row(planted, comparison)
    assert row is not None, planted  # surprises() would have named it
    metric = BY_NAME[row.metric]
    base, head = units.value(row.base, metric.unit), units.value(row.head, metric.unit)
    moved = "" if row.ratio is None else f" ({units.change(row.ratio)})"
    return f"  {row.workload}: {metric.title} {base} → {head}{moved}: {planted.cause}"


def _rest(comparison: Comparison) -> str:
    """Count the gated rows that were not blamed: "9 unchanged, 1 inconclusive"."""
    verdicts = Counter(
        row.verdict
        for row in comparison.rows
        if isinstance(row, Change) and row.gate and not _is_red(row)
    )
    return ", ".join(
        f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict if verdict in verdicts
    )


def _is_red(row: Change) -> bool:
    return row.verdict is Verdict.REGRESSED
