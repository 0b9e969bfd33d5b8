"""Whether an explanation is right: the planted function first, its kind, and its share."""

import itertools
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.causes.launching import Averages
from benchmarks.causes.planted import CALLED_BY, Planted
from ci_perf.judging import causes
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Interval, Verdict
from ci_perf.model.explanation import Cause, Explanation
from ci_perf.model.step_profile import ProfiledPair, ProfiledPairs, StepProfile

# Linux ends a sleep up to 50 µs late (timer slack), and the thread must be woken.
_OVERSHOOT_S = 1e-4
_KNOWN_CHANGE = 0.05


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one set of pairs."""

    is_first: bool
    is_kind: bool
    first: str
    shares: tuple[bool, ...] = ()


def row(steps_s: tuple[float, float], pairs: Sequence[ProfiledPair] = ()) -> Change:
    """Return a row of step time, or one of memory of these pairs."""
    base, head = steps_s
    metric = metrics.STEP_TIME
    if pairs:
        base, head = _bytes(pairs[0].base), _bytes(pairs[0].head)
        metric = metrics.PEAK_ALLOCATED
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
        interval=Interval(low=ratio, high=ratio),
        limit=0.01,
        margin=0.02,
        smallest_detectable=None,
        gate=True,
        verdict=Verdict.IMPROVED if ratio < 1 else Verdict.REGRESSED,
        code="confirmed",
    )


def explained(pairs: Iterable[ProfiledPair], of: Change) -> Explanation:
    """Explain a row by these pairs."""
    profiled = ProfiledPairs(workload="model", pairs=tuple(pairs))
    return causes.explain(profiled, is_gain=of.verdict is Verdict.IMPROVED, row=of)


def answers(
    planted: Planted, pairs: Sequence[ProfiledPair], of: Change, size: int
) -> Iterator[Answer]:
    """Explain a row by every subset of so many pairs."""
    for subset in itertools.combinations(pairs, size):
        explanation = explained(subset, of)
        first = explanation.causes[0] if explanation.causes else None
        is_first = first is not None and _function(first) in planted.functions
        yield Answer(
            is_first=is_first,
            is_kind=is_first and first is not None and first.kind in planted.kinds,
            first=_said(first) if first else explanation.trouble or "nothing",
            shares=tuple(_shares(planted, explanation, of)),
        )


def _shares(planted: Planted, explanation: Explanation, of: Change) -> Iterator[bool]:
    """Say of each printed share whether it holds the truth, where that is known."""
    for cause in (*explanation.causes, *explanation.others):
        truth = _true_share(planted, _function(cause), of)
        if cause.share is not None and truth is not None:
            low, high = truth
            yield cause.share.low <= high and low <= cause.share.high


def _true_share(planted: Planted, function: str, of: Change) -> tuple[float, float] | None:
    """Return what a function takes of a change, at least and at most.

    Where only one function is changed it takes all but what the decoys do. A small change is not
    known well enough.
    """
    seconds = (planted.seconds or {}).get(function)
    if seconds is not None:
        return seconds / (of.head - of.base), (seconds + _OVERSHOOT_S) / (of.head - of.base)
    is_all = planted.functions == {function} and not (planted.seconds or planted.is_memory)
    return (0.9, 1.0) if is_all and abs(of.head / of.base - 1) >= _KNOWN_CHANGE else None


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


def is_first_by_average(
    planted: Planted, base: Averages, head: Averages, *, column: int
) -> bool | None:
    """Whether a table of operators shows a right one first; `None` where none would be right."""
    if not planted.operators:
        return None

    def moved(name: str) -> float:
        return abs(head.get(name, (0.0, 0.0))[column] - base.get(name, (0.0, 0.0))[column])

    return max(base.keys() | head.keys(), key=moved) in planted.operators


def is_first_by_trace_diff(planted: Planted, differences_us: Mapping[str, float]) -> bool | None:
    """Whether a right operator stands first in a trace diff; `None` where none would be right.

    The diff has whole durations, so an operator that calls a right one is as right. Steps and the
    marks of autograd around an operator are no operators.
    """
    if not planted.operators:
        return None
    of_operators = {
        name: abs(difference_us)
        for name, difference_us in differences_us.items()
        if "::" in name and not name.startswith("autograd::")
    }
    first = max(of_operators, key=lambda name: of_operators[name])
    return bool({first, *CALLED_BY.get(first, ())} & planted.operators)


def _bytes(profile: StepProfile) -> float:
    return float(profile.memory.peak_bytes) if profile.memory else 1.0


def _function(cause: Cause) -> str:
    return cause.place.function if cause.place else ""


def _said(cause: Cause) -> str:
    operator = cause.operators[0].operator if cause.operators else cause.waits_in
    return f"{cause.kind} {operator} in {_function(cause) or '?'}".replace("  ", " ")
