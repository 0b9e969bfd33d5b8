"""What is decided of a noisy metric, and what would decide it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ci_perf.judging.confirm import Confirmation, Outcome, alarm_reach, sign
from ci_perf.judging.metric_values import Sessions
from ci_perf.model.comparison import Code, Verdict

Pairs = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """More pairs, a quieter machine, or a larger limit, each of which alone would decide.

    Logarithms. ``pairs`` is ``None`` where not even the last look would decide.
    """

    pairs: int | None
    spread: float
    quiet_spread: float
    limit: float


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
            (size - rounding - policy.half_limit) / alarm,
            (policy.limit - size - rounding) / calm,
            0.0,
        ),
        limit=size + rounding + calm * spread,
    )


def _decides(confirmation: Confirmation, outcome: Outcome, look: int) -> bool:
    size, policy, rounding = abs(outcome.estimate), confirmation.policy, confirmation.rounding()
    if look in confirmation.looks.alarm:
        below = (
            _reach_of_alarm(confirmation, outcome, look) * confirmation.alarm_spread() + rounding
        )
        if policy.is_beyond_half(size - below):
            return True
    return policy.is_below_limit(
        size + _reach_of_calm(confirmation, look) * confirmation.spread() + rounding
    )


def _reach_of_alarm(confirmation: Confirmation, outcome: Outcome, look: int) -> float:
    """Return how far the test of an alarm reaches, in standard deviations of one pair."""
    tail = confirmation.alarm_tail(look, sign(outcome.estimate))
    return alarm_reach(tail, look, trim=confirmation.trim)


def _reach_of_calm(confirmation: Confirmation, look: int) -> float:
    """Return the same for the test of "unchanged"."""
    return confirmation.reach(confirmation.calm_tail(look), look)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is said of a noisy metric; sizes are logarithms, above zero the head is worse.

    ``base`` and ``head`` are the launches that decided: committed sessions and the head's own, or
    the two sides of ``pairs`` pairs. ``level`` is the base that ``estimate`` is the distance from.
    ``drift`` is how far the head's own launches lie from the history, ``None`` without one.
    ``is_open``: one more pair may still decide, and ``expected_pairs`` more are expected to.
    """

    verdict: Verdict
    code: Code
    base: Sessions
    head: Sequence[float]
    level: float
    estimate: float
    interval: tuple[float, float] | None
    smallest_detectable: float | None
    pairs: int = 0
    drift: float | None = None
    tick: float = 0.0
    needs: Needs | None = None
    is_suspect: bool
    is_open: bool = False
    expected_pairs: float = 0.0
