"""Two sides in, a comparison out: every workload of either side has at least one row."""

from collections.abc import Iterator

import msgspec

from ci_perf.errors import ExitCode
from ci_perf.judge import canaries, comparability, numerics, subjects, uncompared, verdicts
from ci_perf.judge.limits import DEFAULT
from ci_perf.model import metrics
from ci_perf.model import validity as validities
from ci_perf.model.comparison import (
    WORST_FIRST,
    Change,
    Comparison,
    Numerics,
    Row,
    Side,
    Verdict,
)
from ci_perf.model.metrics import Kind, Metric
from ci_perf.model.run import Tool
from ci_perf.model.suite import Limit, Limits, Tiers, is_selected
from ci_perf.model.summary import Subject, Summary
from ci_perf.model.validity import Validity
from ci_perf.version import __version__

# Verdicts that say: it is the change that was judged.
_BLAMES = {Verdict.REGRESSED, Verdict.NUMERICS_CHANGED}
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
    pairs = list(_pairs(base, head, tiers))
    moved = canaries.judge(pairs, limits)
    validity = validities.of((*base.validity.reasons, *head.validity.reasons, *moved))
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
        differences=comparability.soft_differences(_shared(base, head)),
        rows=tuple(rows),
    )


def exit_code(verdict: Verdict, rows: list[Row]) -> int:
    """Choose the exit code: a proven regression is 1 even when something else has no answer.

    Nothing compared at all is 3, not green.
    """
    if any(row.verdict in _BLAMES and row.gate for row in rows):
        return ExitCode.REGRESSED
    compared = any(isinstance(row, Change) for row in rows)
    unanswered = any(row.verdict in _NO_ANSWER and row.gate for row in rows)
    if verdict is Verdict.INVALID or unanswered or not compared:
        return ExitCode.NO_ANSWER
    return ExitCode.OK


def _overall(rows: list[Row], validity: Validity) -> Verdict:
    """Return the worst verdict of the rows that count."""
    if validity.against("") is not None:
        return Verdict.INVALID
    counted = [row.verdict for row in rows if row.gate]
    return min(counted, key=WORST_FIRST.index, default=Verdict.MISSING)


def _severity(row: Row) -> tuple[int, bool, float, str, str]:
    """Worst verdict first, gates before the rest, large changes before small ones."""
    size = -abs(row.ratio - 1) if isinstance(row, Change) and row.ratio else 0.0
    metric = "" if isinstance(row, Numerics) else row.metric
    return WORST_FIRST.index(row.verdict), not row.gate, size, row.workload, metric


def _shared(base: Summary, head: Summary) -> Iterator[tuple[Subject, Subject]]:
    """Pair what both sides have measured."""
    before = {subject.workload: subject for subject in base.subjects}
    for subject in head.subjects:
        if subject.workload in before:
            yield before[subject.workload], subject


def _pairs(base: Summary, head: Summary, tiers: Tiers) -> Iterator[tuple[Subject, Subject]]:
    """Pair what can be compared: canaries of another machine say nothing about this one."""
    for before, after in _shared(base, head):
        if comparability.obstacles(before, after, tiers) is None:
            yield before, after


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
        yield from _numerics(None, after[name], limits.of(name), validity)
    for name in sorted(before.keys() & after.keys()):
        if found := comparability.obstacles(before[name], after[name], tiers):
            yield uncompared.incomparable(before[name], after[name], *found)
            continue
        yield from _numerics(before[name], after[name], limits.of(name), validity)
        yield from _metrics(before[name], after[name], limits.of(name), validity, head)


def _asked_for(names: set[str], head: Summary) -> list[str]:
    return sorted(name for name in names if is_selected(name, head.selection))


def _numerics(
    base: Subject | None, head: Subject, limits: dict[str, Limit], validity: Validity
) -> Iterator[Numerics]:
    limit = limits.get(metrics.FINGERPRINT)
    row = numerics.judge(base, head, limit) if limit is not None else None
    if row is None:
        return
    if reason := validity.against(head.workload):
        row = msgspec.structs.replace(row, verdict=Verdict.INVALID, code=reason.code)
    yield row


def _metrics(
    base: Subject, head: Subject, limits: dict[str, Limit], validity: Validity, side: Summary
) -> Iterator[Row]:
    """Yield a row per metric that both sides have, or one side only."""
    for metric in metrics.JUDGED:
        limit = limits.get(metric.name)
        if limit is None:
            continue
        before, after = subjects.values(base, metric), subjects.values(head, metric)
        if before and not after:
            if not _needs_another_workload(metric, side):
                yield uncompared.metric_missing(base, metric, gate=limit.gate)
        elif after and not before:
            yield uncompared.metric_new(head, metric, gate=limit.gate)
        elif before and after and not _says_nothing(metric, before, after):
            row = _change(base, head, metric, limit)
            yield _as_the_machine_allows(row, metric.kind, validity, limits.get(metrics.CANARY))


def _needs_another_workload(metric: Metric, side: Summary) -> bool:
    """Whether a metric may be gone because only a part of the suite was asked for."""
    return metric is metrics.SCALING_EFFICIENCY and bool(side.selection)


def _says_nothing(metric: Metric, before: list[list[float]], after: list[list[float]]) -> bool:
    """Whether a count is zero everywhere: nothing is compiled here, so no row is needed."""
    return metric.kind is Kind.COUNT and not any(v for s in (*before, *after) for v in s)


def _change(base: Subject, head: Subject, metric: Metric, limit: Limit) -> Change:
    before = subjects.values(base, metric)
    after = [v for session in subjects.values(head, metric) for v in session]
    ruling = verdicts.rule(metric, limit, before, after)
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
        verdict=ruling.verdict,
        code=ruling.code,
    )


def _as_the_machine_allows(
    row: Change, kind: Kind, validity: Validity, canary: Limit | None
) -> Change:
    """Take the verdict back where the machine could have brought it about."""
    if reason := validity.against(row.workload):
        return msgspec.structs.replace(row, verdict=Verdict.INVALID, code=reason.code)
    if canaries.silences(validity.reasons, row.workload, kind, canary):
        # A suspect that nobody can clear is no answer, and must not stay green.
        suspect = row.verdict is Verdict.REGRESSED and row.gate
        verdict = Verdict.INVALID if suspect else Verdict.INCONCLUSIVE
        return msgspec.structs.replace(row, verdict=verdict, code=canaries.CODE)
    return row


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
