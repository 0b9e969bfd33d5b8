"""The confirmation: fresh pairs of base and head, looked at a few times, end in an outcome.

Only this stage may say "regressed" or "improved". It sees the difference of a pair of launches
(natural logarithm of the head's summary, less the base's) and nothing else, so neither more steps
within a launch nor what the screen believed can make an alarm.
"""

import math
import statistics
from dataclasses import dataclass, field
from typing import Literal

from ci_perf.judge import logarithms, student
from ci_perf.judge.policy import ALPHA, BETA_CONFIRM, LOOKS, WEIGHTS, Policy

Call = Literal["regressed", "improved", "unchanged", "inconclusive"]
# The smallest detectable change is confirmed in 80 % of pull requests that have it.
POWER_TAIL = 0.2


def share_alpha(suspects: int) -> float:
    """Return what each of this many suspects may spend of `ALPHA` (Bonferroni).

    Count them after the screen and never again: a suspect that is settled gives nothing back.
    """
    if suspects < 1:
        raise ValueError(f"expected at least one suspect to share alpha with, found {suspects}")
    return ALPHA / suspects


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a confirmation ended; logarithms, above zero the head's number is larger.

    `low` to `high` is the interval that decided: beyond the floor, or inside the margin. That of
    an inconclusive outcome is the wider one, of an alarm. It is infinite where nothing is known
    of the spread (no pair, or one without a prior); without a pair the estimate is 0.
    """

    call: Call
    estimate: float
    low: float
    high: float
    pairs: int


@dataclass(slots=True)
class Confirmation:
    """One suspect, pair by pair.

    `alpha` is this suspect's share. `prior_variance` is the variance of one launch as the history
    has it, worth `prior_df` observations; both are 0 where there is no history.
    """

    policy: Policy
    alpha: float
    prior_variance: float
    prior_df: float
    _differences: list[float] = field(default_factory=list, init=False)
    _outcome: Outcome | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        known = 0 <= self.prior_variance < math.inf and 0 <= self.prior_df < math.inf
        if not (0 < self.alpha < 1 and known):
            raise ValueError(
                "expected 0 < alpha < 1 and a finite prior_variance and prior_df >= 0, "
                f"found {self.alpha}, {self.prior_variance} and {self.prior_df}"
            )

    def add(self, difference: float) -> Outcome | None:
        """Take the difference of one more pair; return the outcome if that settles it."""
        if self._outcome is not None:
            raise ValueError(
                f"expected no pair after the outcome {self._outcome.call!r} "
                f"of {self._outcome.pairs} pairs, found one more: leave settled suspects alone"
            )
        logarithms.check([difference], what="the difference of a pair")
        self._differences.append(difference)
        if len(self._differences) in LOOKS:
            self._outcome = self._look(WEIGHTS[LOOKS.index(len(self._differences))])
        return self._outcome

    def finish(self) -> Outcome:
        """Return the outcome, or, when pairs run out between two looks, an inconclusive one.

        Nothing is tested at the end of a budget: that moment may depend on the times measured,
        and the looks were fixed to depend on nothing.
        """
        if self._outcome is None:
            pairs = len(self._differences)
            share = next(w for n, w in zip(LOOKS, WEIGHTS, strict=True) if n > pairs)
            self._outcome = self._inconclusive(share)
        return self._outcome

    def smallest_detectable(self, pairs: int = LOOKS[-1]) -> float:
        """Return the smallest true change that a last look after `pairs` would prove, mostly.

        Judged by the spread so far; infinite where that is unknown. Never below the margin: up
        to there "unchanged" is a right answer, too.
        """
        if pairs < 1:
            raise ValueError(f"expected at least one pair, found {pairs}")
        variance, df = self._variance(), self.prior_df + pairs - 1
        if math.isinf(variance) or df <= 0:
            return math.inf
        quantiles = student.upper_quantile(self.alpha * WEIGHTS[-1] / 2, df)
        quantiles += student.upper_quantile(POWER_TAIL, df)
        return max(self.policy.margin, self.policy.floor + quantiles * math.sqrt(variance / pairs))

    def spread(self) -> float:
        """Return the standard deviation of a pair's difference; infinite while it is unknown."""
        return math.sqrt(self._variance())

    def _look(self, weight: float) -> Outcome | None:
        estimate = statistics.fmean(self._differences)
        alarm = self._reach(self.alpha * weight / 2)
        if abs(estimate) - alarm > self.policy.floor:
            return self._ended("regressed" if estimate > 0 else "improved", alarm)
        calm = self._reach(BETA_CONFIRM * weight)
        if abs(estimate) + calm < self.policy.margin:
            return self._ended("unchanged", calm)
        return self._inconclusive(weight) if len(self._differences) == LOOKS[-1] else None

    def _inconclusive(self, weight: float) -> Outcome:
        return self._ended("inconclusive", self._reach(self.alpha * weight / 2))

    def _ended(self, call: Call, reach: float) -> Outcome:
        pairs = len(self._differences)
        estimate = statistics.fmean(self._differences) if pairs else 0.0
        return Outcome(
            call=call, estimate=estimate, low=estimate - reach, high=estimate + reach, pairs=pairs
        )

    def _reach(self, tail: float) -> float:
        """Return how far the interval of the mean difference reaches to each side."""
        pairs, variance = len(self._differences), self._variance()
        if not pairs or math.isinf(variance):
            return math.inf
        df = self.prior_df + pairs - 1
        return student.upper_quantile(tail, df) * math.sqrt(variance / pairs)

    def _variance(self) -> float:
        """Return the variance of a pair's difference, moderated by the history's launches."""
        df = self.prior_df + max(len(self._differences) - 1, 0)
        if df <= 0:
            return math.inf
        # Two launches make a difference, each with the variance of one.
        history = self.prior_df * 2 * self.prior_variance
        return (history + logarithms.squares(self._differences)) / df
