"""Rows for workloads and metrics that one side lacks or that do not compare: nothing vanishes."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

import msgspec

from ci_perf.judging import comparability, metric_values, rules
from ci_perf.judging.candidates import Candidate
from ci_perf.judging.expected import MAY_BE_UNKNOWN, Expected
from ci_perf.judging.metric_values import Sessions
from ci_perf.model import metrics
from ci_perf.model.base import OUTSIDE_SUITES, Scalar
from ci_perf.model.comparison import Change, Code, Uncompared, Verdict
from ci_perf.model.program import SameProgram
from ci_perf.model.run import Failed
from ci_perf.model.suite import Limit, Limits, Tiers, find_limit, is_selected
from ci_perf.model.summary import Numbers, Subject, Summary


class _Unmeasured(NamedTuple):
    """A workload of the base's suite of which there are no numbers."""

    workload: str
    parameters: dict[str, Scalar] = {}  # noqa: RUF012  nobody changes it


def describe_other_work(head: Summary) -> dict[str, str]:
    """Say, by workload, why the base's own suite has nothing that compares with the head's."""
    return head.interleaved.incomparable if head.interleaved else {}


def rows(
    base: Summary,
    head: Summary,
    limits: Limits,
    tiers: Tiers,
    *,
    expected: Expected,
    judged: Collection[Change],
) -> Iterator[Uncompared]:
    """Yield the rows of two sides; a workload has one for itself, or one for each such metric.

    What is `expected` and has no row in `judged` has one here that is no success: nothing that the
    base has is new.
    """
    subjects = {subject.workload: subject for subject in head.subjects}
    answered = {(row.workload, name) for row in judged for name in ("", row.metric)}
    unlaunched = head.interleaved.unlaunched if head.interleaved else ()
    for name in unlaunched:
        yield rules.leave_unpaired(_row(_Unmeasured(name), Verdict.NEW, Code.NEW), "")
    for row in _list_rows(base, head, limits, tiers, expected.keys()):
        if row.workload in unlaunched:
            continue
        if row.code is Code.NEW and row.workload in expected:
            yield _without_pair(row, subjects[row.workload], limits, answered)
        else:
            yield row
        answered.add((row.workload, row.metric))
    for name in sorted(expected.keys() & subjects.keys()):
        for metric in expected[name].keys() - {metric for of, metric in answered if of == name}:
            number, limit = expected[name][metric], find_limit(limits.of(name), metric) or Limit()
            yield _row(
                subjects[name],
                Verdict.FAILED,
                Code.MISSING,
                base={metric: number},
                metric=metric,
                gate=limit.gate,
            )


def _without_pair(
    row: Uncompared, head: Subject, limits: Limits, answered: Collection[tuple[str, str]]
) -> Uncompared:
    """Return the row of what the base has, too, and no pair has compared.

    Pairs are launched for what can fail the job, so the budget has ended or the base has failed. Of
    a metric that no baseline has, a base that fails says nothing.
    """
    failure = head.paired.failure if head.paired else ""
    is_moot = bool(failure and row.metric) or not _find_gating(head, limits.of(head.workload))
    if not row.gate or is_moot or (row.workload, row.metric) in answered:
        return row
    return rules.leave_unpaired(row, failure)


def _find_gating(head: Subject, limits: dict[str, Limit]) -> list[str]:
    """Return the metrics of a workload that can fail the job."""
    values = {
        metric.name: metric_values.list_current_epoch(head, metric)
        for metric in metric_values.find_recorded(head.sessions)
    }
    return [
        name
        for name, sessions in values.items()
        if (limit := find_limit(limits, name)) and limit.gate
        if sessions and not _is_zero(sessions)
    ]


def _list_rows(
    base: Summary, head: Summary, limits: Limits, tiers: Tiers, expected: Collection[str]
) -> Iterator[Uncompared]:
    """Yield the rows as the numbers of the two sides say; `expected` may have none at all."""
    before = {subject.workload: subject for subject in base.subjects}
    after = {subject.workload: subject for subject in head.subjects}
    failed = {failure.workload: failure for failure in head.failed}
    failed_before = {failure.workload: failure for failure in base.failed}
    same = {program.workload: program for program in head.same}
    measured = after.keys() | failed.keys() | same.keys()
    for name in sorted(same):
        yield _same_program(same[name], before.get(name))
    for name in sorted(failed):
        each = failed[name]
        yield msgspec.structs.replace(
            _row(each, Verdict.FAILED, Code.FAILED, note=each.reason),
            phase=each.phase,
            output=each.output,
            exhausted=each.exhausted,
        )
    for name in _filter_asked(before.keys() - measured, head):
        numbers = metric_values.centres(before[name])
        yield _row(before[name], Verdict.FAILED, Code.MISSING, base=numbers)
    known = before.keys() | failed_before.keys() | measured
    for name in _filter_asked({*expected} - known, head):
        yield _row(_Unmeasured(name), Verdict.FAILED, Code.MISSING)
    for name in _filter_asked(failed_before.keys() - before.keys() - measured, head):
        note = "it failed on the base"
        yield _row(failed_before[name], Verdict.FAILED, Code.MISSING, note=note)
    other = describe_other_work(head)
    for name in sorted(after.keys() & other.keys()):
        yield _incomparable(before.get(name), after[name], other[name])
    for name in sorted(after.keys() - before.keys() - other.keys()):
        yield from _new(after[name], head, is_in_base=name in expected)
    for name in sorted((before.keys() & after.keys()) - other.keys()):
        if differing := comparability.obstacles(before[name], after[name], tiers):
            yield _incomparable(before[name], after[name], differing)
        else:
            yield from _one_sided(before[name], after[name], limits.of(name), head)


