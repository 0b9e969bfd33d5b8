"""What would decide a confirmation that ended open: more pairs, a quieter machine, a wider limit.

All of it supposes that the change is the one that was seen, and that pairs go on differing as
they did.
"""

import math
from dataclasses import dataclass

from ci_perf.judge.confirm import Confirmation, Outcome, alarm_reach, calm_tail, sign
from ci_perf.judge.policy import CALM_LOOKS, LOOKS, MOST_PAIRS


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
    size, policy = abs(outcome.estimate), confirmation.policy
    rounding = confirmation.rounding()
    later = (look for look in CALM_LOOKS if look > outcome.pairs)
    alarm, calm = _alarm(confirmation, outcome, MOST_PAIRS), _calm(confirmation, MOST_PAIRS)
    return Needs(
        pairs=next((look for look in later if _decides(confirmation, outcome, look)), None),
        spread=spread,
        quiet_spread=max(
            (size - rounding - policy.floor) / alarm, (policy.margin - size - rounding) / calm, 0.0
        ),
        margin=size + rounding + calm * spread,
    )


def _decides(confirmation: Confirmation, outcome: Outcome, look: int) -> bool:
    size, policy, rounding = abs(outcome.estimate), confirmation.policy, confirmation.rounding()
    if look in LOOKS:
        below = _alarm(confirmation, outcome, look) * confirmation.alarm_spread() + rounding
        if size - below > policy.floor:
            return True
    return size + _calm(confirmation, look) * confirmation.spread() + rounding < policy.margin


def _alarm(confirmation: Confirmation, outcome: Outcome, look: int) -> float:
    """Return how far the test of an alarm reaches, in standard deviations of one pair."""
    tail = confirmation.alarm_tail(look, sign(outcome.estimate))
    return alarm_reach(tail, look)


def _calm(confirmation: Confirmation, look: int) -> float:
    """Return the same for the test of "unchanged"."""
    return confirmation.reach(calm_tail(look), look)
