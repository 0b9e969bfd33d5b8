"""How each row is shown: its verdict, and whether it may fail the job."""

from enum import Enum

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
    LIKELY_SLOWER = "likely slower"
    MISSING = "missing"
    INVALID = "invalid"
    INCONCLUSIVE = "inconclusive"
    NEW = "new"
    INCOMPARABLE = "incomparable"
    WARNING = "warning"
    IMPROVED = "improved"
    UNCHANGED = "unchanged"
    NOT_GATING = "not gating"


ORDER = {standing: position for position, standing in enumerate(Standing)}
# What a workload computes, before how fast it does.
NUMERICS = frozenset({Standing.NUMERICS_CHANGED, Standing.NUMERICS_VARY})
# These need nobody's eyes, and are folded.
QUIET = frozenset({Standing.NOT_GATING, Standing.UNCHANGED})
_UNDECIDED = frozenset({Verdict.INCONCLUSIVE, Verdict.LIKELY_SLOWER, Verdict.UNCONFIRMED})

ICON = {
    Standing.FAILED: Words("💥"),
    Standing.NUMERICS_CHANGED: Words("🔢"),
    Standing.NUMERICS_VARY: Words("🎲"),
    Standing.REGRESSED: Words("❌"),
    Standing.UNCONFIRMED: Words("🔎"),
    Standing.LIKELY_SLOWER: Words("🐢"),
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
        if row.verdict in _UNDECIDED | {Verdict.MISSING}:
            return Standing.NOT_GATING
    return Standing(row.verdict.value.replace("_", " "))


def is_invalid(comparison: Comparison) -> bool:
    """Whether the whole run is worth nothing, not only what was measured of some workloads."""
    return comparison.validity.against("") is not None


def is_whole(row: Row) -> bool:
    """Whether a row speaks of a whole workload rather than of one metric."""
    return isinstance(row, Uncompared) and not row.metric