def describe_candidate(candidate: Candidate) -> Uncompared:
    """Say that a metric has a history and no head, or a head and nothing to compare it with."""
    workload, name = _Unmeasured(candidate.workload), candidate.metric.name
    sessions = candidate.history.current if candidate.history else [candidate.head]
    numbers, gate = {name: candidate.centre(sessions)}, candidate.limit.gate
    if candidate.history:
        return _row(workload, Verdict.FAILED, Code.MISSING, base=numbers, metric=name, gate=gate)
    return _row(workload, Verdict.NEW, Code.NEW, head=numbers, metric=name, gate=gate)


def describe_failed_elsewhere(workload: str, reason: str) -> Uncompared:
    """Say that a workload of another harness has no numbers, and why."""
    return _row(_Unmeasured(workload), Verdict.FAILED, Code.MISSING, note=reason)


def _filter_asked(names: set[str], head: Summary) -> list[str]:
    return sorted(name for name in names if is_selected(name, head.selection))


# --- whole workloads


def _same_program(same: SameProgram, base: Subject | None) -> Uncompared:
    """Say that nothing was launched, because head and base are the same program."""
    verdict, code = Verdict.UNCHANGED, Code.SAME_PROGRAM
    if not same.is_proven:
        verdict, code = Verdict.INCONCLUSIVE, Code.UNPROVEN_PROGRAM
    row = _row(same, verdict, code, base=metric_values.centres(base) if base else {})
    return msgspec.structs.replace(row, same=same)


def _new(head: Subject, side: Summary, *, is_in_base: bool) -> Iterator[Uncompared]:
    """Say that a workload was measured and has nothing to be compared with.

    A suite outside of the repository has no baseline, and nothing is new where pairs answer. The
    note says why its base could not be launched: what the base lacks cannot fail there. Where pairs
    answer, they have the numbers: those of launches alone, of other minutes, would be a second step
    time.
    """
    if side.suite in OUTSIDE_SUITES and _has_pairs(head):
        return
    note = head.paired.failure if head.paired and is_in_base else ""
    numbers = {} if _has_pairs(head) else metric_values.centres(head)
    yield _row(head, Verdict.NEW, Code.NEW, head=numbers, note=note)


def _incomparable(base: Subject | None, head: Subject, differing: str) -> Uncompared:
    """Say which facts of the two sides differ, so that no ratio would mean anything.

    Where base and head were launched in turns, their pairs answer instead.
    """
    return _row(
        head,
        Verdict.INCONCLUSIVE,
        Code.NOT_COMPARABLE,
        base=metric_values.centres(base) if base else {},
        head=metric_values.centres(head),
        note=differing,
        gate=not _has_pairs(head),
    )


def _has_pairs(head: Subject) -> bool:
    return head.paired is not None and bool(head.paired.pairs)


# --- metrics of a workload that both sides have


def _one_sided(
    base: Subject, head: Subject, limits: dict[str, Limit], side: Summary
) -> Iterator[Uncompared]:
    """Yield a row per metric that one side has and the other lacks."""
    on_one = metric_values.name_current(base) ^ metric_values.name_current(head)
    both = (*base.sessions, *head.sessions) if on_one else ()
    for metric in metric_values.find_recorded(both):
        limit = find_limit(limits, metric.name)
        if limit is None or metric.name not in on_one:
            continue
        before = metric_values.list_current_epoch(base, metric)
        after = metric_values.list_current_epoch(head, metric)
        name, gate = metric.name, limit.gate and metric not in MAY_BE_UNKNOWN
        if metric in metrics.OF_PROFILE and before and _is_zero(before):
            continue  # nothing that could be missed
        # It may be gone because only a part of the suite was launched.
        needs_others = metric is metrics.SCALING_EFFICIENCY and bool(side.selection or side.same)
        if before and not needs_others:
            numbers = metric_values.centres(base)
            yield _row(base, Verdict.FAILED, Code.MISSING, base=numbers, metric=name, gate=gate)
        elif after and not _is_zero(after) and not _has_pairs(head):
            numbers = metric_values.centres(head)
            yield _row(head, Verdict.NEW, Code.NEW, head=numbers, metric=name, gate=gate)


def _is_zero(sessions: Sessions) -> bool:
    return not any(value for session in sessions for value in session)


def _row(
    workload: Subject | Failed | SameProgram | _Unmeasured,
    verdict: Verdict,
    code: Code,
    *,
    base: Numbers | None = None,
    head: Numbers | None = None,
    metric: str = "",
    note: str = "",
    gate: bool = True,
) -> Uncompared:
    return Uncompared(
        workload=workload.workload,
        metric=metric,
        verdict=verdict,
        code=code,
        base=base or {},
        head=head or {},
        note=note,
        output="",
        parameters=workload.parameters,
        gate=gate,
    )
