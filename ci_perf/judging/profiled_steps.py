"""Explain profiled pairs for somebody who asks: by how far their own steps differ, with no verdict.

Steps that nothing watches are timed in each launch that profiles. They are few, and so say less
than the pairs of a check; where they resolve a change, causes have shares of it.
"""

import math
import statistics
from collections.abc import Iterable

import msgspec

from ci_perf.judging import causes
from ci_perf.judging.causes.possible import mean_of
from ci_perf.model import metrics
from ci_perf.model.comparison import Change, Code, Interval, Verdict
from ci_perf.model.explained import StepChange
from ci_perf.model.explanation import MOST_CAUSES, MOST_OTHERS, Cause, Explanation
from ci_perf.model.step_profile import ProfiledPair, ProfiledPairs

_SHORTEST_S = 1e-12
# The logarithm of the largest ratio that is shown: a profile that lies may have any step.
_LARGEST = 20.0


def step_change(pairs: Iterable[ProfiledPair]) -> StepChange | None:
    """Return how the steps of both sides compare; `None` of fewer than three pairs that timed them.

    The ratio is the geometric mean over the pairs, its bounds are those of 95 % by Student's t.
    """
    timed = [
        (pair.base.step_s, pair.head.step_s)
        for pair in pairs
        if (pair.base.step_s or 0) > _SHORTEST_S and (pair.head.step_s or 0) > _SHORTEST_S
    ]
    known = [(base, head) for base, head in timed if base is not None and head is not None]
    mean = mean_of([math.log(head / base) for base, head in known])
    if mean is None or abs(mean.value) > _LARGEST:
        return None
    low, high = mean.value - mean.half, mean.value + mean.half
    return StepChange(
        base_s=statistics.median(base for base, _ in known),
        head_s=statistics.median(head for _, head in known),
        ratio=math.exp(mean.value),
        interval=Interval(low=math.exp(max(low, -_LARGEST)), high=math.exp(min(high, _LARGEST))),
        pairs=len(known),
    )


def explain(profiled: ProfiledPairs, change: StepChange | None) -> Explanation:
    """Return the causes, with shares of the change of the steps where that is resolved."""
    is_gain = change is not None and change.is_resolved and change.ratio < 1
    without_shares = causes.explain(profiled, is_gain=is_gain)
    if change is None or not change.is_resolved or without_shares.trouble:
        return without_shares
    of_time = causes.explain(profiled, is_gain=is_gain, row=_row(profiled.workload, change))
    if of_time.trouble or not of_time.causes:  # who asks what differs wants to see it all the same
        return without_shares
    return _with_memory(of_time, without_shares)


def _with_memory(of_time: Explanation, whole: Explanation) -> Explanation:
    """Add the causes of memory, which a row of time leaves out."""
    named = [*filter(_is_of_time, of_time.causes), *filter(_is_of_memory, whole.causes)]
    others = [*filter(_is_of_time, of_time.others), *filter(_is_of_memory, whole.others)]
    others = [*named[MOST_CAUSES:], *others]
    return msgspec.structs.replace(
        of_time,
        causes=tuple(named[:MOST_CAUSES]),
        others=tuple(others[:MOST_OTHERS]),
        further=of_time.further + max(0, len(others) - MOST_OTHERS),
    )


def _is_of_memory(cause: Cause) -> bool:
    return cause.bytes_base is not None


def _is_of_time(cause: Cause) -> bool:
    return not _is_of_memory(cause)


def _row(workload: str, change: StepChange) -> Change:
    """Return the change as the row of a step's time would have it; nobody sees its verdict."""
    return Change(
        workload=workload,
        metric=metrics.STEP_TIME.name,
        base=change.base_s,
        head=change.head_s,
        base_processes=change.pairs,
        head_processes=change.pairs,
        base_sessions=0,
        items_per_step=1.0,
        item_unit="step",
        ratio=change.ratio,
        interval=change.interval,
        limit=0.0,
        smallest_detectable=None,
        gate=False,
        verdict=Verdict.REGRESSED if change.ratio > 1 else Verdict.IMPROVED,
        code=Code.BEYOND_LIMIT,
    )
