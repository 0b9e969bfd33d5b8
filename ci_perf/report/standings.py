"""How each row is shown: its verdict, and whether it may fail the job."""

from enum import Enum

from ci_perf.model.comparison import Comparison, Row, Uncompared, Verdict
from ci_perf.model.run import Status
from ci_perf.report.escape import Words


class Standing(Enum):
    """How a row is shown: its verdict, and whether it can fail the job. Worst first."""

    FAILED = "failed"
    REGRESSED = "regressed"
    MISSING = "missing"
    INVALID = "invalid"
    WARNING = "warning"
    INCONCLUSIVE = "inconclusive"
    UNCONFIRMED = "unconfirmed"
    NEW = "new"
    INCOMPARABLE = "incomparable"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    NOT_GATING = "not gating"


ORDER = {standing: position for position, standing in enumerate(Standing)}
# These need nobody's eyes, and are folded.
QUIET = frozenset({Standing.NOT_GATING, Standing.UNCHANGED})
# What a metric without a gate cannot say of the whole.
_NEEDS_A_GATE = frozenset({Standing.REGRESSED, Standing.INCONCLUSIVE, Standing.UNCONFIRMED})

ICON = {
    Standing.FAILED: Words("💥"),
    Standing.REGRESSED: Words("❌"),
    Standing.MISSING: Words("🚫"),
    Standing.INVALID: Words("🛑"),
    Standing.WARNING: Words("⚠️"),
    Standing.INCONCLUSIVE: Words("❓"),
    Standing.UNCONFIRMED: Words("🔎"),
    Standing.NEW: Words("🆕"),
    Standing.INCOMPARABLE: Words("🔀"),
    Standing.IMPROVED: Words("🚀"),
    Standing.NOT_GATING: Words("➖"),  # noqa: RUF001  an icon, not a minus
    Standing.UNCHANGED: Words("✅"),
}


def of(row: Row) -> Standing:
    """Say how a row is shown. A metric without a gate warns at most."""
    if not row.gate:
        if row.verdict is Verdict.REGRESSED:
            return Standing.WARNING
        if row.verdict in {Verdict.INCONCLUSIVE, Verdict.UNCONFIRMED, Verdict.MISSING}:
            return Standing.NOT_GATING
    return Standing(row.verdict.value)


def overall(comparison: Comparison) -> Standing:
    """Say how the comparison as a whole is shown."""
    said = Standing(comparison.verdict.value)
    if comparison.validity.status is Status.INVALID and said is not Standing.FAILED:
        return Standing.INVALID
    found = {of(row) for row in comparison.rows}
    if said in _NEEDS_A_GATE and found and said not in found:
        return min(found, key=ORDER.__getitem__)
    return said


def is_whole(row: Row) -> bool:
    """Whether a row speaks of a whole workload rather than of one metric."""
    return isinstance(row, Uncompared) and not row.metric
