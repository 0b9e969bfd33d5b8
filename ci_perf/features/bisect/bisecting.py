"""Which commits are measured next, and where the culprit may be: answers in, a range out.

Positions count the commits of a line: 0 is the known-good one, `last` the known-bad one. Each
answer comes from pairs of a commit with the known-good one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ci_perf.features.bisect.bisection import CommitAnswer
from ci_perf.judging.policy import KIND_OF
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Row, Verdict
from ci_perf.model.metrics import Metric
from ci_perf.model.suite import Limit, Limits, find_limit

# The limit that divides an effect, as a share of its logarithm: an alarm excludes a third of the
# effect, and "unchanged" two thirds.
DIVIDING = 2 / 3
_LIKE_GOOD = frozenset({Verdict.UNCHANGED, Verdict.IMPROVED})
# Of what has become worse, a step is what people look for.
_FIRST = (metrics.STEP_TIME.name, metrics.STEP_CPU.name)


@dataclass(frozen=True, slots=True)
class Range:
    """The culprit comes after position ``low``, and is not after ``high``."""

    low: int
    high: int

    @property
    def is_one(self) -> bool:
        """Whether only one commit is left."""
        return self.high - self.low == 1


@dataclass(frozen=True, slots=True)
class Search:
    """A line of commits from 0 to ``last``, and the answers so far."""

    last: int
    answers: Mapping[int, CommitAnswer] = field(default_factory=dict)

    def with_answer(self, position: int, answer: CommitAnswer) -> "Search":
        """Return the search that knows one answer more. Of both ends, the answer is known."""
        return Search(self.last, {**self.answers, position: answer})

    @property
    def range(self) -> Range:
        """Return where the culprit may be.

        Where a line went bad, good and bad again, the last time it went bad is what made the
        known-bad commit bad.
        """
        low = max(self._at(CommitAnswer.LIKE_GOOD), default=0)
        high = min((at for at in self._at(CommitAnswer.LIKE_BAD) if at > low), default=self.last)
        return Range(low, high)

    @property
    def open(self) -> tuple[int, ...]:
        """Return the positions whose answer would make the range smaller."""
        within = range(self.range.low + 1, self.range.high)
        return tuple(at for at in within if at not in self.answers)

    def _at(self, answer: CommitAnswer) -> list[int]:
        return sorted(at for at, known in self.answers.items() if known is answer)


def next_position(search: Search) -> int | None:
    """Return the open position nearest to the middle of the range; `None` where none is open."""
    middle = (search.range.low + search.range.high) / 2
    return min(search.open, key=lambda at: (abs(at - middle), at), default=None)


# --- from rows of the judge to answers, and back


def worse(rows: tuple[Row, ...], metric: str = "") -> Change | None:
    """Return the row by which the known-bad commit is worse; of `metric`, if one is named.

    Without a name: the time of a step if that has regressed, else what the judge puts first.
    """
    regressed = [
        row
        for row in rows
        if isinstance(row, Change)
        and row.verdict is Verdict.REGRESSED
        and (row.metric == metric if metric else row.gate)
    ]
    by_name = {row.metric: row for row in regressed}
    first = next((by_name[name] for name in _FIRST if name in by_name), None)
    return first or next(iter(regressed), None)


def only(limits: Limits, workload: str, metric: str) -> Limits:
    """Return the limits under which this metric alone gates, by the size that it has anyway."""
    limit = find_limit(limits.of(workload), metric) or Limit()
    return _set_gating_limit(limits, workload, metric, limit)


def divide_limits(limits: Limits, effect: Change) -> Limits:
    """Return the limits by which a commit is like the known-bad one, or like the known-good one.

    Half of the effect divides them: in logarithms for what is noisy, in the metric's unit for what
    is compared by ranges.
    """
    metric = metrics.metric_of(effect.metric)
    return _set_gating_limit(limits, effect.workload, metric.name, _half(metric, effect))


def _half(metric: Metric, effect: Change) -> Limit:
    if metric.kind not in KIND_OF or effect.ratio is None:
        return Limit(absolute=abs(effect.head - effect.base) / 2)
    return Limit(relative=math.expm1(DIVIDING * math.log(effect.ratio)))


def _set_gating_limit(limits: Limits, workload: str, metric: str, limit: Limit) -> Limits:
    return Limits(default=limits.gate_only(workload, {metric: limit}), trimmed=limits.trimmed)


def answer(change: Change | None) -> CommitAnswer:
    """Return what pairs with the known-good commit say, judged by the limits of `dividing`."""
    if change is not None and change.verdict is Verdict.REGRESSED:
        return CommitAnswer.LIKE_BAD
    if change is not None and change.verdict in _LIKE_GOOD:
        return CommitAnswer.LIKE_GOOD
    return CommitAnswer.UNDECIDED


def row_of(rows: tuple[Row, ...], metric: str) -> Change | None:
    """Return the row of a metric, if there is one."""
    of_metric = (row for row in rows if isinstance(row, Change) and row.metric == metric)
    return next(of_metric, None)
