"""What the history of a machine suspects: a session that is worse than its sessions before."""

import itertools
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
# What tells a step from noise: standard deviations of a session, learned from so many values.
_CLEAR = 3.0
_LEAST_VALUES = 6
_LEAST_NOISE = 1e-3


@dataclass(frozen=True, slots=True)
class HistoryStep:
    """A rise of the level after the commit ``good``, up to ``bad``, as a factor."""

    good: str
    bad: str
    change: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A metric that may be worse than in the commits ``goods``, the likeliest one first.

    The last one is where its current epoch began. ``steps`` are those that stand out of its noise.
    """

    workload: str
    metric: str
    goods: tuple[str, ...]
    steps: tuple[HistoryStep, ...] = ()


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
            levels = _list_levels(metric, sessions, subject)
            places = find_better(levels, _find_least(metric, limit, sessions)) if levels else []
            if not places and (subject.workload, metric.name) in said:
                places = [len(sessions) - 1, 0]
            if places:
                commits = [*(locate(baseline, each) or "" for each in sessions), head.source.commit]
                goods = dict.fromkeys(commits[at] for at in places)
                softs = [each.soft for each in sessions]
                steps = find_steps(commits, levels, softs) if metric.kind in KIND_OF else ()
                yield Suspect(
                    workload=subject.workload,
                    metric=metric.name,
                    goods=tuple(goods),
                    steps=tuple(steps),
                )


def _list_levels(
    metric: Metric, sessions: Sequence[RecordedSession], subject: Subject
) -> list[float]:
    """Return a level for each session and for HEAD, larger where worse; none where HEAD has none.

    What is noisy is a logarithm.
    """
    every: list[RecordedSession | SessionNumbers] = [*sessions, *subject.sessions]
    listed = [metric_values.list_session_values(each, metric.name) for each in every]
    centres = [metric_values.centre(metric.kind, [values]) for values in listed if values]
    if len(centres) <= len(sessions):
        return []
    sign = -1 if metric.better is Better.HIGHER else 1
    return [sign * (math.log(each) if metric.kind in KIND_OF else each) for each in centres]


def _find_least(metric: Metric, limit: Limit, sessions: Sequence[RecordedSession]) -> float:
    """Return by how much HEAD looks worse; what is compared exactly is worse if larger at all."""
    if metric.kind not in KIND_OF:
        return 0.0
    first = metric_values.list_session_values(sessions[0], metric.name)
    return SUSPICIOUS * math.log1p(relative_size(limit, metric_values.centre(metric.kind, [first])))


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


def find_steps(
    commits: Sequence[str], levels: Sequence[float], softs: Sequence[object]
) -> Iterator[HistoryStep]:
    """Yield where two sessions are above the two before by more than noise, and by how much.

    The noise is that of the median step between neighbours: where each is as large as the others,
    none is told. Where the software of the machine changed with it, no commit is to blame.
    """
    if len(levels) < _LEAST_VALUES:
        return
    moves = [abs(after - before) for before, after in itertools.pairwise(levels)]
    # The median of |N(0, 2 variances)| is 0.6745 * sqrt(2) standard deviations.
    noise = max(statistics.median(moves) / (0.6745 * math.sqrt(2)), _LEAST_NOISE)
    for at in range(2, len(levels) - 1):
        rise = min(levels[at : at + 2]) - max(levels[at - 2 : at])
        if rise > _CLEAR * noise and softs[at - 1] == softs[at]:
            yield HistoryStep(commits[at - 1], commits[at], math.exp(rise))


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
