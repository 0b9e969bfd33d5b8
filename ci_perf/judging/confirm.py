"""The confirmation: fresh pairs of base and head are tested at a few looks, until one decides.

Only this stage may say "regressed" or "improved". It sees the difference of a pair of launches
(natural logarithm of the head's summary, less the base's) and nothing else, so neither more steps
within a launch nor what the screen predicted can make an alarm.
"""

import functools
import itertools
import math
import operator
import statistics
from dataclasses import dataclass, field, replace
from typing import Literal

from ci_perf.judging import distributions, earlier_checks, variability
from ci_perf.judging.earlier_checks import Looks
from ci_perf.judging.early import Early
from ci_perf.judging.policy import (
    ALPHA,
    ALPHA_BEYOND_ZERO,
    ALPHA_OF_SIDE,
    BETA_CONFIRM,
    CALM_LOOKS,
    CALM_TOGETHER,
    CALM_TOGETHER_WITHOUT_HISTORY,
    CALM_WEIGHTS,
    CALM_WEIGHTS_WITHOUT_HISTORY,
    CONTRADICTING,
    DAY_KNOWN_DF,
    EARLY_PAIRS,
    MOST_PRIOR_DF,
    PRIOR_DF_CAP,
    TRIMMED,
    TRIMMED_CALM_WEIGHTS,
    Policy,
)
from ci_perf.judging.variability import USUAL_DAY, Centre, Day, Variance

Call = Literal["regressed", "improved", "unchanged", "inconclusive"]
# To which side a number has moved: 1 up, -1 down, 0 to none that is known.
Sign = Literal[-1, 0, 1]
# An alarm's interval, from its lower end to its upper one: excluded there is a loss, here a gain.
_SIDES: tuple[Sign, Sign] = (1, -1)
# The smallest detectable change is confirmed in 80 % of pull requests that have it.
POWER_TAIL = 0.2


def share_alpha(suspects: int, *, check: int | None = None) -> float:
    """Return what each of this many suspects may spend of `ALPHA` (Bonferroni).

    Count them after the screen and never again: a suspect that is settled gives nothing back.
    `check` is the number of this check among those of its pull request, where that is known.
    """
    if suspects < 1:
        raise ValueError(f"expected at least one suspect to share alpha with, found {suspects}")
    return ALPHA * (1 if check is None else earlier_checks.share(check)) / suspects


def sign(difference: float) -> Sign:
    """Return the side to which a difference points."""
    if difference == 0:
        return 0
    return 1 if difference > 0 else -1


def alarm_reach(tail: float, pairs: int, *, trim: float = 0.0) -> float:
    """Return how far an alarm's interval of the mean of `pairs` differences reaches to one side.

    In standard deviations of one; infinite where these pairs alone show no spread. `trim` is the
    share that the mean leaves out on each side.
    """
    df = pairs - 2 * variability.count_trimmed(pairs, trim) - 1
    return distributions.student_quantile(tail, df) / math.sqrt(pairs) if df > 0 else math.inf


