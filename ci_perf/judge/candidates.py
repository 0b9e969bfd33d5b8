"""What is asked of the judge: one metric of one workload, with all that both sides say of it."""

import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ci_perf.judge import metric_values, policy, variability
from ci_perf.judge.decide import NoisyMetric
from ci_perf.judge.metric_values import History
from ci_perf.judge.policy import KIND_OF
from ci_perf.model import metrics
from ci_perf.model.metrics import Better, Kind, Metric
from ci_perf.model.suite import Limit
from ci_perf.model.summary import Numbers, Subject

Pairs = list[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One metric that can be judged: by the history (``None`` where it does not compare), or pairs.

    ``clears`` says whether the history may clear the head: not when the machine has moved. Where
    the change has been accepted already, the base is known to differ and its pairs say nothing.
    """

    metric: Metric
    limit: Limit
    subject: Subject
    history: History | None
    clears: bool = True
    is_accepted: bool = False

    @property
    def is_noisy(self) -> bool:
        """Whether screen and confirmation decide, and not ranges."""
        return self.metric.kind in KIND_OF

    @property
    def head(self) -> list[float]:
        """The values of the head's own processes."""
        return [
            v
            for session in metric_values.of_current_epoch(self.subject, self.metric)
            for v in session
        ]

    @property
    def pairs(self) -> Pairs:
        """The values of base and head that took turns, in order."""
        return [] if self.is_accepted else _paired(self.subject, self.metric)

    @property
    def is_absent_from_pairs(self) -> bool:
        """Whether pairs say nothing of this: no more of them will help."""
        turns = self.subject.turns
        return self.is_accepted or (turns is not None and bool(turns.pairs) and not self.pairs)

    def cost(self, value: float) -> float:
        """Return the logarithm of a quantity of which less is better."""
        return -math.log(value) if self.metric.better is Better.HIGHER else math.log(value)

    def shown(self, cost: float) -> float:
        """Turn back into the metric's own unit."""
        return math.exp(-cost if self.metric.better is Better.HIGHER else cost)

    def candidate(self) -> NoisyMetric:
        """Return what the stages of the judge need to know of a noisy metric."""
        return NoisyMetric(
            kind=KIND_OF[self.metric.kind],
            policy=policy.policy_under(self.metric, self.limit, self._base()),
            history=self.history.map(self.cost) if self.history else None,
            head=[self.cost(value) for value in self.head],
            pairs=self._costs(self.pairs),
            cycles=self._cycles(),
            gate=self.limit.gate,
            clears=self.clears,
            tick=variability.relative_tick(self._values(), self._values()),
        )

    def _values(self) -> Iterator[float]:
        """Yield what both sides have of the metric: values of a block, or the middle of two."""
        yield from self.head
        yield from itertools.chain(*(self.history.current if self.history else ()), *self.pairs)

    def _base(self) -> float:
        """Return the value that the absolute part of a limit is a share of."""
        sessions: Sequence[Sequence[float]] = self.history.current if self.history else []
        return metric_values.centre(
            self.metric.kind, sessions or [[b for b, _ in self.pairs] or self.head]
        )

    def _cycles(self) -> Pairs:
        """Return the pairs of a step time in cycles, where a GPU's clock was seen."""
        if self.metric is not metrics.STEP_TIME or self.is_accepted:
            return []
        return self._costs(_paired(self.subject, metrics.STEP_CYCLES))

    def _costs(self, pairs: Pairs) -> Pairs:
        return [(self.cost(base), self.cost(head)) for base, head in pairs]


def of_workload(
    head: Subject,
    base: Subject | None,
    found: dict[str, Limit],
    *,
    moved: frozenset[Kind],
    accepted: Collection[str] = (),
) -> Iterator[Candidate]:
    """Yield what can be judged of one workload; `base` is its history where that compares.

    Kinds in `moved` are not cleared by their history, `accepted` metrics are judged by nothing
    else. A count that is zero everywhere is no
    question: nothing is compiled here.
    """
    for metric in metrics.JUDGED:
        if metric.name not in found:
            continue
        history = metric_values.history(base, metric) if base else None
        question = Candidate(
            metric=metric,
            limit=found[metric.name],
            subject=head,
            history=history if history and history.current else None,
            clears=metric.kind not in moved,
            is_accepted=metric.name in accepted and bool(history and history.current),
        )
        if question.head and not _says_nothing(question):
            yield question


def _says_nothing(question: Candidate) -> bool:
    if question.metric.kind is not Kind.COUNT:
        return False
    known = question.history.current if question.history else []
    sides = (*known, question.head, *question.pairs)
    return not any(value for side in sides for value in side)


def _paired(subject: Subject, metric: Metric) -> Pairs:
    """Return what both sides of a pair have; a pair without the metric says nothing of it."""
    turns = subject.turns.pairs if subject.turns else ()
    return [
        (base[metric.name], head[metric.name]) for base, head in turns if _both(base, head, metric)
    ]


def _both(base: Numbers, head: Numbers, metric: Metric) -> bool:
    return metric.name in base and metric.name in head
