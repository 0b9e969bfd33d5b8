"""What the demo says when it is over: the exit code of a CI job, and why."""

from collections import Counter

from ci_perf.demo import outcome
from ci_perf.model.comparison import Change, Comparison, Verdict
from ci_perf.model.metrics import BY_NAME
from ci_perf.report import units

AS_PLANTED = """\
A CI job would have ended with exit code {code}: regressions are proven, and this is the only code
that blames the pull request.
{causes}
Nothing else was blamed, the harmless refactoring included: {rest}."""
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


def spoken(comparison: Comparison, exit_code: int, surprises: tuple[str, ...]) -> str:
    """Tell a person how it ended."""
    if surprises:
        text = UNDECIDED if outcome.is_undecided(comparison) else NOT_AS_PLANTED
        listed = "\n".join(f"  {line}" for line in surprises)
        return text.format(code=exit_code, surprises=listed, busy=_busy(comparison))
    causes = "\n".join(_cause(planted, comparison) for planted in outcome.PLANTED)
    return AS_PLANTED.format(code=exit_code, causes=causes, rest=_rest(comparison))


def _busy(comparison: Comparison) -> str:
    """Say what is known of the other programs on this machine."""
    reasons = (reason for reason in comparison.validity.reasons if reason.code in _PRESSURE)
    pressure = next(reasons, None)
    return f"This machine was too busy ({pressure.detail}): {_AGAIN}" if pressure else _MAYBE_BUSY


def _cause(planted: outcome.Planted, comparison: Comparison) -> str:
    row = outcome.planted_row(planted, comparison)
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