@functools.cache
def looks(*, trimmed: bool, has_history: bool, earlier: tuple[int, ...]) -> Looks:
    """Return when a confirmation may decide, after so many pairs of each earlier run."""
    calm = dict(zip(CALM_LOOKS, CALM_WEIGHTS, strict=True))
    if not has_history:
        calm = CALM_WEIGHTS_WITHOUT_HISTORY
    if trimmed:
        calm = TRIMMED_CALM_WEIGHTS
    return earlier_checks.looks(calm, runs=1 + len(earlier), before=sum(earlier))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a confirmation ended; logarithms, above zero the head's number is larger.

    `low` to `high` is the interval that decided: beyond half the limit, beyond zero, or inside the
    limit. That of an inconclusive outcome is the one that would have said "unchanged": its upper
    end says which losses are excluded. It is infinite where nothing is known of the spread (no
    pair, or one without a prior); without a pair the estimate is 0. `by_median`: the estimate is
    the median of the differences, not their mean, because the sign test decided, or nothing did: a
    launch of the base that hangs would else hide in the mean that all other pairs show a loss.
    """

    call: Call
    estimate: float
    low: float
    high: float
    pairs: int
    by_median: bool = False


@dataclass(slots=True)
class Confirmation:
    """One suspect, pair by pair.

    `alpha` is this suspect's share. `prior_variance` is the variance of one launch as the history
    has it, worth `prior_df` observations; both are 0 where there is no history. `suspected` is the
    side on which the screen saw the head: it must be known before the first pair, or what the sides
    spend of alpha would not add up. `usual_variance` is the variance of one launch that no outlier
    of the history enlarges (`variability.usual_variance`), 0 where nothing is known; `tick` is what
    the numbers were rounded to, relative to them (`variability.relative_tick`). `earlier` counts
    the pairs of each earlier run of the same commits: they come first, and are not looked at again.

    `trimmed` is whether the mean of the pairs leaves out the outermost ones, because launches of
    this machine have heavy tails: known before the first pair, too. The variance of the history is
    then unused, because its own outliers enlarge it.

    `day` is what the pairs of all suspects say of today; only "unchanged" looks at it. Where it is
    known, and `one_mode` says that the history excludes two, a single pair may say "unchanged".

    `early` is what the early look asks of each pair; `None` where there is none. Nor is there one
    with earlier runs. `is_by_tick`: a look has decided nothing, and would have with exact numbers.
    """

    policy: Policy
    alpha: float
    prior_variance: float
    prior_df: float
    suspected: Sign = 0
    usual_variance: float = 0.0
    tick: float = 0.0
    trimmed: bool = False
    earlier: tuple[int, ...] = ()
    day: Day = USUAL_DAY
    one_mode: bool = False
    early: Early | None = None
    looks: Looks = field(init=False)
    is_by_tick: bool = field(default=False, init=False)
    _bases: list[float] = field(default_factory=list, init=False)
    _differences: list[float] = field(default_factory=list, init=False)
    _centre_of_all: Centre | None = field(default=None, init=False)
    _outcome: Outcome | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        known = 0 <= self.prior_variance < math.inf and 0 <= self.prior_df < math.inf
        if not (0 < self.alpha < 1 and known):
            raise ValueError(
                "expected 0 < alpha < 1 and a finite prior_variance and prior_df >= 0, "
                f"found {self.alpha}, {self.prior_variance} and {self.prior_df}"
            )
        self.looks = self._looks(self.earlier)

    def add(self, difference: float, *, base: float = 0.0) -> Outcome | None:
        """Take one more pair: head less base, and the base; return the outcome if it settles it."""
        if self._outcome is not None:
            raise ValueError(
                f"expected no pair after the outcome {self._outcome.call!r} "
                f"of {self._outcome.pairs} pairs, found one more: leave settled suspects alone"
            )
        distributions.check_logarithms([difference], what="the difference of a pair")
        distributions.check_logarithms([base], what="the base of a pair")
        self._bases.append(base)
        self._differences.append(difference)
        self._centre_of_all = None
        self._outcome = self._look()
        if self.tick and (self._outcome is None or self._outcome.call == "inconclusive"):
            tick, self.tick = self.tick, 0.0
            exact, self.tick = self._look(), tick
            self.is_by_tick |= exact is not None and exact.call != "inconclusive"
        return self._outcome

    def settled(self) -> Outcome:
        """Return "unchanged", which an earlier run has found by the pairs so far."""
        low, high = self._interval_so_far()
        # The history may have changed since: whatever proves a change clears nothing.
        is_moved = self.policy.is_beyond_half(max(low, -high))
        self._outcome = self._ended("inconclusive" if is_moved else "unchanged", low, high)
        return self._outcome

    def finish(self) -> Outcome:
        """Return the outcome, or, when pairs run out between two looks, an inconclusive one.

        Nothing is tested at the end of a budget: that moment may depend on the times measured,
        and the looks were fixed to depend on nothing.
        """
        if self._outcome is None:
            self._outcome = self._inconclusive()
        return self._outcome

    def smallest_detectable(self, pairs: int | None = None) -> float:
        """Return the smallest true loss that a last look after `pairs` would prove in most cases.

        Without `pairs`, after as many as there can be.
        Judged by the spread so far; infinite where that is unknown. Never below the limit: up
        to there "unchanged" is a right answer, too.
        """
        pairs = self.looks.last if pairs is None else pairs
        if pairs < 1:
            raise ValueError(f"expected at least one pair, found {pairs}")
        tails = (self.alarm_tail(self.looks.last, 1), POWER_TAIL)
        reach = math.fsum(alarm_reach(tail, pairs, trim=self.trim) for tail in tails)
        spread = self.alarm_spread()
        if math.isinf(reach):
            return math.inf
        return max(self.policy.limit, self.policy.half_limit + self.rounding() + reach * spread)

    def spread(self) -> float:
        """Return the standard deviation of a pair's difference; infinite while it is unknown."""
        variance = variability.moderate(self._seen(), self._history())
        return math.sqrt(max(variance.value, self._of_ticks())) if variance.df > 0 else math.inf

    def alarm_spread(self) -> float:
        """Return the standard deviation by which an alarm is judged.

        That of the pairs themselves: a history that is calmer than today would make alarms of
        noise, and nobody knows beforehand whether it is. It may only add what today lacks. Where
        the launches of neither side differ as they did in the history, they may all be in one mode
        each, by chance; so a pair has at least half of the variance that the history would give
        it, less what the sides show of that.
        """
        seen = self._seen()
        if not seen.df:
            return self.spread()  # no alarm comes of a single pair
        lacking = self.usual_variance - self._within_sides()
        return math.sqrt(max(seen.value, lacking, self._of_ticks()))

    def rounding(self) -> float:
        """Return how much further each interval reaches, because all numbers were rounded.

        A whole tick, half for each side, while pairs differ by less: then launches of a side were
        all rounded the same way, and more of them do not help. Beyond that it averages out.
        """
        # Of losses by a quarter of the limit, in numbers rounded to the limit, 1 % alarm, and 5.2 %
        # would without it (400 simulated confirmations).
        return self.tick if self._seen().value < self.tick**2 else 0.0

    @property
    def pairs(self) -> int:
        """How many pairs were taken so far."""
        return len(self._differences)

    @property
    def trim(self) -> float:
        """The share of the pairs that their mean leaves out on each side."""
        return TRIMMED if self.trimmed else 0.0

    def alarm_tail(self, look: int, side: Sign) -> float:
        """Return the chance of a false alarm on this side that this look may take."""
        return self._share(self.looks.alarm[look], side)

    def calm_tail(self, look: int) -> float:
        """Return the chance of missing a change as large as the limit that this look may take."""
        return self._beta() * self.looks.calm[look]

    def _looks(self, earlier: tuple[int, ...]) -> Looks:
        return looks(trimmed=self.trimmed, has_history=self.prior_df > 0, earlier=earlier)

    def _beta(self) -> float:
        # Looks err together, but not those of a trimmed mean, nor where a history is forgotten:
        # its early looks had another variance.
        if self.trimmed:
            return BETA_CONFIRM
        if not self.prior_df:
            return BETA_CONFIRM * CALM_TOGETHER_WITHOUT_HISTORY
        return BETA_CONFIRM * (CALM_TOGETHER if self._history().df else 1)

    def reach(self, tail: float, pairs: int) -> float:
        """Return how far the interval of "unchanged" reaches to one side, after `pairs`.

        In standard deviations of one; infinite where nothing would be known of these.
        """
        seen = pairs - 2 * variability.count_trimmed(pairs, self.trim) - 1
        df = self._history().df + seen
        if pairs < 1 or df <= 0:
            return math.inf
        return distributions.student_quantile(tail, df) / math.sqrt(pairs)

    def _share(self, weight: float, side: Sign) -> float:
        return self.alpha * weight * ALPHA_OF_SIDE[side * self.suspected]

    def _look(self) -> Outcome | None:
        pairs = len(self._differences)
        if pairs == EARLY_PAIRS and self.early and not self.earlier:
            interval = self.early.find_interval(self._bases, self._differences, self.tick)
            if interval and (alarm := self._alarm(*interval)):
                return alarm
        if pairs in self.looks.alarm and (alarm := self._alarm(*self._alarm_interval(pairs))):
            return alarm
        if pairs == self.looks.last and (alarm := self._alarm_beyond_zero(pairs)):
            return alarm
        if pairs in self.looks.signs and (alarm := self._alarm(*self._sign_interval(pairs))):
            return self._by_median(alarm)
        may_end = pairs > 1 or (self.one_mode and self.day.df >= DAY_KNOWN_DF)
        if pairs in self.looks.calm and may_end:
            reach = self.reach(self.calm_tail(pairs), pairs)
            low, high = self._around(reach, reach, self.spread())
            if self.policy.clears(low, high):
                return self._ended("unchanged", low, high)
        return self._inconclusive() if pairs == self.looks.last else None

    def _alarm_beyond_zero(self, look: int) -> Outcome | None:
        """Return the alarm of an estimate beyond the limit that is surely beyond zero."""
        share = ALPHA_BEYOND_ZERO / self.looks.alarm[look]
        low, high = self._alarm_interval(look, share=share)
        estimate = self._estimate()
        if low > 0 and not self.policy.is_below_limit(estimate):
            return self._ended("regressed", low, high)
        if high < 0 and not self.policy.is_below_limit(-estimate):
            return self._ended("improved", low, high)
        return None

    def _alarm(self, low: float, high: float) -> Outcome | None:
        """Return the alarm that this interval raises, if it does."""
        if self.policy.is_beyond_half(low):
            return self._ended("regressed", low, high)
        if self.policy.is_beyond_half(-high):
            return self._ended("improved", low, high)
        return None

    def _inconclusive(self) -> Outcome:
        outcome = self._by_median(self._ended("inconclusive", *self._interval_so_far()))
        low, high = min(outcome.low, outcome.estimate), max(outcome.high, outcome.estimate)
        return replace(outcome, low=low, high=high)

    def _by_median(self, outcome: Outcome) -> Outcome:
        """Return the outcome with the median of the differences for an estimate."""
        estimate = statistics.median(self._differences) if self._differences else 0.0
        return replace(outcome, estimate=estimate, by_median=True)

    def _ended(self, call: Call, low: float, high: float) -> Outcome:
        pairs, estimate = len(self._differences), self._estimate()
        return Outcome(call=call, estimate=estimate, low=low, high=high, pairs=pairs)

    def _estimate(self) -> float:
        return self._centre().mean if self._differences else 0.0

    def _centre(self) -> Centre:
        if self._centre_of_all is None:
            self._centre_of_all = variability.trim_mean(self._differences, self.trim)
        return self._centre_of_all

    def _sign_interval(self, look: int) -> tuple[float, float]:
        """Return the interval of the median difference that the sign test gives after all pairs."""
        below, above = (self._share(self.looks.signs[look], side) for side in _SIDES)
        low, high = distributions.median_interval(self._differences, below, above)
        return low - self.rounding(), high + self.rounding()

    def _alarm_interval(self, look: int, *, share: float = 1.0) -> tuple[float, float]:
        """Return the interval of the mean at what this look, or a `share` of it, may take."""
        pairs = len(self._differences)
        below, above = (
            alarm_reach(share * self.alarm_tail(look, side), pairs, trim=self.trim)
            for side in _SIDES
        )
        return self._around(below, above, self.alarm_spread())

    def _interval_so_far(self) -> tuple[float, float]:
        """Return the interval of "unchanged" as surely as the last look so far says it."""
        pairs = len(self._differences)
        share = self._looks(earlier=()).calm_share(pairs)
        reach = self.reach(self._beta() * share, pairs)
        return self._around(reach, reach, self.spread())

    def _around(self, below: float, above: float, spread: float) -> tuple[float, float]:
        """Return the interval of the mean difference that reaches so many `spread` to each side."""
        if math.isinf(spread) or math.isinf(below):
            return -math.inf, math.inf
        estimate, rounding = self._estimate(), self.rounding()
        return estimate - below * spread - rounding, estimate + above * spread + rounding

    def _seen(self) -> Variance:
        """Return what the pairs themselves say of their differences."""
        if len(self._differences) < 2:
            return variability.UNKNOWN
        centre = self._centre()
        return Variance(centre.variance, centre.df)

    def _within_sides(self) -> float:
        """Return the variance of launches around the mean of their side and run."""
        heads = list(map(operator.add, self._bases, self._differences))
        ends = [*itertools.accumulate(self.earlier), len(heads)]
        runs = [slice(*ends) for ends in itertools.pairwise((0, *ends)) if ends[0] < ends[1]]
        squares = math.fsum(
            distributions.sum_of_squares(side[run]) for side in (self._bases, heads) for run in runs
        )
        return squares / (2 * max(len(heads) - len(runs), 1))

    def _of_ticks(self) -> float:
        """Return the variance of a difference by rounding alone: each number's error is uniform."""
        return self.tick**2 / 6

    def _history(self) -> Variance:
        """Return what history says of a pair today: nothing once its own pairs contradict it."""
        if self.trimmed:
            return variability.UNKNOWN
        # Two launches make a difference, each with the variance of one.
        value = 2 * self.prior_variance * self.day.factor
        df = min(self.prior_df, PRIOR_DF_CAP + self.day.df, MOST_PRIOR_DF)
        history = Variance(value, df)
        is_contradicted = self._seen().value > CONTRADICTING * history.value
        return variability.UNKNOWN if is_contradicted else history
