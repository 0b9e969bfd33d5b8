"""Two sides in, a comparison out: every workload of either side has at least one row."""

from collections.abc import Iterator

from ci_perf.errors import ExitCode
from ci_perf.judge import comparability, subjects, uncompared, verdicts
from ci_perf.judge.limits import DEFAULT
from ci_perf.model import metrics
from ci_perf.model.comparison import (
    WORST_FIRST,
    Change,
    Comparison,
    Row,
    Side,
    Verdict,
)
from ci_perf.model.metrics import Kind, Metric
from ci_perf.model.run import Reason, Status, Tool, Validity
from ci_perf.model.suite import Limit, Limits, Tiers, is_selected
from ci_perf.model.summary import Subject, Summary
from ci_perf.version import __version__

# Verdicts that say: there is no answer for something that was asked about.
_NO_ANSWER = {Verdict.FAILED, Verdict.MISSING, Verdict.INVALID, Verdict.INCOMPARABLE}


def compare(
    base: Summary,
    head: Summary,
    *,
    limits: Limits | None = None,
    tiers: Tiers | None = None,
) -> Comparison:
    """Judge every workload that either side knows of; rows worst first."""
    limits, tiers = limits or Limits(default=DEFAULT), tiers or Tiers()
    validity = _less_valid(base.validity, head.validity)
    rows = sorted(_rows(base, head, validity, limits, tiers), key=_severity)
    verdict = _overall(rows, validity)
    return Comparison(
        tool=Tool(version=__version__),
        suite=head.suite,
        selection=head.selection,
        verdict=verdict,
        exit_code=exit_code(verdict, rows),
        base=_side(base),
        head=_side(head),
        validity=validity,
        differences=comparability.soft_differences(_pairs(base, head)),
        rows=tuple(rows),
    )


def exit_code(verdict: Verdict, rows: list[Row]) -> int:
    """Choose the exit code: a proven regression is 1 even when something else has no answer.

    Nothing compared at all is 3, not green.
    """
    if verdict is Verdict.INVALID:
        return ExitCode.NO_ANSWER
    if any(row.verdict is Verdict.REGRESSED and row.gate for row in rows):
        return ExitCode.REGRESSED
    compared = any(isinstance(row, Change) for row in rows)
    if not compared or any(row.verdict in _NO_ANSWER and row.gate for row in rows):
        return ExitCode.NO_ANSWER
    return ExitCode.OK


def _overall(rows: list[Row], validity: Validity) -> Verdict:
    """Return the worst verdict of the rows that count."""
    if validity.status is Status.INVALID:
        return Verdict.INVALID
    counted = [row.verdict for row in rows if row.gate]
    return min(counted, key=WORST_FIRST.index, default=Verdict.MISSING)


def _severity(row: Row) -> tuple[int, bool, float, str, str]:
    """Worst verdict first, gates before the rest, large changes before small ones."""
    size = -abs(row.ratio - 1) if isinstance(row, Change) and row.ratio else 0.0
    return WORST_FIRST.index(row.verdict), not row.gate, size, row.workload, row.metric


def _pairs(base: Summary, head: Summary) -> Iterator[tuple[Subject, Subject]]:
    before = {subject.workload: subject for subject in base.subjects}
    for subject in head.subjects:
        if subject.workload in before:
            yield before[subject.workload], subject


def _less_valid(base: Validity, head: Validity) -> Validity:
    """Join what speaks against either side; the worse status counts."""
    status = max(base.status, head.status, key=list(Status).index)
    return Validity(status=status, reasons=(*base.reasons, *head.reasons))


def _rows(
    base: Summary, head: Summary, validity: Validity, limits: Limits, tiers: Tiers
) -> Iterator[Row]:
    before = {subject.workload: subject for subject in base.subjects}
    after = {subject.workload: subject for subject in head.subjects}
    failed = {failure.workload: failure for failure in head.failed}
    failed_before = {failure.workload: failure for failure in base.failed}
    for name in sorted(failed):
        yield uncompared.failed(failed[name])
    for name in _asked_for(before.keys() - after.keys() - failed.keys(), head):
        yield uncompared.missing(before[name])
    for name in _asked_for(
        failed_before.keys() - before.keys() - after.keys() - failed.keys(), head
    ):
        yield uncompared.missing_and_failed_before(failed_before[name])
    for name in sorted(after.keys() - before.keys()):
        yield uncompared.new(after[name], failed_before=name in failed_before)
    for name in sorted(before.keys() & after.keys()):
        yield from _compared(before[name], after[name], limits.of(name), tiers, validity)


def _asked_for(names: set[str], head: Summary) -> list[str]:
    return sorted(name for name in names if is_selected(name, head.selection))


def _compared(
    base: Subject, head: Subject, limits: dict[str, Limit], tiers: Tiers, validity: Validity
) -> Iterator[Row]:
    """Yield a row per metric, or one row that says why there is none."""
    if found := comparability.obstacles(base, head, tiers):
        yield uncompared.incomparable(base, head, *found)
        return
    for metric in metrics.ALL:
        limit = limits.get(metric.name)
        if limit is not None:
            yield from _metric(base, head, metric, limit, validity)


def _metric(
    base: Subject, head: Subject, metric: Metric, limit: Limit, validity: Validity
) -> Iterator[Row]:
    before, after = subjects.values(base, metric), subjects.values(head, metric)
    if before and not after:
        yield uncompared.metric_missing(base, metric, gate=limit.gate)
    elif after and not before:
        yield uncompared.metric_new(head, metric, gate=limit.gate)
    elif before and after and not _says_nothing(metric, before, after):
        yield _change(base, head, metric, limit, validity)


def _says_nothing(metric: Metric, before: list[list[float]], after: list[list[float]]) -> bool:
    """Whether a count is zero everywhere: nothing is compiled here, so no row is needed."""
    return metric.kind is Kind.COUNT and not any(v for s in (*before, *after) for v in s)


def _change(
    base: Subject, head: Subject, metric: Metric, limit: Limit, validity: Validity
) -> Change:
    before = subjects.values(base, metric)
    after = [v for session in subjects.values(head, metric) for v in session]
    ruling = verdicts.rule(metric, limit, before, after)
    verdict, code = ruling.verdict, ruling.code
    if validity.status is Status.INVALID:
        verdict, code = Verdict.INVALID, _worst(validity.reasons).code
    return Change(
        workload=head.workload,
        metric=metric.name,
        base=ruling.base,
        head=ruling.head,
        base_processes=sum(map(len, before)),
        head_processes=len(after),
        base_sessions=len(before),
        items_per_step=head.items_per_step,
        item_unit=head.item_unit,
        ratio=ruling.ratio,
        interval=ruling.interval,
        limit=ruling.limit,
        gate=limit.gate,
        verdict=verdict,
        code=code,
    )


def _worst(reasons: tuple[Reason, ...]) -> Reason:
    return next(reason for reason in reasons if reason.status is Status.INVALID)


def _side(summary: Summary) -> Side:
    sittings = [sitting for subject in summary.subjects for sitting in subject.sessions]
    times = sorted(sitting.recorded_at for sitting in sittings)
    return Side(
        label=summary.label,
        run=summary.run,
        source=summary.source,
        machine=summary.subjects[0].machine if summary.subjects else None,
        sessions=max((len(subject.sessions) for subject in summary.subjects), default=0),
        oldest=times[0] if times else "",
        newest=times[-1] if times else "",
    )
