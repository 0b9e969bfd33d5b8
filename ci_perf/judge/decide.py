"""Noisy metrics decided: all screened against their history, suspects confirmed by their pairs.

The pairs of a suspect are read in their order and no further than the decision, so that asking
again with more of them never changes an answer.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ci_perf.judge import comparability, confirm, variability
from ci_perf.judge.confirm import Confirmation, Needs, Outcome, share_alpha, sign
from ci_perf.judge.metric_values import History, Sessions
from ci_perf.judge.policy import PREDICTING_SESSIONS, Policy, PolicyKind, policy_of
from ci_perf.judge.screen import Screened, predict, screen, smallest_detectable
from ci_perf.model.comparison import Verdict

# Reason codes of screen and confirmation; docs/judging.md explains them.
SCREENED, CONFIRMED, NOT_CONFIRMED = "screened", "confirmed", "not_confirmed"
MOVER_UNKNOWN = "mover_unknown"
PREDICTED, ASSUMED = "predicted", "assumed"
TOO_FEW_SESSIONS, TOO_FEW_PAIRS = "too_few_sessions", "too_few_pairs"
TWO_MODES, CANARY_MOVED, CLOCKS_MOVED = "two_modes", "canary_moved", "clocks_moved"
ROUNDED, SPREAD = "rounded", "spread"
CODES = (
    *(SCREENED, CONFIRMED, NOT_CONFIRMED, MOVER_UNKNOWN, PREDICTED, ASSUMED),
    *(TOO_FEW_SESSIONS, TOO_FEW_PAIRS),
    *(TWO_MODES, CANARY_MOVED, CLOCKS_MOVED, ROUNDED, SPREAD),
)

Pairs = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMetric:
    """One noisy metric: logarithms, one per launch, of a quantity of which less is better.

    ``policy`` holds its own floor and margin. ``history`` is ``None`` where there is none that
    compares; ``clears`` says whether it may clear the head (not when the machine has moved).
    ``cycles`` are the pairs in clock cycles, where these are known. ``tick`` is what all numbers
    were rounded to, relative to them.
    """

    kind: PolicyKind
    policy: Policy
    history: History | None
    head: Sequence[float]
    pairs: Pairs = ()
    cycles: Pairs = ()
    gate: bool = True
    clears: bool = True
    tick: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is said of a candidate; sizes are logarithms, above zero the head is worse.

    ``base`` and ``head`` are the launches that decided: committed sessions and the head's own, or
    the two sides of ``pairs`` pairs. ``level`` is the base that ``estimate`` is the distance from.
    ``drift`` is how far the head's own launches lie from the history, ``None`` without one.
    ``is_open``: one more pair may still decide.
    """

    verdict: Verdict
    code: str
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


@dataclass(frozen=True, slots=True)
class _Shares:
    """What each may spend of alpha: a suspect in its pairs, any candidate in a prediction."""

    confirm: float
    predict: float


def decide(candidates: Sequence[NoisyMetric], *, suspects: int = 0) -> list[Decision]:
    """Decide candidates of any kind together, in their order; each has a history or pairs.

    Those that gate share alpha among themselves, the others among themselves. ``suspects`` is how
    many of the gating ones there were when pairs began to be launched: never fewer share alpha.
    """
    screened = _screened(candidates)
    shares = {
        gate: _shares(
            [found for found in zip(candidates, screened, strict=True) if found[0].gate is gate],
            suspects if gate else 0,
        )
        for gate in (True, False)
    }
    return [
        _decision(one, found, shares[one.gate])
        for one, found in zip(candidates, screened, strict=True)
    ]


def count_suspects(candidates: Sequence[NoisyMetric]) -> int:
    """Count those that gate and that their history does not clear."""
    found = zip(candidates, _screened(candidates), strict=True)
    return sum(one.gate and _is_suspect(one, screened) for one, screened in found)


def _screened(candidates: Sequence[NoisyMetric]) -> list[Screened | None]:
    """Screen all candidates of one kind together: they share what they know of the noise."""
    found: list[Screened | None] = [None] * len(candidates)
    for kind in PolicyKind:
        items = {
            i: (one.history, one.head)
            for i, one in enumerate(candidates)
            if one.kind is kind and one.history is not None and one.head
        }
        results = screen(list(items.values()), policy_of(kind)) if items else []
        for i, result in zip(items, results, strict=True):
            found[i] = _rounded(result, candidates[i]) if candidates[i].tick else result
    return found


