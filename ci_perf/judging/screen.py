"""The screen: the head's launches against the committed history, and how many it should get.

The screen says "no change" or "suspect", and never raises an alarm: between two sessions the
machine may have moved, and no number of steps or launches within one of them shows that. Where the
base cannot be launched, history predicts at most: how much sessions differ is part of the error,
and is itself learned from few of them, or assumed.

A launch more makes the screen surer, and pairs may be needed all the same. With one launch, which
exact numbers, numerics and warm caches need anyway, the workload goes to its pairs nearly at once.
"""

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from ci_perf.judging import distributions, variability
from ci_perf.judging.confirm import POWER_TAIL
from ci_perf.judging.metric_values import History, Sessions
from ci_perf.judging.policy import (
    BETA_CONFIRM,
    BETA_SCREEN,
    CALM_LOOKS,
    CALM_TOGETHER,
    CALM_WEIGHTS,
    LAUNCH_PRIOR_DF,
    MOST_PAIRS,
    MOST_PRIOR_DF,
    PAIRS_WITHOUT_HISTORY,
    SCREENED_LAUNCHES,
    SESSION_PRIOR_DF,
    Policy,
    PolicyKind,
)
from ci_perf.judging.variability import Variance

# A suspect's base may be launched once, uncounted, before its first pair.
_WARM_UPS = 1
# Looks that so few workloads reach add nothing to the mean.
_NEGLIGIBLE = 0.01


class Screened(msgspec.Struct, frozen=True, kw_only=True):
    """One workload after the screen; logarithms, above zero the head's number is larger.

    `low` to `high` is the difference with its error, at the certainty that a pass needs. The
    last three are for the confirmation: `launch_variance` of this workload's own launches, and
    `prior_variance`, the same moderated by the suite's, worth `prior_df` observations. `sessions`
    are those of the current epoch.
    """

    difference: float
    error: float
    df: float
    low: float
    high: float
    sessions: int
    launch_variance: float
    prior_variance: float
    prior_df: float

    def clears(self, policy: Policy) -> bool:
        """Whether the screen says "unchanged".

        One session of one launch clears nothing: it says nothing of any spread.
        """
        is_blind = self.prior_df == 0 and self.sessions == 1
        return not is_blind and policy.clears(self.low, self.high)


