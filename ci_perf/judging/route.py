"""How often to launch the head before pairs, by what its history says before any number of today.

A launch more makes the screen surer, and pairs may be needed all the same. With one launch, which
exact numbers, numerics and warm caches need anyway, the workload goes to its pairs nearly at once.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ci_perf.judging import distributions
from ci_perf.judging.metric_values import History
from ci_perf.judging.policy import (
    BETA_CONFIRM,
    CALM_LOOKS,
    CALM_TOGETHER,
    CALM_WEIGHTS,
    MOST_PAIRS,
    SCREENED_LAUNCHES,
    Policy,
    PolicyKind,
    policy_of,
)
from ci_perf.judging.screen import Screened, foresee

# A suspect's base is launched once, uncounted, before its first pair.
_WARM_UPS = 1
# Looks that so few workloads reach add nothing to the mean.
_NEGLIGIBLE = 0.01


@dataclass(frozen=True, slots=True)
class Known:
    """The history of one noisy metric that gates: logarithms, one per launch."""

    kind: PolicyKind
    policy: Policy
    history: History


def launches(workloads: Mapping[str, Sequence[Known]]) -> dict[str, int]:
    """Return how many launches of the head each workload of a suite starts with, 1 or more.

    That number for which the expected launches, those of the pairs included, are fewest if nothing
    has changed. A workload of which nothing is known gets as many as a screen may use at most.
    """
    numbers = range(1, SCREENED_LAUNCHES + 1)
    foreseen = {number: _foreseen(workloads, number) for number in numbers}
    return {
        name: _cheapest(known, {number: foreseen[number][name] for number in numbers})
        if known
        else SCREENED_LAUNCHES
        for name, known in workloads.items()
    }


def expected_pairs(policy: Policy, variance: float, df: float) -> float:
    """Return after how many pairs "unchanged" will be said, in the mean, if nothing has changed.

    `variance` is that of a pair's difference, worth `df` observations. A look is taken to fail
    whenever an earlier one that is surer has failed; without any history it is the first look that
    needs none, and with too much noise the last one.
    """
    if variance <= 0 or df <= 0:
        return float(CALM_LOOKS[1])
    spread, open_share, before, pairs = math.sqrt(variance), 1.0, 0, 0.0
    for look, weight in zip(CALM_LOOKS, CALM_WEIGHTS, strict=True):
        pairs += (look - before) * open_share
        tail = BETA_CONFIRM * CALM_TOGETHER * weight
        reach = distributions.student_quantile(tail, df + look - 1) / math.sqrt(look)
        room = (policy.margin - reach * spread) * math.sqrt(look) / spread
        open_share = min(open_share, 1 - _within(room, df + look - 1))
        before = look
        if open_share < _NEGLIGIBLE:
            break
    return min(pairs, MOST_PAIRS)


def _foreseen(workloads: Mapping[str, Sequence[Known]], number: int) -> dict[str, list[Screened]]:
    """Screen each kind of metric of all workloads together, as if nothing had changed."""
    results: dict[str, list[Screened]] = {name: [] for name in workloads}
    for kind in PolicyKind:
        of_kind = [
            (name, metric.history)
            for name, known in workloads.items()
            for metric in known
            if metric.kind is kind
        ]
        if of_kind:
            names, histories = zip(*of_kind, strict=True)
            for name, result in zip(
                names, foresee(histories, policy_of(kind), number), strict=True
            ):
                results[name].append(result)
    return results


def _cheapest(known: Sequence[Known], foreseen: Mapping[int, Sequence[Screened]]) -> int:
    """Return the number of launches that costs least; what was foreseen is sorted by kind."""
    margins = [metric.policy.margin for metric in _by_kind(known)]
    pairs = max(
        expected_pairs(metric.policy, 2 * result.prior_variance, result.prior_df)
        for metric, result in zip(_by_kind(known), foreseen[1], strict=True)
    )

    def cost(number: int) -> float:
        both = zip(foreseen[number], margins, strict=True)
        passing = math.prod(_passes(result, margin) for result, margin in both)
        return number + (1 - passing) * (_WARM_UPS + 2 * pairs)

    return min(foreseen, key=cost)


def _by_kind(known: Sequence[Known]) -> list[Known]:
    return sorted(known, key=lambda metric: list(PolicyKind).index(metric.kind))


def _passes(screened: Screened, margin: float) -> float:
    """Return the chance that the screen clears a metric that has not changed."""
    if not screened.clears(margin):
        return 0.0
    return _within((margin - screened.high) / screened.error, screened.df)


def _within(reach: float, df: float) -> float:
    """Return P(|T| < reach), 0 where the reach is none."""
    return 1 - 2 * distributions.student_tail(reach, df) if reach > 0 else 0.0