def _rounded(found: Screened, one: NoisyMetric) -> Screened:
    """Return what was screened, no surer than rounded numbers allow: each has a uniform error."""
    error = math.hypot(found.error, one.tick / math.sqrt(6))
    reach = (found.high - found.difference) * (error / found.error)
    low, high = found.difference - reach, found.difference + reach
    is_suspect = found.is_suspect or max(high, -low) >= one.policy.margin
    return replace(found, low=low, high=high, error=error, is_suspect=is_suspect)


def _shares(found: Sequence[tuple[NoisyMetric, Screened | None]], suspects: int) -> _Shares:
    # What never had a pair raises no alarm and needs no share, whatever clears it by now.
    counted = sum(bool(one.pairs) and _is_suspect(one, screened) for one, screened in found)
    tested = sum(screened is not None for _, screened in found)
    return _Shares(
        # A run says how many there were; there cannot have been more than there are numbers.
        confirm=share_alpha(max(counted, min(suspects, len(found)), 1)),
        predict=share_alpha(max(tested, 1)),
    )


def _is_suspect(one: NoisyMetric, found: Screened | None) -> bool:
    """Whether history does not clear it: what was never screened is a suspect, too."""
    return found is None or not one.clears or not found.clears(one.policy.margin)


def _decision(one: NoisyMetric, found: Screened | None, shares: _Shares) -> Decision:
    if one.pairs and _is_suspect(one, found):
        return _confirmed(one, found, shares.confirm)
    if found is not None:
        return _from_history(one, found, shares.predict)
    return _unknown(one)


def _from_history(one: NoisyMetric, found: Screened, alpha: float) -> Decision:
    """Say what the committed sessions allow: no change, a prediction, or nothing."""
    assert one.history is not None
    verdict, code = _predicted(one, found, alpha)
    is_suspect = _is_suspect(one, found)
    return Decision(
        verdict=verdict,
        code=code,
        base=one.history.current,
        head=one.head,
        level=centre(one.history.current),
        estimate=found.difference,
        interval=(found.low, found.high),
        smallest_detectable=smallest_detectable(found, one.policy, alpha),
        drift=found.difference,
        tick=one.tick,
        is_suspect=is_suspect,
        is_open=is_suspect,
    )


def _predicted(one: NoisyMetric, found: Screened, alpha: float) -> tuple[Verdict, str]:
    if not one.clears:
        return Verdict.INCONCLUSIVE, CANARY_MOVED
    is_short = found.sessions < PREDICTING_SESSIONS
    match predict(found, one.policy, alpha):
        case "unchanged":
            return Verdict.UNCHANGED, SCREENED
        case "unconfirmed":
            return Verdict.UNCONFIRMED, ASSUMED if is_short else PREDICTED
        case "inconclusive":
            return Verdict.INCONCLUSIVE, TOO_FEW_SESSIONS if is_short else _undecided(one)


def _unknown(one: NoisyMetric) -> Decision:
    """Say that there is nothing to compare with yet: no history that compares, and no pair."""
    return Decision(
        verdict=Verdict.INCONCLUSIVE,
        code=TOO_FEW_PAIRS,
        base=[],
        head=one.head,
        level=0.0,
        estimate=0.0,
        interval=None,
        smallest_detectable=None,
        is_suspect=True,
        is_open=True,
    )


