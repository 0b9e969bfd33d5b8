"""What may have moved a row: a cause before it has its place among the others."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from ci_perf.judging import distributions
from ci_perf.judging.causes.launches import Place
from ci_perf.model.explanation import Cause, CauseKind
from ci_perf.model.step_profile import AuthorFunction

# Texts of measured code: longer ones are cut, for fifteen causes must stay small.
_MAX_CHARS: Final = 200
_MAX_PATH_CHARS: Final = 1_000
# Fewer pairs say nothing of how far they lie apart.
FEWEST_PAIRS: Final = 3
_TAIL: Final = 0.025

# What costs time or memory, and what saves it: work that is added, or done on other shapes.
SLOWS: frozenset[CauseKind] = frozenset(
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
SPEEDS: frozenset[CauseKind] = frozenset({"gone", "fewer", "other_shape", "faster", "holds_less"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PossibleCause:
    """A cause, and what orders it.

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

    @property
    def is_exact(self) -> bool:
        """Whether counts show it."""
        return self.cause.evidence == "exact"


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over pairs, with the bounds of 95 % by Student's t."""

    value: float
    half: float

    @property
    def is_resolved(self) -> bool:
        """Whether the bounds exclude 0."""
        return abs(self.value) > self.half


def mean_of(values: Sequence[float]) -> Mean | None:
    """Return the mean of a number by pair; `None` of fewer than three pairs."""
    if len(values) < FEWEST_PAIRS or not all(map(math.isfinite, values)):
        return None
    error = statistics.stdev(values) / math.sqrt(len(values))
    quantile = distributions.student_quantile(_TAIL, len(values) - 1)
    return Mean(statistics.fmean(values), quantile * error)


def have_one_sign(values: Sequence[float]) -> bool:
    """Whether all pairs agree on a direction."""
    return all(value > 0 for value in values) or all(value < 0 for value in values)


def short(text: str) -> str:
    """Cut a text of measured code."""
    return text[:_MAX_CHARS]


def shortened(function: AuthorFunction | None) -> AuthorFunction | None:
    """Cut the names of a function."""
    if function is None:
        return None
    return msgspec.structs.replace(
        function, file=function.file[:_MAX_PATH_CHARS], function=short(function.function)
    )
