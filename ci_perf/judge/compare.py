"""Two sides in, a comparison and its exit code out: every workload has at least one row."""

from collections.abc import Iterator, Sequence

import msgspec

from ci_perf.errors import ExitCode
from ci_perf.judge import (
    canaries,
    candidates,
    changes,
    comparability,
    decide,
    metric_values,
    numerics,
    signs,
    trends,
    uncompared,
)
from ci_perf.judge.candidates import Candidate
from ci_perf.judge.changes import Judgement
from ci_perf.judge.policy import default_limits
from ci_perf.model import metrics
from ci_perf.model import validity as validities
from ci_perf.model.comparison import (
    Change,
    Comparison,
    Numerics,
    Row,
    Side,
    Verdict,
    severity_of,
    worst,
)
from ci_perf.model.metrics import Metric
from ci_perf.model.run import Tool
from ci_perf.model.suite import FailOn, Limit, Limits, Tiers, is_selected
from ci_perf.model.summary import Subject, Summary
from ci_perf.model.validity import Reason, Validity
from ci_perf.version import __version__


def compare(
    base: Summary,
    head: Summary,
    *,
    limits: Limits | None = None,
    tiers: Tiers | None = None,
    fail_on: FailOn = "regressed",
) -> Comparison:
    """Judge every workload that either side knows of; rows worst first."""
    limits, tiers = limits or Limits(default=default_limits()), tiers or Tiers()
    comparable = list(_comparable(base, head, tiers))
    moved = canaries.judge(comparable, limits)
    validity = validities.of((*base.validity.reasons, *head.validity.reasons, *moved))
    suspects = head.interleaved.suspects if head.interleaved else 0
    found = changes.judge(list(_questions(base, head, limits, tiers, moved)), suspects=suspects)
    unread = [*_changes(found, validity), *_others(base, head, validity, limits, tiers)]
    rows = sorted(signs.read(unread), key=_position)
    verdict = _overall(rows, validity)
    return Comparison(
        tool=Tool(version=__version__),
        suite=head.suite,
        selection=head.selection,
        verdict=verdict,
        exit_code=exit_code(verdict, rows, fail_on),
        base=_side(base),
        head=_side(head),
        validity=validity,
        differences=comparability.soft_differences(_shared(base, head)),
        interleaved=head.interleaved,
        stale=changes.find_stale(found),
        drifted=trends.find_drifted([before for before, _ in comparable], trends.gated(limits)),
        rows=tuple(rows),
        profiles=head.profiles,
    )


def undecided(
    base: Summary, head: Summary, *, limits: Limits, tiers: Tiers
) -> tuple[tuple[str, ...], int]:
    """Name the workloads of which another pair of launches may decide something.

    And count what shares the chance of a false alarm, as it is now: to be noted before the first
    pair is launched.
    """
    moved = canaries.judge(list(_comparable(base, head, tiers)), limits)
    asked = list(_questions(base, head, limits, tiers, moved))
    suspects = head.interleaved.suspects if head.interleaved else 0
    found = changes.judge(asked, suspects=suspects)
    return changes.open_workloads(found), changes.count_suspects(asked)


def _overall(rows: list[Row], validity: Validity) -> Verdict:
    """Return the worst verdict of the rows that count."""
    if validity.is_run_invalid:
        return Verdict.INVALID
    counted = [row.verdict for row in rows if row.gate]
    nothing = Verdict.UNCHANGED if rows else Verdict.MISSING
    return worst(counted, default=nothing)


def _position(row: Row) -> tuple[int, bool, float, str, str]:
    """Sort by severity, gates before the rest, large changes before small ones."""
    size = -abs(row.ratio - 1) if isinstance(row, Change) and row.ratio else 0.0
    metric = "" if isinstance(row, Numerics) else row.metric
    return severity_of(row).rank, not row.gate, size, row.workload, metric


# --- which sides meet


def _shared(base: Summary, head: Summary) -> Iterator[tuple[Subject, Subject]]:
    """Pair what both sides have measured."""
    before = {subject.workload: subject for subject in base.subjects}
    for subject in head.subjects:
        if subject.workload in before:
            yield before[subject.workload], subject


def _comparable(base: Summary, head: Summary, tiers: Tiers) -> Iterator[tuple[Subject, Subject]]:
    """Pair what can be compared: canaries of another machine say nothing about this one."""
    for before, after in _shared(base, head):
        if comparability.obstacles(before, after, tiers) is None:
            yield before, after


def _questions(
    base: Summary, head: Summary, limits: Limits, tiers: Tiers, moved: Sequence[Reason]
) -> Iterator[Candidate]:
    """Yield every metric that may be judged: by a history that compares, or by pairs alone."""
    history = {after.workload: before for before, after in _comparable(base, head, tiers)}
    accepted = head.interleaved.accepted if head.interleaved else {}
    for subject in head.subjects:
        name = subject.workload
        found = limits.of(name)
        silenced = canaries.silenced(moved, name, found.get(metrics.CANARY))
        yield from candidates.of_workload(
            subject, history.get(name), found, moved=silenced, accepted=accepted.get(name, ())
        )


def _changes(found: Sequence[Judgement], validity: Validity) -> Iterator[Row]:
    """Yield a row for each answer, taken back where the machine could not be trusted."""
    for row in (one.change for one in found if one.change):
        reason = validity.against(row.workload)
        if reason is None:
            yield row
        else:
            yield msgspec.structs.replace(row, verdict=Verdict.INVALID, code=reason.code)


