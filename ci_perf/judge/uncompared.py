"""Rows for what has no partner on the other side, so that nothing ever vanishes."""

from ci_perf.judge import metric_values
from ci_perf.model.comparison import Uncompared, Verdict
from ci_perf.model.metrics import Metric
from ci_perf.model.run import Failed
from ci_perf.model.summary import Numbers, Subject


def failed(failure: Failed) -> Uncompared:
    """Say that a workload has no numbers on the head, and why."""
    return Uncompared(
        workload=failure.workload,
        metric="",
        verdict=Verdict.FAILED,
        code=f"failed_in_{failure.phase.value}",
        base={},
        head={},
        note=failure.reason,
        output=failure.output,
        exhausted=failure.exhausted,
        parameters=failure.parameters,
        gate=True,
    )


def missing(base: Subject) -> Uncompared:
    """Say that a workload has a baseline and was not measured."""
    return _row(base, Verdict.MISSING, "missing", base=metric_values.centres(base))


def missing_and_failed_before(failure: Failed) -> Uncompared:
    """Say that a workload failed on the base and is not there at all on the head."""
    return _row(failure, Verdict.MISSING, "failed_on_base")


def new(head: Subject, *, failed_before: bool) -> Uncompared:
    """Say that a workload was measured and has nothing to be compared with.

    The note says why its base could not be launched, where that was tried.
    """
    code = "new_since_failed" if failed_before else "new"
    note = head.turns.trouble if head.turns else ""
    return _row(head, Verdict.NEW, code, head=metric_values.centres(head), note=note)


def incomparable(base: Subject, head: Subject, code: str, differing: str) -> Uncompared:
    """Say which facts of the two sides differ, so that no ratio would mean anything.

    Where base and head were launched in turns, their pairs answer instead.
    """
    verdict = Verdict.INCOMPARABLE
    is_answered = head.turns is not None and bool(head.turns.pairs)
    return _row(
        head,
        verdict,
        code,
        base=metric_values.centres(base),
        head=metric_values.centres(head),
        note=differing,
        gate=not is_answered,
    )


def metric_missing(base: Subject, metric: Metric, *, gate: bool) -> Uncompared:
    """Say that a metric is in the baseline and not on the head."""
    numbers = metric_values.centres(base)
    return _row(
        base, Verdict.MISSING, "metric_missing", base=numbers, metric=metric.name, gate=gate
    )


def metric_new(head: Subject, metric: Metric, *, gate: bool) -> Uncompared:
    """Say that a metric is on the head and not in the baseline."""
    numbers = metric_values.centres(head)
    return _row(head, Verdict.NEW, "metric_new", head=numbers, metric=metric.name, gate=gate)


def _row(
    one: Subject | Failed,
    verdict: Verdict,
    code: str,
    *,
    base: Numbers | None = None,
    head: Numbers | None = None,
    metric: str = "",
    note: str = "",
    gate: bool = True,
) -> Uncompared:
    return Uncompared(
        workload=one.workload,
        metric=metric,
        verdict=verdict,
        code=code,
        base=base or {},
        head=head or {},
        note=note,
        output="",
        parameters=one.parameters,
        gate=gate,
    )
