"""Pull requests of a regime, with seeds that never change: unchanged ones, and single changes.

The seeds are in two parts. Whoever tries out another rule or constant does so on the *open* one;
the *held out* one is only for the table that is published.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from benchmarks.verdicts import regimes
from benchmarks.verdicts.observed import Observed, Rows
from benchmarks.verdicts.regimes import Regime

Part = Literal["open", "held out"]
PARTS: tuple[Part, ...] = ("open", "held out")
SEED = 408
SUITE = 20
EFFECTS = (0.02, 0.03, 0.05, 0.10, -0.02, -0.03, -0.05, -0.10)
# What a limit of 5 % has to tell apart, and half of either limit.
LARGER_EFFECTS = (0.025, 0.04, 0.05, 0.075, 0.08, 0.10, 0.13, 0.20)
HALF_OF_DEFAULT = 0.01
# Their order is part of the seeds.
_KNOWN = (0.0, *EFFECTS, HALF_OF_DEFAULT, 0.025, 0.04, 0.075, 0.08, 0.13, 0.20)
# Pull requests that are simulated at once: a matter of memory.
AT_ONCE = 25


@dataclass(frozen=True)
class Batch:
    """Pull requests of one kind: what was seen, which rows count, and the truth about them."""

    effect: float
    observed: Observed
    rows: Rows


def unchanged(regime: Regime, part: Part, pull_requests: int) -> Iterator[Batch]:
    """Yield pull requests in which nothing has changed; every workload counts."""
    yield from _batches(regime, part, pull_requests, 0.0)


def changed(regime: Regime, part: Part, pull_requests: int, effect: float) -> Iterator[Batch]:
    """Yield pull requests in which one workload of twenty takes `effect` longer; it counts."""
    yield from _batches(regime, part, pull_requests, effect)


def _batches(regime: Regime, part: Part, pull_requests: int, effect: float) -> Iterator[Batch]:
    for first in range(0, pull_requests, AT_ONCE):
        count = min(AT_ONCE, pull_requests - first)
        rows = np.arange(count * SUITE)
        if effect:
            rows = np.arange(count) * SUITE + (first + np.arange(count)) % SUITE
        changes = np.zeros(count * SUITE)
        changes[rows] = np.log1p(effect)
        random = np.random.default_rng(_seed(regime, part, effect, first))
        observed = regimes.simulate(
            regime, pull_requests=count, suite=SUITE, changes=changes, random=random
        )
        yield Batch(effect, observed, rows)


def _seed(regime: Regime, part: Part, effect: float, first: int) -> tuple[int, ...]:
    kind = _KNOWN.index(effect)
    return SEED, regimes.REGIMES.index(regime), PARTS.index(part), kind, first
