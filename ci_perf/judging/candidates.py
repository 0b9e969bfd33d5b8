"""Candidates for a verdict: a metric of a workload, with what both sides measured of it."""

import itertools
import math
import statistics
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum, auto

import msgspec

from ci_perf.judging import metric_values, nodes, variability
from ci_perf.judging.metric_values import History, Pairs, Sessions
from ci_perf.judging.policy import KIND_OF, Policy, PolicyKind, policy_under
from ci_perf.judging.screen import Known
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Code, Verdict
from ci_perf.model.metrics import Better, Kind, Metric
from ci_perf.model.suite import Limit, find_limit
from ci_perf.model.summary import Numbers, PairedNumbers, Subject


class Fact(StrEnum):
    """What is known of a metric beside its numbers."""

    # The history is of other nodes than the head.
    OTHER_NODE = auto()
    # A count has grown against its history, so that the history of a time has to exclude a loss.
    DOES_MORE = auto()
    # A count has grown in each of the first pairs.
    COUNTS_MORE = auto()
    # The change has been accepted: the base is known to differ, and there are no pairs.
    ACCEPTED = auto()
    # The values are one over the metric, such as steps per second of a time.
    INVERSE = auto()
    # The mean of the pairs leaves out the outermost ones.
    TRIMMED = auto()
    # The sides of a pair are not known to have as many processes and threads.
    OTHER_TASKS = auto()
    # The head has more processes, and holds no more than these explain (`_fits_new_processes`).
    NEW_PROCESSES = auto()
    # The change may have brought other packages than the history had; both sides of pairs had them.
    OTHER_PACKAGES = auto()


def choose(facts: Mapping[Fact, bool]) -> frozenset[Fact]:
    """Return the facts that hold."""
    return frozenset(fact for fact, holds in facts.items() if holds)


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One metric of one workload; values are in its unit, one per launch.

    ``history`` is ``None`` where none compares. ``head`` are the head's own launches, ``pairs``
    those of base and head in turns, in order. ``earlier`` counts how many of the pairs each earlier
    run of the same commits has launched, ``said`` is what these have said. ``tick`` is what a noisy
    metric was rounded to, as a logarithm. ``paired`` says how launching the base went.

    ``obstacle`` is the reason code why the history may not clear the head: the machine has moved,
    say, or an earlier screen has found it suspicious.
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
    facts: frozenset[Fact] = frozenset()

    @property
    def is_noisy(self) -> bool:
        """Whether screen and confirmation decide, and not ranges."""
        return self.metric.kind in KIND_OF

    @property
    def may_get_pairs(self) -> bool:
        """Whether another pair of launches could say something of the metric."""
        lacks_pairs = bool(self.paired and self.paired.pairs) and not self.pairs
        return self.limit.gate and not (Fact.ACCEPTED in self.facts or lacks_pairs)

    @property
    def cost(self) -> Callable[[float], float]:
        """What turns a value into the logarithm of a quantity of which less is better."""
        is_more_better = (self.metric.better is Better.HIGHER) != (Fact.INVERSE in self.facts)
        return _negate_logarithm if is_more_better else math.log

    def shown(self, cost: float) -> float:
        """Turn a cost back into the metric's own unit."""
        return math.exp(-cost if self.metric.better is Better.HIGHER else cost)

    def centre(self, sessions: Sessions) -> float:
        """Return the one value that stands for these sessions, in the metric's own unit."""
        if not self.is_noisy:
            return metric_values.centre(self.metric.kind, sessions)
        costs = [statistics.fmean(map(self.cost, session)) for session in sessions]
        return self.shown(statistics.fmean(costs))

    def as_costs(self) -> "Costs":
        """Return the costs of the values of a noisy metric."""
        cost = self.cost
        return Costs(
            of=self,
            policy=policy_under(self.metric, self.limit, self._base()),
            history=self.history.map(cost) if self.history else None,
            head=list(map(cost, self.head)),
            pairs=[(cost(base), cost(head)) for base, head in self.pairs],
        )

    def _base(self) -> float:
        """Return the value that the absolute part of a limit is a share of; 1 where it has none."""
        if not self.limit.absolute:
            return 1.0
        sessions = self.history.current if self.history else []
        return metric_values.centre(
            self.metric.kind, sessions or [[base for base, _ in self.pairs] or self.head]
        )


def _negate_logarithm(value: float) -> float:
    return -math.log(value)


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """The values of a noisy metric as costs, and the `policy`: what counts as a change of them."""

    of: Candidate
    policy: Policy
    history: History | None
    head: Sequence[float]
    pairs: Pairs = ()

    @property
    def kind(self) -> PolicyKind:
        """How the metric behaves."""
        return KIND_OF[self.of.metric.kind]


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
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
    facts: frozenset[Fact] = frozenset(),
) -> Iterator[Candidate]:
    """Yield what can be judged of one workload; `base` is its history where that compares.

    The history clears no metric of a kind in `moved`; `accepted` metrics are judged by it alone.
    `facts` are those of the workload. A count that is zero everywhere is no candidate: nothing is
    compiled here.
    """
    every_pair = head.list_pairs()
    tasks = _with(metrics.TASKS, every_pair)
    memory = find_limit(limits, metrics.HOST_RSS_PEAK.name) or Limit()
    has_other_tasks = not tasks or any(before != after for before, after in tasks)
    facts |= choose(
        {
            Fact.OTHER_TASKS: has_other_tasks,
            Fact.NEW_PROCESSES: _fits_new_processes(every_pair, memory),
        }
    )
    for metric in metric_values.find_recorded(head.sessions):
        limit = find_limit(limits, metric.name)
        if limit is None or not (sessions := metric_values.list_current_epoch(head, metric)):
            continue
        chosen = nodes.sessions_for(base.sessions if base else (), head.sessions[-1].node, metric)
        history = metric_values.history_of(chosen.sessions, metric)
        known = history if history.current else None
        is_accepted = metric.name in accepted and known is not None
        pairs = [] if is_accepted else _with(metric, every_pair)
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
            facts=facts | choose({Fact.OTHER_NODE: chosen.is_other, Fact.ACCEPTED: is_accepted}),
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
        yield Known(noisy.kind, noisy.policy, noisy.history)


def _fits_new_processes(pairs: Iterable[tuple[Numbers, Numbers]], limit: Limit) -> bool:
    """Whether new processes explain all memory that the head holds more, by the median pair.

    They explain no growth beyond the limit of the largest process itself.
    """
    memory, count, largest = (
        metric.name
        for metric in (metrics.HOST_RSS_PEAK, metrics.PROCESS_COUNT, metrics.LARGEST_PROCESS)
    )
    known = [each for each in pairs if memory in each[0] and memory in each[1]]
    # A process by itself has no count, and is the largest.
    allowed, beyond, grown = [], [], []
    for base, head in known:
        before, after = (side.get(largest, side[memory]) for side in (base, head))
        allowed.append((head.get(count, 1) - base.get(count, 1)) * before)
        beyond.append(head[memory] - base[memory] - allowed[-1])
        grown.append(after - before - max(limit.relative * before, limit.absolute))
    middle = statistics.median
    return bool(known) and middle(allowed) > 0 >= max(middle(beyond), middle(grown))


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
