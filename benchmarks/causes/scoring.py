"""Whether an explanation is right: the planted function first, its kind, and its share."""

import itertools
import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from benchmarks.causes.planted import Planted
from ci_perf.features.explain import causes, order
from ci_perf.features.explain.model import (
    Cause,
    Explanation,
    ProfiledPair,
    ProfiledPairs,
    ShareOfChange,
    StepProfile,
)
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Code, Interval, Verdict

# Linux ends a sleep up to 50 µs late (timer slack), and the thread must be woken.
_OVERSHOOT_S = 1e-4
_KNOWN_CHANGE = 0.05
_NORMAL_95 = 1.96

# At least and at most.
Shares = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one set of pairs."""

    is_first: bool
    is_kind: bool
    first: str
    shares: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Bounds:
    """A median, with the bounds of 95 % by order statistics."""

    low: float
    median: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Bounds":
        """Take them of values that do not depend on each other (David and Nagaraja, 2003)."""
        ordered, count = sorted(values), len(values)
        cut = max(0, math.floor((count - _NORMAL_95 * math.sqrt(count)) / 2) - 1)
        return cls(ordered[cut], statistics.median(ordered), ordered[-1 - cut])


@dataclass(frozen=True, slots=True)
class Steps:
    """Seconds of a step of the base, of the base with decoys, and of the head, round by round."""

    rounds: Sequence[Sequence[float]]

    def row(self) -> Change:
        """Return the row of step time that a check would have: with its interval."""
        base_s = statistics.median(base for base, _, _ in self.rounds)
        ratio = Bounds.of([head / base for base, _, head in self.rounds])
        interval = Interval(low=ratio.low, high=ratio.high)
        return row((base_s, base_s * ratio.median), interval=interval)

    def of_cause(self) -> Bounds:
        """Return the seconds that the cause adds, without those of the decoys."""
        return Bounds.of([head - decoys for _, decoys, head in self.rounds])


def row_of_memory(pair: ProfiledPair) -> Change:
    """Return the row of memory that a check would have."""
    return row((_bytes(pair.base), _bytes(pair.head)), metric=metrics.PEAK_ALLOCATED)


def row(
    sides: tuple[float, float],
    *,
    metric: metrics.Metric = metrics.STEP_TIME,
    interval: Interval | None = None,
) -> Change:
    """Return a row that has moved, by numbers of the base and of the head."""
    base, head = sides
    ratio = head / base
    return Change(
        workload="model",
        metric=metric.name,
        base=base,
        head=head,
        base_processes=3,
        head_processes=3,
        base_sessions=1,
        items_per_step=1.0,
        item_unit="item",
        ratio=ratio,
        interval=interval or Interval(low=ratio, high=ratio),
        limit=0.02,
        smallest_detectable=None,
        gate=True,
        verdict=Verdict.IMPROVED if ratio < 1 else Verdict.REGRESSED,
        code=Code.BEYOND_LIMIT,
    )


def explained(pairs: Iterable[ProfiledPair], of: Change) -> Explanation:
    """Explain a row by these pairs."""
    profiled = ProfiledPairs(workload="model", pairs=tuple(pairs))
    is_gain = of.verdict is Verdict.IMPROVED
    return causes.explain(profiled, is_gain=is_gain, row=of, move=order.read_move(of))


def answers(
    planted: Planted,
    pairs: Sequence[ProfiledPair],
    of: Change,
    size: int,
    truth: Mapping[str, Shares] = MappingProxyType({}),
) -> Iterator[Answer]:
    """Explain a row by every subset of so many pairs; `truth` are the shares that are known."""
    for subset in itertools.combinations(pairs, size):
        explanation = explained(subset, of)
        first = explanation.causes[0] if explanation.causes else None
        is_first = first is not None and _function(first) in planted.functions
        yield Answer(
            is_first=is_first,
            is_kind=is_first and first is not None and first.kind in planted.kinds,
            first=_said(first) if first else explanation.trouble or "nothing",
            shares=tuple(_shares(explanation, truth)),
        )


def _shares(explanation: Explanation, truth: Mapping[str, Shares]) -> Iterator[bool]:
    """Say of the printed shares of each function whether they hold what is known of it."""
    printed: dict[str, list[ShareOfChange]] = defaultdict(list)
    for cause in (*explanation.causes, *explanation.others):
        if cause.share is not None:
            printed[_function(cause)].append(cause.share)
    for function in printed.keys() & truth.keys():
        low, high = truth[function]
        of_function = printed[function]
        yield (
            math.fsum(share.low for share in of_function) <= high
            and low <= math.fsum(share.high for share in of_function)
        )


def true_shares(planted: Planted, steps: Steps, of: Change) -> dict[str, Shares]:
    """Return what functions take of a change, at least and at most, where that is known.

    Where only one function is changed it takes all but what the decoys do. A small change is not
    known well enough.
    """
    delta = of.head - of.base
    if planted.seconds:
        return {
            function: (seconds / delta, (seconds + _OVERSHOOT_S) / delta)
            for function, seconds in planted.seconds.items()
        }
    if planted.is_memory or len(planted.functions) > 1 or abs(delta / of.base) < _KNOWN_CHANGE:
        return {}
    added = steps.of_cause()
    ends = sorted((added.low / delta, added.high / delta))
    return dict.fromkeys(planted.functions, (ends[0], ends[1]))


def same(launches: Sequence[StepProfile], size: int) -> Iterator[tuple[int, int]]:
    """Compare bases with themselves: how many exact and measured lines each comparison has.

    Launches of one model meet in turns: each is in several comparisons, no two of which have the
    same pairs. The row is slower by 5 %, or faster by that.
    """
    ratios = itertools.cycle((1.05, 0.95))
    for shift in range(1, len(launches), 2):
        places = range(0, len(launches) - shift, 2)
        made = [ProfiledPair(base=launches[at], head=launches[at + shift]) for at in places]
        for start in range(0, len(made) - size + 1, size):
            subset = made[start : start + size]
            base_s = statistics.median(pair.base.step_s or 1.0 for pair in subset)
            every = explained(subset, row((base_s, base_s * next(ratios))))
            shown = (*every.causes, *every.others)
            exact = sum(cause.evidence == "exact" for cause in shown) + every.further
            yield exact, len(shown) + every.further - exact


def _bytes(profile: StepProfile) -> float:
    return float(profile.memory.peak_bytes) if profile.memory else 1.0


def _function(cause: Cause) -> str:
    return cause.place.function if cause.place else ""


def _said(cause: Cause) -> str:
    operator = cause.operators[0].operator if cause.operators else cause.waits_in
    return f"{cause.kind} {operator} in {_function(cause) or '?'}".replace("  ", " ")
