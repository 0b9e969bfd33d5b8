"""The early look: a loss that each of the first pairs shows, far beyond what launches differ by.

It tests no mean, because three pairs say little of their spread. benchmarks.verdicts.early
simulates how often it blames unchanged code.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ci_perf.judging.metric_values import Sessions
from ci_perf.judging.policy import (
    FEWEST_KNOWN_LAUNCHES,
    FLOAT_ERROR,
    OBVIOUS,
    OBVIOUS_GAPS,
    OBVIOUS_LIMITS,
    OBVIOUS_WITH_COUNTS,
    Policy,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Early:
    """What a loss has to exceed in each of the first pairs; all values are logarithms.

    ``size`` is the smallest such loss, ``gap`` the largest difference between two launches of one
    session of the history. ``head`` are launches of the head before its pairs.
    """

    size: float
    gap: float = 0.0
    head: Sequence[float] = ()

    def find_interval(
        self, bases: Sequence[float], differences: Sequence[float], tick: float = 0.0
    ) -> tuple[float, float] | None:
        """Return the interval of an obvious loss; `None` where a pair does not show it.

        `tick` is what the numbers were rounded to.
        """
        heads = [*self.head, *map(sum, zip(bases, differences, strict=True))]
        gap = max(self.gap, tick, *(max(side) - min(side) for side in (bases, heads)))
        least = min(differences)
        if least + FLOAT_ERROR < max(self.size, OBVIOUS_GAPS * gap):
            return None
        return least - gap, max(differences) + gap


def find_early(
    policy: Policy, *, sessions: Sessions, head: Sequence[float], has_more_counts: bool
) -> Early:
    """Return what the early look asks of a metric with these launches in its history.

    `has_more_counts` says that each pair counts more work in the head. Without launches that would
    show two modes, that is not enough to expect less of the time.
    """
    size = math.log1p(OBVIOUS)
    if has_more_counts and sum(map(len, sessions)) >= FEWEST_KNOWN_LAUNCHES:
        size = math.log1p(max(OBVIOUS_LIMITS * math.expm1(policy.limit), OBVIOUS_WITH_COUNTS))
    gaps = (max(session) - min(session) for session in sessions if session)
    return Early(size=size, gap=max(gaps, default=0.0), head=head)
