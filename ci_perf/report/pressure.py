"""Whether a busy machine explains that there is no answer: then nobody is told to change code."""

from ci_perf.model.comparison import Comparison, Row, Uncompared, Verdict
from ci_perf.model.process import NO_RESULT_IN_TIME

# Reason codes of validity that say: something else used the CPUs or the memory meanwhile.
CODES = frozenset({"host_pressure", "memory_pressure", "cgroup_throttled"})


def is_on(row: Row, comparison: Comparison) -> bool:
    """Whether the machine was busy while the workload of `row` ran."""
    return any(
        reason.code in CODES and reason.workload in {"", row.workload}
        for reason in comparison.validity.reasons
    )


def explains_failure(row: Row, comparison: Comparison) -> bool:
    """Whether a workload failed only because it ran out of time on a busy machine."""
    return (
        isinstance(row, Uncompared)
        and row.verdict is Verdict.FAILED
        and NO_RESULT_IN_TIME in row.note
        and is_on(row, comparison)
    )
