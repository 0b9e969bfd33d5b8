"""Decide noisy metrics: screen all against their history, confirm suspects by their pairs.

The pairs of a suspect are read in their order and no further than the decision, so that asking
again with more of them never changes an answer.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from ci_perf.judging import distributions, variability
from ci_perf.judging.candidates import Costs, Fact, Judgement
from ci_perf.judging.confirm import Confirmation, Outcome, alarm_reach, share_alpha, sign
from ci_perf.judging.early import find_early
from ci_perf.judging.metric_values import History, Pairs, Sessions
from ci_perf.judging.policy import (
    LOOKS,
    PAIRS_WITHOUT_HISTORY,
    PREDICTING_SESSIONS,
    PolicyKind,
)
from ci_perf.judging.screen import Screened, estimate_pairs, predict, screen, smallest_detectable
from ci_perf.judging.variability import Day
from ci_perf.model.comparison import Change, Code, Interval, Remedy, Verdict

# Reason codes after which a row says what would decide it.
_MAY_BE_DECIDED = frozenset({Code.SPREAD, Code.TOO_FEW_PAIRS, Code.WORSE_BY_HISTORY})
# Kinds of which no launch is twice as large by chance.
_OBVIOUS_KINDS = frozenset({PolicyKind.TIME, PolicyKind.HOST_MEMORY})


@dataclass(frozen=True, slots=True)
class _Shares:
    """What each may spend of alpha: a suspect in its pairs, any metric in a prediction."""

    confirm: float
    predict: float


def decide(
    metrics: Sequence[Costs],
    *,
    suspects: int = 0,
    check: int | None = None,
    sharing: int = 0,
) -> list[Judgement]:
    """Decide metrics of any kind, as costs, together and in their order.

    Those that gate share alpha among themselves, the others among themselves. ``suspects`` is how
    many of the gating ones there were when pairs began to be launched: never fewer share alpha.
    ``check`` is the number of this check among those of its pull request, if it is known. At least
    ``sharing`` of the gating ones share alpha, also where the others are not here.
    """
    screened = _screen_by_kind(metrics)
    shares = {
        gate: _shares(
            [pair for pair in zip(metrics, screened, strict=True) if pair[0].of.limit.gate is gate],
            suspects if gate else 0,
            sharing if gate else 0,
            check,
        )
        for gate in (True, False)
    }
    days = _days(metrics, screened)
    return [
        _judge(metric, result, shares[metric.of.limit.gate], days[metric.kind])
        for metric, result in zip(metrics, screened, strict=True)
    ]


def count_suspects(metrics: Sequence[Costs]) -> int:
    """Count those that gate and that their history does not clear."""
    pairs = zip(metrics, _screen_by_kind(metrics), strict=True)
    return sum(metric.of.limit.gate and _is_suspect(metric, screened) for metric, screened in pairs)


def _screen_by_kind(metrics: Sequence[Costs]) -> list[Screened | None]:
    """Screen all metrics of one kind together: they share what they know of the noise.

    Sessions of one node, and sessions that differ by their nodes, have another noise.
    """
    results: list[Screened | None] = [None] * len(metrics)
    kinds: dict[tuple[PolicyKind, bool], dict[int, tuple[History, Sequence[float]]]] = {}
    for i, metric in enumerate(metrics):
        if metric.history is not None and metric.head:
            of_kind = kinds.setdefault((metric.kind, Fact.OTHER_NODE in metric.of.facts), {})
            of_kind[i] = metric.history, metric.head
    for items in kinds.values():
        screened = screen(list(items.values()), min(metrics[i].policy for i in items))
        for i, result in zip(items, screened, strict=True):
            results[i] = (
                _widen_by_rounding(result, metrics[i].of.tick) if metrics[i].of.tick else result
            )
    return results


def _widen_by_rounding(screened: Screened, tick: float) -> Screened:
    """Widen the interval of a screened metric by the uniform error of rounded numbers."""
    error = math.hypot(screened.error, tick / math.sqrt(6))
    reach = (screened.high - screened.difference) * (error / screened.error)
    low, high = screened.difference - reach, screened.difference + reach
    return msgspec.structs.replace(screened, low=low, high=high, error=error)


def _shares(
    screened_metrics: Sequence[tuple[Costs, Screened | None]],
    suspects: int,
    sharing: int,
    check: int | None,
) -> _Shares:
    # What never had a pair raises no alarm and needs no share, whatever clears it by now.
    counted = sum(
        bool(metric.pairs) and _is_suspect(metric, screened)
        for metric, screened in screened_metrics
    )
    tested = sum(screened is not None for _, screened in screened_metrics)
    return _Shares(
        # A run says how many there were; there cannot have been more than there are numbers.
        confirm=share_alpha(
            max(counted, min(suspects, len(screened_metrics)), sharing, 1), check=check
        ),
        predict=share_alpha(max(tested, 1)),
    )


def _days(metrics: Sequence[Costs], screened: Sequence[Screened | None]) -> dict[PolicyKind, Day]:
    """Return what the pairs of all metrics of a kind say of today."""
    suspects: dict[PolicyKind, list[tuple[float, list[float]]]] = {kind: [] for kind in PolicyKind}
    for metric, result in zip(metrics, screened, strict=True):
        if result is not None and metric.pairs:
            differences = [head - base for base, head in metric.pairs]
            suspects[metric.kind].append((2 * result.prior_variance, differences))
    return {kind: variability.day(of_kind) for kind, of_kind in suspects.items()}


def _is_suspect(metric: Costs, screened: Screened | None) -> bool:
    """Whether no history clears the metric; without a screen it is a suspect, too.

    No history clears what an earlier run of the same commits had to confirm.
    """
    is_uncleared = metric.of.obstacle is not None or metric.of.said is not None
    return screened is None or is_uncleared or not _clears(screened, metric)


def _clears(screened: Screened, metric: Costs) -> bool:
    """Whether the history says "unchanged", and excludes a loss of half the limit by more work."""
    may_be_loss = Fact.DOES_MORE in metric.of.facts and metric.policy.is_beyond_half(screened.high)
    return screened.clears(metric.policy) and not may_be_loss


def _judge(metric: Costs, screened: Screened | None, shares: _Shares, day: Day) -> Judgement:
    if metric.pairs and _is_suspect(metric, screened):
        return _confirm_by_pairs(metric, screened, shares.confirm, day)
    if screened is not None:
        return _judge_by_history(metric, screened, shares.predict)
    return Judgement(
        candidate=metric.of,
        change=None,
        is_open=metric.of.may_get_pairs,
        expected_pairs=float(PAIRS_WITHOUT_HISTORY),
    )


def _judge_by_history(metric: Costs, screened: Screened, alpha: float) -> Judgement:
    """Say what the committed sessions allow: no change, a prediction, or nothing."""
    assert metric.history is not None
    verdict, code = _predict_by_history(metric, screened, alpha)
    change = _make_change(
        metric,
        verdict,
        code,
        base=metric.history.current,
        head=metric.head,
        level=statistics.fmean(map(statistics.fmean, metric.history.current)),
        estimate=screened.difference,
        interval=(screened.low, screened.high),
        detectable=smallest_detectable(screened, metric.policy, alpha),
        drift=screened.difference,
    )
    is_open = metric.of.may_get_pairs and _is_suspect(metric, screened)
    # An estimate takes as long as the rest of a judgement.
    calm = (
        estimate_pairs(metric.policy, 2 * screened.prior_variance, screened.prior_df)
        if is_open
        else 0.0
    )
    return Judgement(
        candidate=metric.of,
        change=change,
        is_open=is_open,
        expected_pairs=max(calm, LOOKS[0]) if code is Code.HISTORY_ALONE else calm,
    )


def _make_change(
    metric: Costs,
    verdict: Verdict,
    code: Code,
    *,
    base: Sessions,
    head: Sequence[float],
    level: float,
    estimate: float,
    interval: tuple[float, float],
    detectable: float,
    drift: float | None,
    pairs: int = 0,
    remedy: Remedy | None = None,
) -> Change:
    """Turn costs, which are logarithms, into the row of a comparison.

    ``base`` and ``head`` are the launches that decided: committed sessions and the head's own, or
    the two sides of ``pairs`` pairs. ``level`` is the base that ``estimate`` is the distance from.
    """
    exponential = distributions.exponential
    low, high = interval
    is_bounded = math.isfinite(low) and math.isfinite(high)
    return Change(
        workload=metric.of.workload,
        metric=metric.of.metric.name,
        base=metric.of.shown(level),
        head=metric.of.shown(level + estimate),
        base_processes=sum(map(len, base)),
        head_processes=len(head),
        base_sessions=0 if pairs else len(base),
        items_per_step=metric.of.items_per_step,
        item_unit=metric.of.item_unit,
        ratio=exponential(estimate),
        interval=Interval(low=exponential(low), high=exponential(high)) if is_bounded else None,
        limit=math.expm1(metric.policy.limit),
        smallest_detectable=exponential(detectable) - 1 if math.isfinite(detectable) else None,
        gate=metric.of.limit.gate,
        require=metric.of.limit.require,
        verdict=verdict,
        code=code,
        pairs=pairs,
        earlier_pairs=min(pairs, sum(metric.of.earlier)),
        drift=None if drift is None else exponential(drift),
        tick=float(f"{math.expm1(metric.of.tick):.6g}") if metric.of.tick else None,
        remedy=remedy,
    )


def _predict_by_history(metric: Costs, screened: Screened, alpha: float) -> tuple[Verdict, Code]:
    """Return what the history says; of a gain that is likely, nobody has to be told."""
    if metric.of.obstacle is not None:
        return Verdict.INCONCLUSIVE, metric.of.obstacle
    match predict(screened, metric.policy, alpha):
        case "unchanged" if not _clears(screened, metric):  # it does more work
            return Verdict.INCONCLUSIVE, Code.SPREAD
        case "unchanged":
            return Verdict.UNCHANGED, Code.WITHIN_LIMIT
        case "unconfirmed":
            is_loss = screened.difference > 0
            return Verdict.LIKELY_SLOWER if is_loss else Verdict.INCONCLUSIVE, Code.HISTORY_ALONE
        case "inconclusive":
            is_short = screened.sessions < PREDICTING_SESSIONS
            code = Code.TOO_FEW_SESSIONS if is_short else _explain_undecided(metric)
            return _judge_unproven(metric, screened.low), code


def _judge_unproven(metric: Costs, low: float) -> Verdict:
    """Return what is said without a proof: a loss as sure as "unchanged" has to be is likely."""
    is_likely = math.isfinite(low) and metric.policy.is_beyond_half(low)
    return Verdict.LIKELY_SLOWER if is_likely else Verdict.INCONCLUSIVE


def _confirm_by_pairs(
    metric: Costs, screened: Screened | None, alpha: float, day: Day
) -> Judgement:
    """Let the pairs decide, in their order; those after the decision are left alone."""
    confirmation = _confirmation(metric, screened, alpha, day)
    if metric.of.said is Verdict.UNCHANGED:
        _read(confirmation, metric.pairs[: sum(metric.of.earlier)])
        outcome: Outcome | None = confirmation.settled()
    else:
        outcome = _read(confirmation, metric.pairs)
    is_open = outcome is None
    outcome = outcome or confirmation.finish()
    verdict, code = Verdict(outcome.call), _code(metric, outcome, screened, confirmation)
    if verdict is Verdict.INCONCLUSIVE:
        verdict = _judge_unproven(metric, outcome.low)
    used = metric.pairs[: outcome.pairs]
    bases = [base for base, _ in used]
    average = statistics.median if outcome.by_median else statistics.fmean
    remedy = _find_remedy(confirmation, outcome)
    change = _make_change(
        metric,
        verdict,
        code,
        base=[bases],
        head=[head for _, head in used],
        level=average(bases) if bases else 0.0,
        estimate=outcome.estimate,
        interval=(outcome.low, outcome.high),
        detectable=confirmation.smallest_detectable(),
        pairs=outcome.pairs,
        drift=screened.difference if screened else None,
        remedy=remedy if code in _MAY_BE_DECIDED else None,
    )
    # If the change is the one that was seen so far.
    last = remedy.pairs if remedy and remedy.pairs else confirmation.looks.last
    return Judgement(
        candidate=metric.of,
        change=change,
        is_open=is_open and metric.of.may_get_pairs,
        expected_pairs=float(last - outcome.pairs),
    )


def _find_remedy(confirmation: Confirmation, outcome: Outcome) -> Remedy | None:
    """Return what would decide; `None` while nothing is known of the spread.

    It supposes that the change is the one that was seen, and that pairs go on differing as they
    did.
    """
    spread = confirmation.spread()
    if not math.isfinite(spread):
        return None
    size, policy = abs(outcome.estimate), confirmation.policy
    rounding, last = confirmation.rounding(), confirmation.looks.last

    def reach_of_alarm(look: int) -> float:
        tail = confirmation.alarm_tail(look, sign(outcome.estimate))
        return alarm_reach(tail, look, trim=confirmation.trim)

    def reach_of_calm(look: int) -> float:
        return confirmation.reach(confirmation.calm_tail(look), look)

    def decides(look: int) -> bool:
        if look in confirmation.looks.alarm:
            below = reach_of_alarm(look) * confirmation.alarm_spread() + rounding
            if policy.is_beyond_half(size - below):
                return True
        return policy.is_below_limit(size + reach_of_calm(look) * spread + rounding)

    quiet_spread = max(
        (size - rounding - policy.half_limit) / reach_of_alarm(last),
        (policy.limit - size - rounding) / reach_of_calm(last),
        0.0,
    )
    limit = size + rounding + reach_of_calm(last) * spread
    later = (look for look in sorted(confirmation.looks.calm) if look > outcome.pairs)
    return Remedy(
        pairs=next(filter(decides, later), None),
        spread=distributions.exponential(spread) - 1,
        quiet_spread=distributions.exponential(quiet_spread) - 1,
        limit=distributions.exponential(limit) - 1,
    )


def _confirmation(metric: Costs, screened: Screened | None, alpha: float, day: Day) -> Confirmation:
    history = metric.history
    epochs = (history.current, *history.earlier) if history else ()
    sessions = list(itertools.chain(*epochs))
    return Confirmation(
        policy=metric.policy,
        alpha=alpha,
        prior_variance=screened.prior_variance if screened else 0.0,
        prior_df=screened.prior_df if screened else 0.0,
        suspected=sign(screened.difference) if screened else 0,
        usual_variance=variability.usual_variance([*sessions, metric.head]) if screened else 0.0,
        tick=metric.of.tick,
        trimmed=Fact.TRIMMED in metric.of.facts,
        earlier=metric.of.earlier,
        day=day,
        one_mode=variability.exclude_two_modes(sessions, smallest_gap=metric.policy.half_limit),
        early=find_early(
            metric.policy,
            sessions=() if metric.of.obstacle else sessions,
            head=metric.head,
            has_more_counts=Fact.COUNTS_MORE in metric.of.facts,
        )
        if metric.kind in _OBVIOUS_KINDS
        else None,
    )


def _read(confirmation: Confirmation, pairs: Pairs) -> Outcome | None:
    """Read pairs until one decides."""
    for base, head in pairs:
        outcome = confirmation.add(head - base, base=base)
        if outcome is not None:
            return outcome
    return None


def _code(metric: Costs, outcome: Outcome, screened: Screened | None, seen: Confirmation) -> Code:
    """Return the reason code of a confirmation.

    A suspect that the pairs clear may not have moved at all: its history was too short.
    """
    if outcome.call == "inconclusive":
        is_spread_known = math.isfinite(outcome.low)
        if is_spread_known and seen.is_by_tick:
            return Code.ROUNDED
        if _is_worse_by_history(metric, screened, seen):
            return Code.WORSE_BY_HISTORY
        return _explain_undecided(metric) if is_spread_known else Code.TOO_FEW_PAIRS
    if outcome.call != "unchanged":
        return Code.BEYOND_LIMIT
    policy = metric.policy
    if screened is None or not policy.is_beyond_half(abs(screened.difference)):
        return Code.WITHIN_LIMIT
    # As far as the pairs know, this change may be a part of the move, of half its limit or more.
    largest = outcome.high if screened.difference > 0 else -outcome.low
    return Code.WITHIN_LIMIT if policy.is_beyond_half(largest) else Code.BASELINE_MOVED


def _is_worse_by_history(metric: Costs, screened: Screened | None, seen: Confirmation) -> bool:
    """Whether the head lies beyond the limit from its history, by less than the pairs would show.

    A history that the machine has left says nothing.
    """
    if metric.of.obstacle is not None or screened is None:
        return False
    difference = screened.difference
    is_far = difference > 0 and not metric.policy.is_below_limit(difference)
    return is_far and difference < seen.smallest_detectable(max(1, seen.pairs))


def _explain_undecided(metric: Costs) -> Code:
    """Return why nothing was decided: launches of a session have two modes, or are spread.

    It changes no verdict, and names the cause that no launch more would remove.
    """
    sides = [list(side) for side in zip(*metric.pairs, strict=True)]
    known = metric.history.current if metric.history else []
    sessions = [session for session in (*known, metric.head, *sides) if session]
    has_modes = variability.have_two_modes(sessions, smallest_gap=metric.policy.half_limit)
    return Code.TWO_MODES if has_modes else Code.SPREAD