# --- what has no change to show


def _others(
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
        found = comparability.obstacles(before[name], after[name], tiers)
        if found:
            yield uncompared.incomparable(before[name], after[name], *found)
        else:
            yield from _one_sided(before[name], after[name], limits.of(name), head)
        history = None if found else before[name]
        if not found or after[name].turns:
            yield from _numerics(history, after[name], limits.of(name), validity)


def _asked_for(names: set[str], head: Summary) -> list[str]:
    return sorted(name for name in names if is_selected(name, head.selection))


def _numerics(
    base: Subject | None, head: Subject, found: dict[str, Limit], validity: Validity
) -> Iterator[Numerics]:
    """Yield the row of what is computed; the base that was launched knows better than a file."""
    limit = found.get(metrics.FINGERPRINT)
    row = numerics.judge(_launched(head) or base, head, limit) if limit is not None else None
    if row is None:
        return
    if reason := validity.against(head.workload):
        row = msgspec.structs.replace(row, verdict=Verdict.INVALID, code=reason.code)
    yield row


def _launched(head: Subject) -> Subject | None:
    """Return the base as it was launched beside this head, where it computed something."""
    prints = head.turns.base_fingerprints if head.turns else ()
    if not prints:
        return None
    sitting = msgspec.structs.replace(head.sessions[-1], fingerprints=prints)
    return msgspec.structs.replace(head, sessions=(sitting,))


def _one_sided(
    base: Subject, head: Subject, found: dict[str, Limit], side: Summary
) -> Iterator[Row]:
    """Yield a row per metric that one side has and the other lacks."""
    for metric in metrics.JUDGED:
        limit = found.get(metric.name)
        if limit is None:
            continue
        before, after = (
            metric_values.of_current_epoch(base, metric),
            metric_values.of_current_epoch(head, metric),
        )
        if before and not after and not _needs_another_workload(metric, side):
            yield uncompared.metric_missing(base, metric, gate=limit.gate)
        elif after and not before and not _is_zero(after) and not head.turns:
            yield uncompared.metric_new(head, metric, gate=limit.gate)


def _needs_another_workload(metric: Metric, side: Summary) -> bool:
    """Whether a metric may be gone because only a part of the suite was asked for."""
    return metric is metrics.SCALING_EFFICIENCY and bool(side.selection)


def _is_zero(sessions: list[list[float]]) -> bool:
    return not any(value for session in sessions for value in session)


def _side(summary: Summary) -> Side:
    sittings = [sitting for subject in summary.subjects for sitting in subject.sessions]
    times = sorted(sitting.recorded_at for sitting in sittings)
    return Side(
        label=summary.label,
        run=summary.run,
        source=summary.source,
        machine=summary.subjects[0].machine if summary.subjects else summary.machine,
        sessions=max((len(subject.sessions) for subject in summary.subjects), default=0),
        oldest=times[0] if times else "",
        newest=times[-1] if times else "",
        image=summary.image,
    )


# --- the exit code

# Verdicts that blame the change.
_BLAMES = {Verdict.REGRESSED, Verdict.NUMERICS_CHANGED}
# Verdicts that leave a question without an answer.
_NO_ANSWER = {Verdict.FAILED, Verdict.MISSING, Verdict.INVALID, Verdict.INCOMPARABLE}
# Values of `fail_on` that fail a job for a loss which nothing proves.
_FAIL_ON_SUSPICION = {"unconfirmed", "inconclusive"}


def exit_code(verdict: Verdict, rows: Sequence[Row], fail_on: FailOn = "regressed") -> int:
    """Choose the exit code: a proven regression is 1 even when something else has no answer.

    Nothing compared at all is 3, not green; nor is what looks like a loss and is not proven.
    `fail_on` is the mildest finding that ends with 1. With "never" a loss ends with 0, proven or
    not, and what has no numbers stays 3.
    """
    if fail_on != "never" and any(_fails(row, fail_on) for row in rows):
        return ExitCode.REGRESSED
    compared = any(isinstance(row, Change) for row in rows)
    unanswered = any(_is_unanswered(row, fail_on) for row in rows)
    if verdict is Verdict.INVALID or unanswered or not compared:
        return ExitCode.NO_ANSWER
    return ExitCode.OK


def _is_unanswered(row: Row, fail_on: FailOn) -> bool:
    is_open_loss = fail_on != "never" and signs.is_open_loss(row)
    return row.gate and (row.verdict in _NO_ANSWER or is_open_loss)


def _fails(row: Row, fail_on: FailOn) -> bool:
    if not row.gate:
        return False
    if row.verdict in _BLAMES:
        return True
    if fail_on == "inconclusive" and row.verdict is Verdict.INCONCLUSIVE:
        return True
    if fail_on in _FAIL_ON_SUSPICION and row.verdict is Verdict.LIKELY_SLOWER:
        return True
    return fail_on in _FAIL_ON_SUSPICION and _is_suspected(row, fail_on)


def _is_suspected(row: Row, fail_on: FailOn) -> bool:
    """Whether a loss is predicted. What rests on an assumed spread fails only the strictest."""
    is_worse = isinstance(row, Change) and row.ratio is not None and row.ratio > 1
    is_trusted = row.code != decide.ASSUMED or fail_on == "inconclusive"
    return row.verdict is Verdict.UNCONFIRMED and is_worse and is_trusted
