"""Which causes explain a row, which have only changed as well, and how much of it each takes."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from ci_perf.features.explain.launches import Place, mean_of_pairs
from ci_perf.features.explain.model import (
    AuthorFunction,
    Cause,
    CauseKind,
    ProfiledPair,
    ShareOfChange,
)
from ci_perf.model import metrics
from ci_perf.model.comparison import Change

# What costs time or memory, and what saves it: work that is added, or done on other shapes.
SLOWS: Final[frozenset[CauseKind]] = frozenset(
    {
        "new",
        "more",
        "other_shape",
        "recomputed",
        "synchronises",
        "slower",
        "waits",
        "grows",
        "holds_more",
        "breaks_graph",
    }
)
SPEEDS: Final[frozenset[CauseKind]] = frozenset(
    {"gone", "fewer", "other_shape", "faster", "holds_less"}
)
# Texts of measured code: longer ones are cut, for fifteen causes must stay small.
_MAX_CHARS: Final = 200
_MAX_PATH_CHARS: Final = 1_000
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PossibleCause:
    """A cause before it has its place among the others, and what orders it.

    ``place`` is its function, whose name is not cut. ``is_likely``: its kind moves a row to the
    side to which this one has moved. ``size`` is how many calls it concerns. ``seconds`` are what
    it adds to a step, pair by pair; none where nobody timed it. ``amount`` is how many bytes it
    adds, of a cause of memory.
    """

    cause: Cause
    place: Place | None = None
    is_likely: bool
    size: float
    seconds: Sequence[float] = ()
    amount: float | None = None


@dataclass(frozen=True, slots=True)
class RowMove:
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
    """A candidate with its part of the row's change: an estimate, and bounds of three pairs.

    ``least`` is its part in the pair in which it takes least.
    """

    candidate: PossibleCause
    estimate: float | None = None
    bounds: ShareOfChange | None = None
    least: float = 0.0

    @property
    def is_measured(self) -> bool:
        """Whether only times show it."""
        return self.candidate.cause.evidence == "measured"

    @property
    def resolved(self) -> ShareOfChange | None:
        """Return the share where its bounds exclude 0."""
        return self.bounds if self.bounds and self.bounds.low * self.bounds.high > 0 else None


def read_move(row: Change, *, is_compiled: bool = False) -> RowMove | None:
    """Read off a row how far it has moved; `None` where causes do not add up to its metric."""
    if is_memory(row):
        move = RowMove(row.head - row.base, is_memory=True, is_compiled=is_compiled)
    elif row.metric in _WHOLE_STEPS and row.ratio is not None and row.ratio != 1:
        half = (row.interval.high - row.interval.low) / 2 if row.interval else 0.0
        move = RowMove(
            row.base * (row.ratio - 1), half / abs(row.ratio - 1), is_compiled=is_compiled
        )
    else:
        return None
    is_usable = math.isfinite(move.delta) and move.delta != 0 and move.error < 1
    return move if is_usable else None


def is_memory(row: Change) -> bool:
    """Whether a row is one of memory."""
    known = metrics.BY_NAME.get(row.metric)
    return known is not None and known.unit is metrics.Unit.BYTE


def contradicts(
    pairs: Iterable[ProfiledPair], candidates: Iterable[PossibleCause], move: RowMove
) -> bool:
    """Whether profiled steps, and all that their causes add up to, go clearly the other way."""
    steps = ((pair.base.step_s, pair.head.step_s) for pair in pairs)
    ratios = [head / base for base, head in steps if base and head]
    step = mean_of_pairs([math.log(ratio) for ratio in ratios if 0 < ratio < math.inf])
    if move.is_memory or step is None:
        return False
    known = [statistics.median(each.seconds) for each in candidates if each.seconds]
    is_opposite = step.is_resolved and step.value * move.delta < 0
    return is_opposite and math.fsum(known) / move.delta < -LEAST_SHARE


def arrange(
    candidates: Iterable[PossibleCause], move: RowMove | None, *, is_gain: bool
) -> tuple[list[Cause], list[Cause]]:
    """Return the causes, the likeliest first, and what has changed besides.

    What takes less than a tenth of the change is no cause. By size; what only times show, which may
    be wrong, must take three times as much as an exact cause to stand above it. What nobody timed
    counts as a tenth. Without a move, all are put in order by their times if all have some, else by
    how many calls they concern, likely ones first.
    """
    placed = sorted((_place(each, move) for each in candidates), key=_rank_by_calls)
    largest = max((each.estimate for each in placed if each.estimate is not None), default=0.0)
    others = [each for each in placed if _is_small(each, largest)]
    causes = [each for each in placed if each not in others]
    if move is not None:
        causes.sort(key=_weigh, reverse=True)
    elif all(each.candidate.seconds for each in causes):
        sign = 1 if is_gain else -1
        causes.sort(key=lambda each: sign * statistics.median(each.candidate.seconds))
    others.sort(key=lambda each: -abs(each.estimate or 0.0))
    return _publish(causes, others, move)


def _weigh(placed: _Placed) -> float:
    """Return the part of the change by which a cause is put in order."""
    if placed.estimate is None:
        return LEAST_SHARE
    return placed.estimate / (_UNSURE if placed.is_measured else 1.0)


def _is_small(placed: _Placed, largest: float) -> bool:
    """Whether it takes less than a tenth; `largest` is the largest estimate of all.

    What takes a tenth in each of three pairs does not, whatever its bounds.
    """
    if placed.estimate is None:
        return False
    if placed.resolved:
        return placed.resolved.share < LEAST_SHARE
    if placed.bounds is not None:
        if placed.least >= LEAST_SHARE:
            return False
        is_surely = placed.bounds.high < LEAST_SHARE
    else:
        is_surely = placed.estimate < LEAST_SHARE / _UNSURE
    return is_surely or placed.estimate < LEAST_SHARE <= largest


def _rank_by_calls(placed: _Placed) -> tuple[bool, bool, float, bool, str, str]:
    candidate = placed.candidate
    is_calls = candidate.cause.kind == "calls"
    name = candidate.place or ("", "")
    return not candidate.is_likely, placed.is_measured, -candidate.size, is_calls, *name


def _place(candidate: PossibleCause, move: RowMove | None) -> _Placed:
    """Return a candidate with its part of the row's change, as far as that is known.

    The bounds are those of 95 %: Student's t over the pairs, and how uncertain the change is.
    """
    if move is None:
        return _Placed(candidate)
    if move.is_memory:
        if candidate.amount is None or abs(share := candidate.amount / move.delta) > _LARGEST:
            return _Placed(candidate)
        return _Placed(candidate, share, ShareOfChange(share=share, low=share, high=share))
    shares = [seconds / move.delta for seconds in candidate.seconds]
    if not shares or max(map(abs, shares)) > _LARGEST:
        return _Placed(candidate)
    estimate, mean = statistics.median(shares), mean_of_pairs(shares)
    if mean is None:
        return _Placed(candidate, estimate)
    half = math.hypot(mean.half, mean.value * move.error)
    low, high = min(mean.value - half, estimate), max(mean.value + half, estimate)
    bounds = ShareOfChange(share=estimate, low=low, high=high)
    return _Placed(candidate, estimate, bounds, min(shares))


def _publish(
    causes: Sequence[_Placed], others: Sequence[_Placed], move: RowMove | None
) -> tuple[list[Cause], list[Cause]]:
    """Return causes and others with their shares, where it is known what causes leave.

    Times of calls are lower quartiles, and leave out what a call costs others (caches, memory). So
    what is unexplained may belong to any of the causes; where they explain too much, each may be
    too large by as much.
    """
    explained = math.fsum(each.resolved.share for each in causes if each.resolved)
    has_shares = move is not None and not move.is_compiled and explained <= _MOST_SHARES
    total = math.fsum(each.estimate for each in causes if each.estimate is not None)
    unexplained, excess = 0.0, 1.0
    if move is not None and not move.is_memory:
        unexplained, excess = max(1 + move.error - total, 0.0), max(total, 1.0)

    def publish(placed: _Placed) -> Cause:
        seconds, share = placed.candidate.seconds, placed.resolved if has_shares else None
        if share and share.share > 0:
            share = ShareOfChange(
                share=share.share,
                low=min(share.low, share.share / excess),
                high=max(share.high, share.share + unexplained),
            )
        delta_s = statistics.median(seconds) if seconds else None
        return msgspec.structs.replace(placed.candidate.cause, delta_s=delta_s, share=share)

    return list(map(publish, causes)), list(map(publish, others))


def shorten(text: str) -> str:
    """Cut a text of measured code."""
    return text[:_MAX_CHARS]


def shorten_name(function: AuthorFunction | None) -> AuthorFunction | None:
    """Cut the names of a function."""
    if function is None:
        return None
    return msgspec.structs.replace(
        function, file=function.file[:_MAX_PATH_CHARS], function=shorten(function.function)
    )
