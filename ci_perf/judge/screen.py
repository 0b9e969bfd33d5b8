"""The screen: the head's launches against the committed history, over the whole suite at once.

Its only power is to say "no change" or "suspect". It never raises an alarm: between two sessions
the machine may have moved, and no number of steps or launches within one of them shows that.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ci_perf.judge import logarithms, moderation, student
from ci_perf.judge.evidence import Sessions
from ci_perf.judge.moderation import Variance
from ci_perf.judge.policy import (
    BETA_SCREEN,
    LAUNCH_PRIOR_DF,
    PRIOR_DF_CAP,
    SESSION_PRIOR_DF,
    Policy,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
    """One workload after the screen; logarithms, above zero the head's number is larger.

    `low` to `high` is the difference with its error, at the certainty that a pass needs. The
    last three are for the confirmation: `launch_variance` of this workload's own launches, and
    `prior_variance`, the same moderated by the suite's, worth `prior_df` observations.
    """

    difference: float
    error: float
    df: float
    low: float
    high: float
    is_suspect: bool
    sessions: int
    launch_variance: float
    prior_variance: float
    prior_df: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Workload:
    """The figures of one workload that the suite shares.

    `share` is the part of a launch's variance that the mean of a session keeps: 1 / launches.
    """

    difference: float
    sessions: int
    between: Variance
    launch: Variance
    share: float
    head_share: float


def screen(items: Sequence[tuple[Sessions, Sequence[float]]], policy: Policy) -> list[Screened]:
    """Screen the workloads of a suite for one kind of metric, in their order.

    An item is the history (launch values of each session in which the code was the same) and the
    head's launch values, all natural logarithms.
    """
    workloads = [_workload(history, head) for history, head in items]
    launches = moderation.prior([w.launch for w in workloads], LAUNCH_PRIOR_DF)
    sessions = _session_prior(workloads, policy)
    return [_screened(workload, launches, sessions, policy) for workload in workloads]


def _workload(history: Sessions, head: Sequence[float]) -> _Workload:
    if not history:
        raise ValueError("history: expected at least one session, found none: confirm instead")
    for session in history:
        logarithms.check(session, what="a session of the history")
    logarithms.check(head, what="the head")
    means = [statistics.fmean(session) for session in history]
    return _Workload(
        difference=statistics.fmean(head) - statistics.fmean(means),
        sessions=len(history),
        between=_pooled([means]),
        launch=_pooled([*history, head]),
        share=math.fsum(1 / len(session) for session in history) / len(history),
        head_share=1 / len(head),
    )


def _pooled(groups: Sessions) -> Variance:
    """Return the variance around each group's own mean."""
    df = sum(len(group) - 1 for group in groups)
    if df == 0:
        return moderation.UNKNOWN
    return Variance(math.fsum(logarithms.squares(group) for group in groups) / df, df)


def _session_prior(workloads: Sequence[_Workload], policy: Policy) -> Variance:
    """Return how much sessions differ: what the suite shows, and what the policy assumes.

    The assumption counts as `prior_df` more observations.
    """
    shared = moderation.prior(
        [w.between for w in workloads], SESSION_PRIOR_DF, assumed_df=policy.prior_df
    )
    noise = [w.launch.value * w.share for w in workloads if w.launch.df] or [0.0]
    assumed = Variance(policy.session_spread**2 + statistics.median(noise), policy.prior_df)
    if shared.df == 0:
        return assumed
    seen = Variance(shared.value, math.fsum(w.between.df for w in workloads))
    return Variance(moderation.moderate(seen, assumed).value, shared.df)


def _screened(
    workload: _Workload, launches: Variance, sessions: Variance, policy: Policy
) -> Screened:
    launch = moderation.moderate(workload.launch, launches)
    own = workload.launch if workload.launch.df else launch
    between = _between(workload, own, sessions, policy)
    error = math.sqrt(between.value * (1 + 1 / workload.sessions) + _lack(workload, own))
    reach = student.upper_quantile(BETA_SCREEN, between.df) * error
    blind = launch.df == 0 and workload.sessions == 1
    return Screened(
        difference=workload.difference,
        error=error,
        df=between.df,
        low=workload.difference - reach,
        high=workload.difference + reach,
        is_suspect=blind or abs(workload.difference) + reach >= policy.margin,
        sessions=workload.sessions,
        launch_variance=own.value,
        prior_variance=launch.value,
        prior_df=min(launch.df, PRIOR_DF_CAP),
    )


def _between(workload: _Workload, launch: Variance, sessions: Variance, policy: Policy) -> Variance:
    """Return the variance of a session's mean, never less than half of what its launches cause."""
    noise = launch.value * workload.share
    if workload.between.df:
        found = moderation.moderate(workload.between, sessions)
    else:
        found = Variance(policy.session_spread**2 + noise, policy.prior_df)
    return Variance(max(found.value, noise / 2), found.df)


def _lack(workload: _Workload, launch: Variance) -> float:
    """Return the variance that the head's mean has on top, by fewer launches than a session."""
    return launch.value * max(workload.head_share - workload.share, 0.0)
