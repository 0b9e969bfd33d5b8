"""Which causes explain a row, which have only changed as well, and how much of it each takes."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from ci_perf.judging.causes.possible import PossibleCause, mean_of
from ci_perf.model import metrics
from ci_perf.model.comparison import Change
from ci_perf.model.explanation import Cause, ShareOfChange

# Of a row's change: what takes less is never the cause.
LEAST_SHARE: Final = 0.1
# By this factor an estimate of one or two pairs may be wrong, or one of times alone.
_UNSURE: Final = 3.0
# Shares that add up to more than this, some rounding included, are wrong.
_MOST_SHARES: Final = 1.1
# A profile that lies may divide by nearly nothing.
_LARGEST: Final = 1e6
# Times of a whole step, to which causes add up.
_WHOLE_STEPS: Final = frozenset({metrics.STEP_TIME.name, metrics.STEP_CPU.name})


@dataclass(frozen=True, slots=True)
class Moved:
    """How far a row has moved, in its unit: head minus base, and how uncertain that is.

    ``error`` is half the width of the row's interval, as a share of the change. Of a compiled step
    nobody knows which share a cause has: what is profiled runs as Python.
    """

    delta: float
    error: float = 0.0
    is_memory: bool = False
    is_compiled: bool = False


@dataclass(frozen=True, slots=True)
class _Placed:
    """A candidate with its part of the row's change: an estimate, and bounds of three pairs."""

    candidate: PossibleCause
    estimate: float | None
    bounds: ShareOfChange | None
    is_large_in_each_pair: bool = False

    @property
    def is_measured(self) -> bool:
        """Whether only times show it."""
        return not self.candidate.is_exact

    @property
    def resolved(self) -> ShareOfChange | None:
        """Return the share where its bounds exclude 0."""
        return self.bounds if self.bounds and self.bounds.low * self.bounds.high > 0 else None

    def is_small(self, largest: float) -> bool:
        """Whether it takes less than a tenth; `largest` is the largest estimate of all."""
        if self.estimate is None:
            return False
        if self.bounds is not None:
            is_surely = self.bounds.high < LEAST_SHARE
        else:
            is_surely = self.estimate < LEAST_SHARE / _UNSURE
        return is_surely or self.estimate < LEAST_SHARE <= largest


def moved(row: Change, *, is_compiled: bool = False) -> Moved | None:
    """Read off a row how far it has moved; `None` where causes do not add up to its metric."""
    if is_memory(row):
        change = Moved(row.head - row.base, is_memory=True, is_compiled=is_compiled)
    elif row.metric in _WHOLE_STEPS and row.ratio is not None and row.ratio != 1:
        half = (row.interval.high - row.interval.low) / 2 if row.interval else 0.0
        error = half / abs(row.ratio - 1)
        change = Moved(row.base * (row.ratio - 1), error, is_compiled=is_compiled)
    else:
        return None
    is_usable = math.isfinite(change.delta) and change.delta != 0 and change.error < 1
    return change if is_usable else None


def is_memory(row: Change) -> bool:
    """Whether a row is one of memory."""
    known = metrics.BY_NAME.get(row.metric)
    return known is not None and known.unit is metrics.Unit.BYTE


def arranged(
    candidates: Iterable[PossibleCause], change: Moved | None, *, is_gain: bool
) -> tuple[list[Cause], list[Cause]]:
    """Return the causes, the likeliest first, and what has changed besides.

    First what takes a tenth of the change or more, by its bounds or in each of three pairs, by
    size; what only times show stands below what counts show of a size like it. Then exact causes
    of which the size is not resolved: by their time in these launches where all were timed, else by
    how many calls they concern, likely ones first.
    """
    placed = [_placed(candidate, change) for candidate in candidates]
    largest = max((each.estimate for each in placed if each.estimate is not None), default=0.0)
    large: list[_Placed] = []
    unresolved: list[_Placed] = []
    others: list[_Placed] = []
    for each in placed:
        if each.resolved:
            is_large = each.resolved.share >= LEAST_SHARE
            (large if is_large else others).append(each)
        elif each.is_large_in_each_pair:
            large.append(each)
        else:
            (others if each.is_small(largest) else unresolved).append(each)
    large.sort(key=lambda each: -(each.estimate or 0.0))
    unresolved.sort(key=_by_calls)
    if all(each.candidate.seconds for each in unresolved):
        unresolved.sort(key=lambda each: _saved_s(each, is_gain=is_gain))
    others.sort(key=_by_calls)
    others.sort(key=lambda each: -abs(each.estimate or 0.0))
    causes = [*(each for each in large if not each.is_measured), *unresolved]
    for each in (each for each in large if each.is_measured):
        causes.insert(_below_exact(each, causes), each)
    explained = math.fsum(each.resolved.share for each in causes if each.resolved)
    if explained > _MOST_SHARES or change is None or change.is_compiled:
        return [_cause(each) for each in causes], [_cause(each) for each in others]
    left = _Left.by(causes, change)
    return [_cause(each, left) for each in causes], [_cause(each, left) for each in others]


