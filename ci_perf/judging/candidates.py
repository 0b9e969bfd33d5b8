"""Candidates for a verdict: a metric of a workload, with what both sides measured of it."""

import itertools
import math
import statistics
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from ci_perf.judging import metric_values, nodes, variability
from ci_perf.judging.metric_values import History, Pairs, Sessions
from ci_perf.judging.policy import KIND_OF, Policy, PolicyKind, policy_under
from ci_perf.judging.screen import Known
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Code, Verdict
from ci_perf.model.metrics import Better, Kind, Metric
from ci_perf.model.suite import Limit, find_limit
from ci_perf.model.summary import Numbers, PairedNumbers, Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One metric of one workload; values are in its unit, one per launch.

    ``history`` is ``None`` where none compares. ``head`` are the head's own launches, ``pairs``
    those of base and head in turns, in order. ``earlier`` counts how many of the pairs each earlier
    run of the same commits has launched, ``said`` is what these have said. ``tick`` is what a noisy
    metric was rounded to, as a logarithm. ``paired`` says how launching the base went.

    ``obstacle`` is the reason code why the history may not clear the head: the machine has moved,
    say, or an earlier screen has found it suspicious; ``is_other_node``: the history is of other
    nodes than the head; ``does_more``: a count of the workload has grown, so that its history has
    to exclude a loss beyond the limit; ``has_more_counts``: one has grown in each of the first
    pairs. Where the change has been accepted already, the base is
    known to differ, and there are no pairs.
    ``has_pairs_without`` says that pairs were launched and lack the metric. ``is_inverse``: the
    values are one over the metric, such as steps per second of a time. ``trimmed``: the mean of its
    pairs leaves out the outermost ones. ``has_other_tasks``: the sides of a pair are not known to
    have as many processes and threads. ``fits_new_processes``: the head has more processes than the
    base, and what it holds more is no more than so many times the base's largest process.
    ``has_other_packages``: this change may have brought other packages than those of the history,
    and both sides of each pair had them. ``counts_as`` is what counts as a change of a noisy metric
    whose values are costs.
    """

    workload: str
    metric: Metric
    limit: Limit
    history: History | None
    head: Sequence[float]
    pairs: Pairs = ()
    earlier: tuple[int, ...] = ()
    said: Verdict | None = None
    tick: float = 0.0
    paired: PairedNumbers | None = None
    items_per_step: float = 1.0
    item_unit: str = "step"
    obstacle: Code | None = None
    is_other_node: bool = False
    does_more: bool = False
    has_more_counts: bool = False
    is_accepted: bool = False
    has_pairs_without: bool = False
    is_inverse: bool = False
    trimmed: bool = False
    has_other_tasks: bool = False
    fits_new_processes: bool = False
    has_other_packages: bool = False
    counts_as: Policy | None = None

    @property
    def is_noisy(self) -> bool:
        """Whether screen and confirmation decide, and not ranges."""
        return self.metric.kind in KIND_OF

    @property
    def may_get_pairs(self) -> bool:
        """Whether another pair of launches could say something of the metric."""
        return self.limit.gate and not (self.is_accepted or self.has_pairs_without)

    def cost(self, value: float) -> float:
        """Return the logarithm of a quantity of which less is better."""
        is_more_better = (self.metric.better is Better.HIGHER) != self.is_inverse
        return -math.log(value) if is_more_better else math.log(value)

    def shown(self, cost: float) -> float:
        """Turn a cost back into the metric's own unit."""
        return math.exp(-cost if self.metric.better is Better.HIGHER else cost)

    def centre(self, sessions: Sessions) -> float:
        """Return the one value that stands for these sessions, in the metric's own unit."""
        if not self.is_noisy:
            return metric_values.centre(self.metric.kind, sessions)
        costs = [statistics.fmean(map(self.cost, session)) for session in sessions]
        return self.shown(statistics.fmean(costs))

    @property
    def policy_kind(self) -> PolicyKind:
        """How a noisy metric behaves."""
        return KIND_OF[self.metric.kind]

    @property
    def policy(self) -> Policy:
        """What counts as a change of a noisy metric; of one that `as_costs` has made."""
        assert self.counts_as is not None
        return self.counts_as

    def as_costs(self) -> "Candidate":
        """Return a noisy metric with the costs of its values in the place of these."""
        return replace(
            self,
            history=self.history.map(self.cost) if self.history else None,
            head=[self.cost(value) for value in self.head],
            pairs=[(self.cost(base), self.cost(head)) for base, head in self.pairs],
            counts_as=policy_under(self.metric, self.limit, self._base()),
        )

    def _base(self) -> float:
        """Return the value that the absolute part of a limit is a share of; 1 where it has none."""
        if not self.limit.absolute:
            return 1.0
        sessions = self.history.current if self.history else []
        return metric_values.centre(
            self.metric.kind, sessions or [[base for base, _ in self.pairs] or self.head]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What is said of a candidate; no change while there is nothing to compare with.

    ``is_open``: one more pair may still decide; so many are expected to. ``past`` is what the
    history alone says, where pairs have decided.
    """

    candidate: Candidate
    change: Change | None
    is_open: bool
    expected_pairs: float
    past: Change | None = None

    @property
    def row(self) -> Change:
        """Return the change of a candidate that has one."""
        assert self.change is not None
        return self.change


def find_candidates(
    head: Subject,
    base: Subject | None,
    limits: dict[str, Limit],
    *,
    moved: frozenset[Kind],
    accepted: Collection[str] = (),
    trimmed: bool = False,
    has_other_packages: bool = False,
) -> Iterator[Candidate]:
    """Yield what can be judged of one workload; `base` is its history where that compares.

    The history clears no metric of a kind in `moved`; `accepted` metrics are judged by it alone.
    `trimmed` says how pairs are averaged, `has_other_packages` that the change may have brought
    other packages than the history had. A count that is zero everywhere is no candidate: nothing
    is compiled here.
    """
    tasks = _find_pairs(head, metrics.TASKS)
    memory = find_limit(limits, metrics.HOST_RSS_PEAK.name) or Limit()
    fits_new_processes = _fits_new_processes(head, memory)
    for metric in metric_values.find_recorded(head.sessions):
        sessions = metric_values.list_current_epoch(head, metric)
        limit = find_limit(limits, metric.name)
        if limit is None or not sessions:
            continue
        chosen = nodes.sessions_for(base.sessions if base else (), head.sessions[-1].node, metric)
        history = metric_values.history_of(chosen.sessions, metric)
        known = history if history.current else None
        is_accepted = metric.name in accepted and known is not None
        pairs = [] if is_accepted else _find_pairs(head, metric)
        values = list(itertools.chain(*sessions))
        everything = [*values, *itertools.chain(*(known.current if known else ()), *pairs)]
        if metric.kind is Kind.COUNT and not any(everything):
            continue
        earlier = _earlier(head, metric) if pairs else []
        yield Candidate(
            workload=head.workload,
            metric=metric,
            limit=limit,
            history=known,
            head=values,
            pairs=pairs,
            earlier=tuple(len(pairs) for pairs, _ in earlier),
            said=next((said for _, said in reversed(earlier) if said), None),
            tick=variability.relative_tick(everything, everything)
            if metric.kind in KIND_OF
            else 0.0,
            paired=head.paired,
            items_per_step=head.items_per_step,
            item_unit=head.item_unit,
            obstacle=chosen.obstacle or (Code.MACHINE_MOVED if metric.kind in moved else None),
            is_other_node=chosen.is_other,
            is_accepted=is_accepted,
            has_pairs_without=bool(head.paired and head.paired.pairs) and not pairs,
            trimmed=trimmed,
            has_other_tasks=not tasks or any(before != after for before, after in tasks),
            fits_new_processes=fits_new_processes,
            has_other_packages=has_other_packages,
        )


def known_beforehand(base: Subject, limits: dict[str, Limit]) -> Iterator[Known]:
    """Yield what the history knows of the noisy metrics that gate, before the head is launched."""
    for metric in metric_values.find_recorded(base.sessions):
        limit = find_limit(limits, metric.name)
        history = metric_values.history(base, metric)
        if metric.kind not in KIND_OF or limit is None or not limit.gate or not history.current:
            continue
        noisy = Candidate(
            workload=base.workload, metric=metric, limit=limit, history=history, head=()
        ).as_costs()
        assert noisy.history is not None
        yield Known(noisy.policy_kind, noisy.policy, noisy.history)


def _find_pairs(subject: Subject, metric: Metric) -> Pairs:
    """Return what both sides of a pair have, those of earlier runs first."""
    return _with(metric, _list_pairs(subject))


def _fits_new_processes(subject: Subject, limit: Limit) -> bool:
    """Whether new processes explain all memory that the head holds more, by the median pair.

    They explain no growth beyond the limit of the largest process itself.
    """
    memory, count, largest = (
        metric.name
        for metric in (metrics.HOST_RSS_PEAK, metrics.PROCESS_COUNT, metrics.LARGEST_PROCESS)
    )
    known = [each for each in _list_pairs(subject) if memory in each[0] and memory in each[1]]
    # A process by itself has no count, and is the largest.
    allowed = [
        (head.get(count, 1) - base.get(count, 1)) * base.get(largest, base[memory])
        for base, head in known
    ]
    beyond = [
        head[memory] - base[memory] - most
        for (base, head), most in zip(known, allowed, strict=True)
    ]
    sizes = [
        (base.get(largest, base[memory]), head.get(largest, head[memory])) for base, head in known
    ]
    grown = [
        after - before - max(limit.relative * before, limit.absolute) for before, after in sizes
    ]
    return bool(known) and (
        statistics.median(allowed) > 0 >= max(statistics.median(beyond), statistics.median(grown))
    )


def _list_pairs(subject: Subject) -> list[tuple[Numbers, Numbers]]:
    """Return all numbers of both sides of each pair, those of earlier runs first."""
    if subject.paired is None:
        return []
    of_earlier = [pair for run in subject.paired.earlier for pair in run.pairs]
    return [*of_earlier, *subject.paired.pairs]


def _earlier(subject: Subject, metric: Metric) -> list[tuple[Pairs, Verdict | None]]:
    """Return the pairs of each earlier run that has some, and what these have said."""
    runs = subject.paired.earlier if subject.paired else ()
    return [
        (pairs, Verdict(run.said[metric.name]) if metric.name in run.said else None)
        for run in runs
        if (pairs := _with(metric, run.pairs))
    ]


def _with(metric: Metric, pairs: Iterable[tuple[Numbers, Numbers]]) -> Pairs:
    """Return the pairs that have the metric on both sides; one without it says nothing of it."""
    return [
        (base[metric.name], head[metric.name])
        for base, head in pairs
        if metric.name in base and metric.name in head
    ]