class _Workload(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one workload that the suite shares.

    `share` is the part of a launch's variance that the mean of a session keeps: 1 / launches; on
    average over all epochs, over the current one, and of the head.
    """

    difference: float
    sessions: int
    between: Variance
    launch: Variance
    share: float
    current_share: float
    head_share: float


def screen(
    items: Sequence[tuple[History | Sessions, Sequence[float]]], policy: Policy
) -> list[Screened]:
    """Screen the workloads of a suite for one kind of metric, in their order.

    An item is the history (or only the sessions of its current epoch) and the head's launch values,
    all natural logarithms.
    """
    return _together([_workload(_history(history), head) for history, head in items], policy)


def foresee(histories: Sequence[History], policy: Policy, launches: int) -> list[Screened]:
    """Screen workloads as if so many launches of each head were just like their history."""
    return _together(
        [
            msgspec.structs.replace(
                _workload(history, [statistics.fmean(_means(history.current))]),
                difference=0.0,
                head_share=1 / launches,
            )
            for history in histories
        ],
        policy,
    )


def _together(workloads: Sequence[_Workload], policy: Policy) -> list[Screened]:
    launches = variability.prior([w.launch for w in workloads], LAUNCH_PRIOR_DF)
    sessions = _session_prior(workloads, policy)
    return [_screen_workload(workload, launches, sessions, policy) for workload in workloads]


def _history(given: History | Sessions) -> History:
    return given if isinstance(given, History) else History(current=given)


def _workload(history: History, head: Sequence[float]) -> _Workload:
    if not history.current:
        raise ValueError("history: expected at least one session, found none: confirm instead")
    everything = [*history.current, *itertools.chain(*history.earlier)]
    for session in everything:
        distributions.check_logarithms(session, what="a session of the history")
    distributions.check_logarithms(head, what="the head")
    means = [_means(epoch) for epoch in (history.current, *history.earlier)]
    return _Workload(
        difference=statistics.fmean(head) - statistics.fmean(means[0]),
        sessions=len(history.current),
        between=variability.pool(means),
        launch=variability.pool([*everything, head]),
        share=_share(everything),
        current_share=_share(history.current),
        head_share=1 / len(head),
    )


def _means(epoch: Sessions) -> list[float]:
    return [statistics.fmean(session) for session in epoch]


def _share(sessions: Sessions) -> float:
    return math.fsum(1 / len(session) for session in sessions) / len(sessions)


def _session_prior(workloads: Sequence[_Workload], policy: Policy) -> Variance:
    """Return how much sessions differ: what the suite shows, and what the policy assumes.

    The assumption counts as `prior_df` more observations.
    """
    shared = variability.prior(
        [w.between for w in workloads], SESSION_PRIOR_DF, assumed_df=policy.prior_df
    )
    noise = [w.launch.value * w.share for w in workloads if w.launch.df] or [0.0]
    assumed = Variance(policy.session_spread**2 + statistics.median(noise), policy.prior_df)
    if shared.df == 0:
        return assumed
    seen = Variance(shared.value, math.fsum(w.between.df for w in workloads))
    return Variance(variability.moderate(seen, assumed).value, shared.df)


def _screen_workload(
    workload: _Workload, launches: Variance, sessions: Variance, policy: Policy
) -> Screened:
    launch = variability.moderate(workload.launch, launches)
    own = workload.launch if workload.launch.df else launch
    between = _between(workload, own, sessions, policy)
    # A mean of fewer launches than a session has varies more.
    lacking = max(workload.head_share - workload.share, 0.0)
    lacking += max(workload.current_share - workload.share, 0.0) / workload.sessions
    error = math.sqrt(between.value * (1 + 1 / workload.sessions) + own.value * lacking)
    reach = distributions.student_quantile(BETA_SCREEN, between.df) * error
    return Screened(
        difference=workload.difference,
        error=error,
        df=between.df,
        low=workload.difference - reach,
        high=workload.difference + reach,
        sessions=workload.sessions,
        launch_variance=own.value,
        prior_variance=launch.value,
        prior_df=min(launch.df, MOST_PRIOR_DF),
    )


def _between(workload: _Workload, launch: Variance, sessions: Variance, policy: Policy) -> Variance:
    """Return the variance of a session's mean, never less than half of what its launches cause."""
    noise = launch.value * workload.share
    if workload.between.df:
        variance = variability.moderate(workload.between, sessions)
    else:
        spread = max(policy.session_spread, policy.lone_session_spread)
        variance = Variance(spread**2 + noise, policy.prior_df)
    return Variance(max(variance.value, noise / 2), variance.df)


Prediction = Literal["unconfirmed", "unchanged", "inconclusive"]


def predict(screened: Screened, policy: Policy, alpha: float) -> Prediction:
    """Say whether the head lies beyond half the limit, as far as history can tell.

    Share `alpha` with everything that was screened, not with the suspects only: these were chosen
    by the same numbers. The direction is the sign of `screened.difference`.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"expected 0 < alpha < 1, found {alpha}")
    if screened.clears(policy):
        return "unchanged"
    reach = distributions.student_quantile(alpha / 2, screened.df) * screened.error
    is_beyond = policy.is_beyond_half(abs(screened.difference) - reach)
    return "unconfirmed" if is_beyond else "inconclusive"


def smallest_detectable(screened: Screened, policy: Policy, alpha: float) -> float:
    """Return the smallest true change that would mostly have been predicted (logarithm).

    Never below the limit: up to there "unchanged" is a right answer, too.
    """
    quantiles = distributions.student_quantile(alpha / 2, screened.df)
    quantiles += distributions.student_quantile(POWER_TAIL, screened.df)
    return max(policy.limit, policy.half_limit + quantiles * screened.error)


@dataclass(frozen=True, slots=True)
class Known:
    """The history of one noisy metric that gates: logarithms, one per launch."""

    kind: PolicyKind
    policy: Policy
    history: History


def head_launches(workloads: Mapping[str, Sequence[Known]]) -> dict[str, int]:
    """Return how many launches of the head each workload of a suite starts with, 1 or more.

    That number for which the expected launches, those of the pairs included, are fewest if nothing
    has changed. A workload of which nothing is known gets as many as a screen may use at most, for
    they may become its history. Where nothing is known of any, pairs alone decide: one is enough.
    """
    if not any(workloads.values()):
        return dict.fromkeys(workloads, 1)
    numbers = range(1, SCREENED_LAUNCHES + 1)
    foreseen = {number: _screen_after(workloads, number) for number in numbers}
    return {
        name: _cheapest(known, {number: foreseen[number][name] for number in numbers})
        if known
        else SCREENED_LAUNCHES
        for name, known in workloads.items()
    }


def estimate_pairs(policy: Policy, variance: float, df: float) -> float:
    """Return after how many pairs "unchanged" will be said, in the mean, if nothing has changed.

    `variance` is that of a pair's difference, worth `df` observations. A look is taken to fail
    whenever an earlier one that is surer has failed; without any history it is the look that mostly
    decides, and with too much noise the last one.
    """
    if variance <= 0 or df <= 0:
        return float(PAIRS_WITHOUT_HISTORY)
    spread, open_share, before, pairs = math.sqrt(variance), 1.0, 0, 0.0
    for look, weight in zip(CALM_LOOKS, CALM_WEIGHTS, strict=True):
        pairs += (look - before) * open_share
        tail = BETA_CONFIRM * CALM_TOGETHER * weight
        reach = distributions.student_quantile(tail, df + look - 1) / math.sqrt(look)
        room = (policy.limit - reach * spread) * math.sqrt(look) / spread
        open_share = min(open_share, 1 - _within(room, df + look - 1))
        before = look
        if open_share < _NEGLIGIBLE:
            break
    return min(pairs, MOST_PAIRS)


def _screen_after(
    workloads: Mapping[str, Sequence[Known]], number: int
) -> dict[str, list[Screened]]:
    """Screen each kind of metric of all workloads together, as if nothing had changed."""
    results: dict[str, list[Screened]] = {name: [] for name in workloads}
    for kind in PolicyKind:
        of_kind = [
            (name, metric)
            for name, known in workloads.items()
            for metric in known
            if metric.kind is kind
        ]
        if of_kind:
            policy = min(metric.policy for _, metric in of_kind)
            histories = [metric.history for _, metric in of_kind]
            foreseen = foresee(histories, policy, number)
            for (name, _), result in zip(of_kind, foreseen, strict=True):
                results[name].append(result)
    return results


def _cheapest(known: Sequence[Known], foreseen: Mapping[int, Sequence[Screened]]) -> int:
    """Return the number of launches that costs least; what was foreseen is sorted by kind."""
    policies = [metric.policy for metric in _by_kind(known)]
    pairs = max(
        estimate_pairs(metric.policy, 2 * result.prior_variance, result.prior_df)
        for metric, result in zip(_by_kind(known), foreseen[1], strict=True)
    )

    def cost(number: int) -> float:
        both = zip(foreseen[number], policies, strict=True)
        passing = math.prod(_passes(result, policy) for result, policy in both)
        return number + (1 - passing) * (_WARM_UPS + 2 * pairs)

    return min(foreseen, key=cost)


def _by_kind(known: Sequence[Known]) -> list[Known]:
    return sorted(known, key=lambda metric: list(PolicyKind).index(metric.kind))


def _passes(screened: Screened, policy: Policy) -> float:
    """Return the chance that the screen clears a metric that has not changed."""
    if not screened.clears(policy):
        return 0.0
    return _within((policy.limit - screened.high) / screened.error, screened.df)


def _within(reach: float, df: float) -> float:
    """Return P(|T| < reach), 0 where the reach is none."""
    return 1 - 2 * distributions.student_tail(reach, df) if reach > 0 else 0.0
