"""Our own rule: the screen against the baseline's sessions, then pairs for its suspects.

The launches of the head are as many as the history asks for, and the pairs are launched from look
to look, as a session does; each time, all suspects are judged again by all pairs so far.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from benchmarks.verdicts.observed import (
    FASTER,
    INCONCLUSIVE,
    SILENT,
    SLOWER,
    Judged,
    Observed,
    Rows,
)
from ci_perf.judging import confirm, screen, variability
from ci_perf.judging.early import find_early
from ci_perf.judging.metric_values import History
from ci_perf.judging.policy import CALM_LOOKS, Policy, PolicyKind
from ci_perf.judging.screen import Known, Screened

CODES = {
    "regressed": SLOWER,
    "improved": FASTER,
    "unchanged": SILENT,
    "inconclusive": INCONCLUSIVE,
}


@dataclass
class Launched:
    """One workload: what was launched, and what is said of it."""

    sessions: Sequence[Sequence[float]]
    head: Sequence[float]
    # All that could be launched: base and head.
    turns: Sequence[tuple[float, float]]
    screened: Screened
    pairs: int = 0
    outcome: confirm.Outcome | None = None
    usual_variance: float = field(init=False)
    one_mode: bool = field(init=False)

    def learn(self, policy: Policy) -> None:
        """Note what the confirmation asks of the history."""
        self.usual_variance = variability.usual_variance([*self.sessions, self.head])
        self.one_mode = variability.exclude_two_modes(self.sessions, smallest_gap=policy.half_limit)

    @property
    def launches(self) -> int:
        """Launches of this job, without the one that warms the caches of the base."""
        return len(self.head) + 2 * self.pairs

    def launch(self) -> None:
        """Launch pairs up to the next look."""
        self.pairs = next(look for look in CALM_LOOKS if look > self.pairs)

    def differences(self) -> list[float]:
        """Return the differences of the pairs so far."""
        return [head - base for base, head in self.turns[: self.pairs]]

    def judge(self, policy: Policy, alpha: float, day: variability.Day) -> None:
        """Confirm by the pairs so far."""
        screened = self.screened
        confirmation = confirm.Confirmation(
            policy,
            alpha,
            screened.prior_variance,
            screened.prior_df,
            suspected=confirm.sign(screened.difference),
            usual_variance=self.usual_variance,
            day=day,
            one_mode=self.one_mode,
            early=find_early(policy, sessions=self.sessions, head=self.head, has_more_counts=False),
        )
        self.outcome = None
        for base, head in self.turns[: self.pairs]:
            self.outcome = confirmation.add(head - base, base=base)
            if self.outcome is not None:
                return


def judge(observed: Observed, rows: Rows, policy: Policy, *, check: int | None = None) -> Judged:
    """Judge each pull request as a whole, of which rows are asked for.

    `check` is the number of this check among those of its pull request, if that is known.
    """
    asked = np.asarray(rows)
    calls = np.full(len(asked), SILENT, dtype=np.int8)
    launches = np.zeros(len(asked))
    for first in np.unique(asked // observed.suite) * observed.suite:
        workloads = pull_request(observed, int(first), policy, check)
        for place in np.flatnonzero(asked // observed.suite == first // observed.suite):
            workload = workloads[asked[place] - first]
            launches[place] = workload.launches
            if workload.outcome:
                calls[place] = CODES[workload.outcome.call]
    return Judged(calls, launches)


def pull_request(
    observed: Observed, first: int, policy: Policy, check: int | None = None
) -> list[Launched]:
    """Launch and judge the workloads of one pull request, the first of which is this row."""
    workloads = _screened(observed, slice(first, first + observed.suite), policy)
    suspects = [workload for workload in workloads if not workload.screened.clears(policy)]
    for workload in suspects:
        workload.learn(policy)
    alpha = confirm.share_alpha(max(1, len(suspects)), check=check)
    while left := [workload for workload in suspects if workload.outcome is None]:
        for workload in left:
            workload.launch()
        day = variability.day(
            (2 * workload.screened.prior_variance, workload.differences()) for workload in suspects
        )
        for workload in suspects:
            workload.judge(policy, alpha, day)
    return workloads


def _screened(observed: Observed, suite: slice, policy: Policy) -> list[Launched]:
    sessions = np.median(observed.sessions[suite], axis=-1).tolist()
    heads = np.median(observed.head[suite], axis=-1).tolist()
    sides = (observed.paired_base[suite], observed.paired_head[suite])
    turns = np.stack([np.median(side, axis=-1) for side in sides], axis=-1).tolist()
    known = [Known(PolicyKind.TIME, policy, History(current=each)) for each in sessions]
    counts = screen.head_launches({str(i): [each] for i, each in enumerate(known)})
    heads = [head[: counts[str(i)]] for i, head in enumerate(heads)]
    results = screen.screen(list(zip(sessions, heads, strict=True)), policy)
    return [
        Launched(*of_workload) for of_workload in zip(sessions, heads, turns, results, strict=True)
    ]
