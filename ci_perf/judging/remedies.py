"""What would decide a confirmation that ended open: more pairs, less noise, or a wider margin."""

import math
from dataclasses import dataclass

from ci_perf.judging.confirm import Confirmation, Outcome, alarm_reach, sign


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """More pairs, a quieter machine, or a wider margin, each of which alone would decide.

    Logarithms. ``pairs`` is ``None`` where not even the last look would decide.
    """

    pairs: int | None
    spread: float
    quiet_spread: float
    margin: float


def needs(confirmation: Confirmation, outcome: Outcome) -> Needs | None:
    """Return what would decide; `None` while nothing is known of the spread.

    It supposes that the change is the one that was seen, and that pairs go on differing as they
    did.
    """
    spread = confirmation.spread()
    if not math.isfinite(spread):
        return None
    size, policy = abs(outcome.estimate), confirmation.policy
    rounding = confirmation.rounding()
    looks = confirmation.looks
    later = (look for look in sorted(looks.calm) if look > outcome.pairs)
    alarm = _reach_of_alarm(confirmation, outcome, looks.last)
    calm = _reach_of_calm(confirmation, looks.last)
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
    if look in confirmation.looks.alarm:
        below = (
            _reach_of_alarm(confirmation, outcome, look) * confirmation.alarm_spread() + rounding
        )
        if size - below > policy.floor:
            return True
    return (
        size + _reach_of_calm(confirmation, look) * confirmation.spread() + rounding < policy.margin
    )


def _reach_of_alarm(confirmation: Confirmation, outcome: Outcome, look: int) -> float:
    """Return how far the test of an alarm reaches, in standard deviations of one pair."""
    tail = confirmation.alarm_tail(look, sign(outcome.estimate))
    return alarm_reach(tail, look, trim=confirmation.trim)


def _reach_of_calm(confirmation: Confirmation, look: int) -> float:
    """Return the same for the test of "unchanged"."""
    return confirmation.reach(confirmation.calm_tail(look), look)
