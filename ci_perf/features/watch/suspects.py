"""What the history of a machine suspects: a session that is worse than its sessions before."""

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ci_perf.judging import metric_values
from ci_perf.judging.policy import KIND_OF, relative_size
from ci_perf.model.baseline import MAX_SESSIONS, Baseline, RecordedSession
from ci_perf.model.comparison import Change, Comparison, Verdict
from ci_perf.model.metrics import Better, Metric
from ci_perf.model.suite import Limit, Limits, find_limit
from ci_perf.model.summary import SessionNumbers, Subject, Summary

_WORSE = frozenset({Verdict.REGRESSED, Verdict.LIKELY_SLOWER})
# Nothing is decided here: pairs clear what noise has raised this far, and a loss of the whole limit
# hides behind noise of half.
SUSPICIOUS = 0.5
# Two sessions in a row may be lucky.
_APART = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A metric that may be worse than in the commits ``goods``, the likeliest one first.

    The last one is where its current epoch began.
    """

    workload: str
    metric: str
    goods: tuple[str, ...]


def find_suspects(
    history: Sequence[Baseline],
    head: Summary,
    comparison: Comparison,
    limits: Limits,
    locate: Callable[[Baseline, RecordedSession], str | None],
) -> Iterator[Suspect]:
    """Yield what gates and looks worse, by the sessions whose commits `locate` knows."""
    said = {
        (row.workload, row.metric)
        for row in comparison.rows
        if isinstance(row, Change) and row.gate and row.verdict in _WORSE
    }
    said |= {(each.workload, each.metric) for each in comparison.drifted if each.ratio > 1}
    baselines = {each.workload: each for each in history}
    for subject in head.subjects:
        baseline = baselines.get(subject.workload)
        if baseline is None:
            continue
        for metric in metric_values.find_recorded(baseline.sessions):
            limit = find_limit(limits.of(subject.workload), metric.name)
            sessions = [
                each
                for each in metric_values.current_sessions(baseline.sessions, metric.name)
                if locate(baseline, each)
            ]
            if limit is None or not limit.gate or not sessions:
                continue
            places = _find_places(metric, limit, sessions, subject)
            if not places and (subject.workload, metric.name) in said:
                places = [len(sessions) - 1, 0]
            if places:
                goods = [locate(baseline, sessions[at]) or "" for at in places]
                yield Suspect(
                    workload=subject.workload, metric=metric.name, goods=tuple(dict.fromkeys(goods))
                )


def _find_places(
    metric: Metric, limit: Limit, sessions: Sequence[RecordedSession], subject: Subject
) -> list[int]:
    """Return which sessions HEAD looks worse than.

    What is compared exactly is worse where it is larger at all.
    """
    is_noisy = metric.kind in KIND_OF
    every: list[RecordedSession | SessionNumbers] = [*sessions, *subject.sessions]
    listed = [metric_values.list_session_values(each, metric.name) for each in every]
    centres = [metric_values.centre(metric.kind, [values]) for values in listed if values]
    if len(centres) <= len(sessions):  # HEAD lacks the metric
        return []
    sign = -1 if metric.better is Better.HIGHER else 1
    least = SUSPICIOUS * math.log1p(relative_size(limit, centres[0])) if is_noisy else 0.0
    return find_better([sign * (math.log(each) if is_noisy else each) for each in centres], least)


def find_better(values: Sequence[float], least: float) -> list[int]:
    """Return the places of earlier values that are better than the last one by more than `least`.

    That is the newest of them, one some sessions before, in case that one was lucky, and the first
    of all. Each counts as the mean of itself and the one before.
    """
    means = [statistics.fmean(values[max(at - 1, 0) : at + 1]) for at in range(len(values) - 1)]
    better = [at for at, mean in enumerate(means) if values[-1] - mean > least]
    if not better:
        return []
    newest = better[-1]
    earlier = [at for at in better if at <= newest - _APART]
    return list(dict.fromkeys([newest, *earlier[-1:], 0]))


def find_acceptance(
    before: Baseline | None,
    after: Baseline,
    metric: str,
    has_loss: Callable[[RecordedSession], bool],
) -> RecordedSession | None:
    """Return the session that `has_loss` by which somebody accepted it since `before`.

    It begins another epoch, or the file, or moves the day, and says why: an improvement begins an
    epoch without a reason. A full file has only lost old sessions.
    """
    known = {each.run for each in before.sessions} if before else set()
    epoch = metric_values.current_epoch(before.sessions, metric) if before else 0
    is_new = bool(known) and known.isdisjoint(each.run for each in after.sessions)
    if is_new and len(after.sessions) < MAX_SESSIONS:
        epoch = -1
    accepted: RecordedSession | None = None
    last: tuple[int, str | None] | None = None
    for session in after.sessions:
        state = session.epochs.get(metric, 0), session.until.get(metric)
        if state[0] > epoch and state != last and session.reason and has_loss(session):
            accepted = session
        last = state
    return accepted