def contradicts(
    ratios: Sequence[float], candidates: Iterable[PossibleCause], change: Moved
) -> bool:
    """Whether profiled steps, and all that their causes add up to, go clearly the other way.

    `ratios` are steps of the head over steps of the base, pair by pair.
    """
    step = mean_of([math.log(ratio) for ratio in ratios])
    if change.is_memory or step is None:
        return False
    is_opposite = step.is_resolved and step.value * change.delta < 0
    known = [statistics.median(each.seconds) for each in candidates if each.seconds]
    added = math.fsum(known) / change.delta
    return is_opposite and added < -LEAST_SHARE


# --- the share of one candidate


def _placed(candidate: PossibleCause, change: Moved | None) -> _Placed:
    if change is None:
        return _Placed(candidate, None, None)
    if change.is_memory:
        share = None if candidate.amount is None else _finite(candidate.amount / change.delta)
        exact = None if share is None else ShareOfChange(share=share, low=share, high=share)
        return _Placed(candidate, share, exact)
    if not candidate.seconds:
        return _Placed(candidate, None, None)
    estimate = _finite(statistics.median(candidate.seconds) / change.delta)
    bounds = None if estimate is None else _bounds(candidate.seconds, estimate, change)
    least = min(seconds / change.delta for seconds in candidate.seconds)
    is_large = bounds is not None and least >= LEAST_SHARE
    return _Placed(candidate, estimate, bounds, is_large)


def _bounds(seconds: Sequence[float], share: float, change: Moved) -> ShareOfChange | None:
    """Return the bounds of 95 %: Student's t over the pairs, and how uncertain the change is."""
    mean = mean_of(seconds)
    if mean is None:
        return None
    center = mean.value / change.delta
    half = math.hypot(mean.half / change.delta, center * change.error)
    low, high = _finite(min(center - half, share)), _finite(max(center + half, share))
    if low is None or high is None:
        return None
    return ShareOfChange(share=share, low=low, high=high)


def _finite(share: float) -> float | None:
    return share if abs(share) <= _LARGEST else None


@dataclass(frozen=True, slots=True)
class _Left:
    """What causes leave unexplained of a row's change, or how many times as much they explain.

    Times of calls are lower quartiles, and leave out what a call costs others (caches, memory). So
    what is unexplained may belong to any of the causes; where they explain too much, each may be
    too large by as much.
    """

    unexplained: float = 0.0
    excess: float = 1.0

    @classmethod
    def by(cls, causes: Iterable[_Placed], change: Moved) -> "_Left":
        if change.is_memory:
            return cls()
        total = math.fsum(each.estimate for each in causes if each.estimate is not None)
        return cls(max(1 + change.error - total, 0.0), max(total, 1.0))

    def widened(self, share: ShareOfChange) -> ShareOfChange:
        if share.share <= 0:
            return share
        low, high = share.share / self.excess, share.share + self.unexplained
        return ShareOfChange(share=share.share, low=min(share.low, low), high=max(share.high, high))


def _cause(placed: _Placed, left: _Left | None = None) -> Cause:
    """Return what is published: with its share where it is known what causes leave."""
    seconds, share = placed.candidate.seconds, placed.resolved
    return msgspec.structs.replace(
        placed.candidate.cause,
        delta_s=statistics.median(seconds) if seconds else None,
        share=left.widened(share) if left and share else None,
    )


# --- order


def _below_exact(measured: _Placed, causes: Sequence[_Placed]) -> int:
    """Return where a cause stands that only times show: they may be wrong, and counts are not.

    Above an exact one it must take so much more that no estimate is wrong by that.
    """
    estimate = measured.estimate or 0.0
    least = max(LEAST_SHARE, estimate / _UNSURE)
    for place, each in enumerate(causes):
        share = each.estimate or 0.0
        if share < (estimate if each.is_measured else least):
            return place
    return len(causes)


def _saved_s(placed: _Placed, *, is_gain: bool) -> float:
    """Return what sorts by time: the most seconds in the row's direction come first."""
    seconds = statistics.median(placed.candidate.seconds)
    return seconds if is_gain else -seconds


def _by_calls(placed: _Placed) -> tuple[bool, bool, float, bool, str, str]:
    candidate = placed.candidate
    cause = candidate.cause
    name = candidate.place or ("", "")
    is_measured = cause.evidence == "measured"
    return not candidate.is_likely, is_measured, -candidate.size, cause.kind == "calls", *name
