"""The screen: the head's launches against the committed history, over the whole suite at once.

Its only power is to say "no change" or "suspect". It never raises an alarm: between two sessions
the machine may have moved, and no number of steps or launches within one of them shows that.
"""

import itertools
import math
import statistics
from collections.abc import Callable, Sequence
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
class History:
    """Values of one metric per session: those of the current epoch, then those of each before.

    The head is compared with the current epoch alone. How much sessions and launches differ is
    learned from all, each session around the mean of its own epoch.
    """

    current: Sessions
    earlier: tuple[Sessions, ...] = ()

    def map(self, change: Callable[[float], float]) -> "History":
        """Return the same history of changed values, such as their logarithms."""
        epochs = [
            [[change(value) for value in session] for session in epoch]
            for epoch in (self.current, *self.earlier)
        ]
        return History(current=epochs[0], earlier=tuple(epochs[1:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Screened:
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
    is_suspect: bool
    sessions: int
    launch_variance: float
    prior_variance: float
    prior_df: float

    def clears(self, margin: float) -> bool:
        """Whether no change as large as `margin` hides here.

        One session of one launch clears nothing: it says nothing of any spread.
        """
        is_blind = self.prior_df == 0 and self.sessions == 1
        return not is_blind and max(self.high, -self.low) < margin


@dataclass(frozen=True, slots=True, kw_only=True)
class _Workload:
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
    workloads = [_workload(_history(history), head) for history, head in items]
    launches = moderation.prior([w.launch for w in workloads], LAUNCH_PRIOR_DF)
    sessions = _session_prior(workloads, policy)
    return [_screened(workload, launches, sessions, policy) for workload in workloads]


def _history(given: History | Sessions) -> History:
    return given if isinstance(given, History) else History(current=given)


def _workload(history: History, head: Sequence[float]) -> _Workload:
    if not history.current:
        raise ValueError("history: expected at least one session, found none: confirm instead")
    everything = [*history.current, *itertools.chain(*history.earlier)]
    for session in everything:
        logarithms.check(session, what="a session of the history")
    logarithms.check(head, what="the head")
    means = [_means(epoch) for epoch in (history.current, *history.earlier)]
    return _Workload(
        difference=statistics.fmean(head) - statistics.fmean(means[0]),
        sessions=len(history.current),
        between=_pooled(means),
        launch=_pooled([*everything, head]),
        share=_share(everything),
        current_share=_share(history.current),
        head_share=1 / len(head),
    )


def _means(epoch: Sessions) -> list[float]:
    return [statistics.fmean(session) for session in epoch]


def _share(sessions: Sessions) -> float:
    return math.fsum(1 / len(session) for session in sessions) / len(sessions)


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
    """Return the variance that a mean has on top where it has fewer launches than a session."""
    head = max(workload.head_share - workload.share, 0.0)
    base = max(workload.current_share - workload.share, 0.0) / workload.sessions
    return launch.value * (head + base)
