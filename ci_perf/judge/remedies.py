"""What would decide a confirmation that ended open: more pairs, a quieter machine, a wider limit.

All of it supposes that the change is the one that was seen, and that pairs go on differing as
they did.
"""

import math
from dataclasses import dataclass

from ci_perf.judge import student
from ci_perf.judge.confirm import Confirmation, Outcome
from ci_perf.judge.policy import BETA_CONFIRM, LOOKS, WEIGHTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Logarithms. ``pairs`` is ``None`` where not even the last look would decide."""

    pairs: int | None
    spread: float
    quiet_spread: float
    margin: float


def needs(confirmation: Confirmation, outcome: Outcome) -> Needs | None:
    """Return what would decide; `None` while nothing is known of the spread."""
    spread = confirmation.spread()
    if not math.isfinite(spread):
        return None
    later = (n for n in LOOKS if n > outcome.pairs)
    size = abs(outcome.estimate)
    alarm, calm = _reaches(confirmation, LOOKS[-1])
    policy = confirmation.policy
    return Needs(
        pairs=next((n for n in later if _decides(confirmation, size, spread, n)), None),
        spread=spread,
        quiet_spread=max((size - policy.floor) / alarm, (policy.margin - size) / calm, 0.0),
        margin=size + calm * spread,
    )


def _decides(confirmation: Confirmation, size: float, spread: float, pairs: int) -> bool:
    alarm, calm = _reaches(confirmation, pairs)
    policy = confirmation.policy
    return size - alarm * spread > policy.floor or size + calm * spread < policy.margin


def _reaches(confirmation: Confirmation, pairs: int) -> tuple[float, float]:
    """Return how far the two tests of a look reach, in standard deviations of one pair."""
    weight, df = WEIGHTS[LOOKS.index(pairs)], confirmation.prior_df + pairs - 1
    alarm = student.upper_quantile(confirmation.alpha * weight / 2, df)
    calm = student.upper_quantile(BETA_CONFIRM * weight, df)
    return alarm / math.sqrt(pairs), calm / math.sqrt(pairs)
