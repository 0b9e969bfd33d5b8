"""Whether the baseline has been left behind: too many suspects were cleared, of one direction."""

import math
import statistics
from collections.abc import Sequence

from ci_perf.judge import stages
from ci_perf.judge.answers import Answer
from ci_perf.model.comparison import Stale

# One cleared suspect of several is a coincidence; more than a third of them, all moved in one
# direction, is a baseline that no longer describes this machine.
_FEWEST_CLEARED = 2
_SHARE_OF_SUSPECTS = 1 / 3


def find(answers: Sequence[Answer]) -> Stale | None:
    """Say when so many suspects were cleared that the baseline should be refreshed."""
    suspects = [one.change for one in answers if one.is_suspect and one.change and one.change.gate]
    drifts = [
        math.log(change.drift)
        for change in suspects
        if change.code == stages.NOT_CONFIRMED and change.drift
    ]
    worse = [drift for drift in drifts if drift > 0]
    better = [drift for drift in drifts if drift < 0]
    moved = max(worse, better, key=len)
    is_coincidence = len(moved) < min(_FEWEST_CLEARED, len(suspects))
    if not moved or is_coincidence or len(moved) <= _SHARE_OF_SUSPECTS * len(suspects):
        return None
    return Stale(
        suspects=len(suspects), cleared=len(moved), ratio=math.exp(statistics.median(moved))
    )
