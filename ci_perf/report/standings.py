"""How each row is shown: its verdict, and whether it may fail the job."""

from enum import Enum

from ci_perf.errors import ExitCode
from ci_perf.judge import numerics
from ci_perf.model.comparison import Comparison, Row, Uncompared, Verdict
from ci_perf.report.escape import Words


class Standing(Enum):
    """How a row is shown: its verdict, and whether it can fail the job. Worst first."""

    FAILED = "failed"
    NUMERICS_CHANGED = "numerics changed"
    NUMERICS_VARY = "numerics vary"
    REGRESSED = "regressed"
    UNCONFIRMED = "unconfirmed"
    MISSING = "missing"
    INVALID = "invalid"
    WARNING = "warning"
    INCONCLUSIVE = "inconclusive"
    NEW = "new"
    INCOMPARABLE = "incomparable"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    NOT_GATING = "not gating"


ORDER = {standing: position for position, standing in enumerate(Standing)}
# What a workload computes, before how fast it does.
NUMERICS = frozenset({Standing.NUMERICS_CHANGED, Standing.NUMERICS_VARY})
# These need nobody's eyes, and are folded.
QUIET = frozenset({Standing.NOT_GATING, Standing.UNCHANGED})
# What a metric without a gate cannot say of the whole.
_NEEDS_A_GATE = frozenset({Standing.REGRESSED, Standing.INCONCLUSIVE, Standing.UNCONFIRMED})

ICON = {
    Standing.FAILED: Words("💥"),
    Standing.NUMERICS_CHANGED: Words("🔢"),
    Standing.NUMERICS_VARY: Words("🎲"),
    Standing.REGRESSED: Words("❌"),
    Standing.UNCONFIRMED: Words("🔎"),
    Standing.MISSING: Words("🚫"),
    Standing.INVALID: Words("🛑"),
    Standing.WARNING: Words("⚠️"),
    Standing.INCONCLUSIVE: Words("❓"),
    Standing.NEW: Words("🆕"),
    Standing.INCOMPARABLE: Words("🔀"),
    Standing.IMPROVED: Words("🚀"),
    Standing.NOT_GATING: Words("➖"),  # noqa: RUF001  an icon, not a minus
    Standing.UNCHANGED: Words("✅"),
}


def of(row: Row) -> Standing:
    """Say how a row is shown. A metric without a gate warns at most; other numbers come first."""
    if row.verdict is Verdict.NUMERICS_CHANGED:
        varies = row.code == numerics.VARY
        return Standing.NUMERICS_VARY if varies else Standing.NUMERICS_CHANGED
    if not row.gate:
        if row.verdict is Verdict.REGRESSED:
            return Standing.WARNING
        if row.verdict in {Verdict.INCONCLUSIVE, Verdict.UNCONFIRMED, Verdict.MISSING}:
            return Standing.NOT_GATING
    return Standing(row.verdict.value)


def overall(comparison: Comparison) -> Standing:
    """Say how the comparison as a whole is shown.

    Nothing is simply well when a workload computes other numbers, whether that gates or not.
    """
    found = {of(row) for row in comparison.rows}
    if comparison.verdict is Verdict.NUMERICS_CHANGED:
        return min(found & NUMERICS, key=ORDER.__getitem__, default=Standing.NUMERICS_CHANGED)
    said = Standing(comparison.verdict.value)
    if is_invalid(comparison) and said is not Standing.FAILED:
        return Standing.INVALID
    if comparison.exit_code == ExitCode.OK and Standing.NUMERICS_CHANGED in found:
        return Standing.NUMERICS_CHANGED
    if said in _NEEDS_A_GATE and found and said not in found:
        return min(found, key=ORDER.__getitem__)
    return said


def is_invalid(comparison: Comparison) -> bool:
    """Whether the whole run is worth nothing, not only what was measured of some workloads."""
    return comparison.validity.against("") is not None


def is_whole(row: Row) -> bool:
    """Whether a row speaks of a whole workload rather than of one metric."""
    return isinstance(row, Uncompared) and not row.metric