def _confirmed(one: NoisyMetric, found: Screened | None, alpha: float) -> Decision:
    """Let the pairs decide, in their order; those after the decision are left alone."""
    confirmation = _confirmation(one, found, alpha)
    outcome = _read(confirmation, one.pairs)
    is_open = outcome is None
    outcome = outcome or confirmation.finish()
    verdict, code = Verdict(outcome.call), _code(one, outcome, found, alpha)
    if outcome.call in {"regressed", "improved"} and _is_by_clocks(one, found, alpha, outcome):
        verdict, code = Verdict.INCONCLUSIVE, CLOCKS_MOVED
    used = one.pairs[: outcome.pairs]
    return Decision(
        verdict=verdict,
        code=code,
        base=[[base for base, _ in used]],
        head=[head for _, head in used],
        level=_level(outcome, [base for base, _ in used]),
        estimate=outcome.estimate,
        interval=_finite(outcome.low, outcome.high),
        smallest_detectable=_known(confirmation.smallest_detectable()),
        pairs=outcome.pairs,
        drift=found.difference if found else None,
        tick=one.tick,
        needs=confirm.needs(confirmation, outcome) if code in {SPREAD, TOO_FEW_PAIRS} else None,
        is_suspect=True,
        is_open=is_open,
    )


def _confirmation(one: NoisyMetric, found: Screened | None, alpha: float) -> Confirmation:
    return Confirmation(
        policy=one.policy,
        alpha=alpha,
        prior_variance=found.prior_variance if found else 0.0,
        prior_df=found.prior_df if found else 0.0,
        suspected=sign(found.difference) if found else 0,
        usual_variance=_usual_variance(one) if found else 0.0,
        tick=one.tick,
    )


def _usual_variance(one: NoisyMetric) -> float:
    known = (one.history.current, *one.history.earlier) if one.history else ()
    return variability.usual_variance([*itertools.chain(*known), one.head])


def _read(confirmation: Confirmation, pairs: Pairs) -> Outcome | None:
    """Read pairs until one decides."""
    for base, head in pairs:
        outcome = confirmation.add(head - base, base=base)
        if outcome is not None:
            return outcome
    return None


def _is_by_clocks(one: NoisyMetric, found: Screened | None, alpha: float, outcome: Outcome) -> bool:
    """Whether the sides ran at other clocks, and in cycles the change does not show."""
    cycles = one.cycles[: outcome.pairs]
    if not comparability.clocks_differ(one.pairs[: outcome.pairs], cycles):
        return False
    confirmation = _confirmation(one, found, alpha)
    in_cycles = _read(confirmation, cycles) or confirmation.finish()
    return in_cycles.call != outcome.call


def _level(outcome: Outcome, bases: Sequence[float]) -> float:
    """Return the middle of the bases, by the same measure as that of the differences."""
    if not bases:
        return 0.0
    return statistics.median(bases) if outcome.by_median else statistics.fmean(bases)


def _is_by_ticks(one: NoisyMetric, found: Screened | None, alpha: float) -> bool:
    """Whether the same numbers, were they exact, would have decided."""
    if not one.tick:
        return False
    exact = _confirmation(replace(one, tick=0.0), found, alpha)
    return _read(exact, one.pairs) is not None and exact.finish().call != "inconclusive"


def _code(one: NoisyMetric, outcome: Outcome, found: Screened | None, alpha: float) -> str:
    """Say what ended it. Many a suspect has not moved at all: its history was only too short."""
    if outcome.call == "inconclusive":
        if not (math.isfinite(outcome.low) and math.isfinite(outcome.high)):
            return TOO_FEW_PAIRS
        return ROUNDED if _is_by_ticks(one, found, alpha) else _undecided(one)
    floor = one.policy.floor
    if outcome.call != "unchanged" or found is None or abs(found.difference) <= floor:
        return CONFIRMED
    # As far as the pairs know, this change may be a part of the move, and more than its limit.
    largest = outcome.high if found.difference > 0 else -outcome.low
    return NOT_CONFIRMED if largest <= floor else MOVER_UNKNOWN


def _undecided(one: NoisyMetric) -> str:
    """Say what kept the answer away: launches of one session that have two speeds, or a spread."""
    sides = [list(side) for side in zip(*one.pairs, strict=True)]
    known = one.history.current if one.history else []
    sessions = [session for session in (*known, one.head, *sides) if session]
    return (
        TWO_MODES if variability.have_two_modes(sessions, smallest_gap=one.policy.floor) else SPREAD
    )


def _finite(low: float, high: float) -> tuple[float, float] | None:
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def _known(size: float) -> float | None:
    return size if math.isfinite(size) else None


def centre(sessions: Sessions) -> float:
    """Return the mean over the sessions of the mean of each."""
    return statistics.fmean(statistics.fmean(session) for session in sessions)
