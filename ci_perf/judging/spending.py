"""What one check may spend where others came before: pushes, and runs of the same commits.

The checks of a pull request alarm together as often as promised (`ALPHA`), however many follow:
check *k* may spend a share proportional to k^-1.6, and all shares add up to one. This is alpha
spending for a stream of tests without an end (Foster & Stine 2008; Tian & Ramdas 2021, "Online
control of the familywise error rate"; the exponent is that of Ramdas et al. 2018, SAFFRON). A share
is fixed before the first pair of its check, so the union bound holds whatever the checks have in
common.

A run of commits that were measured before goes on with all of their pairs. It looks at numbers of
pairs that are fixed beforehand, with shares of its own, so that it does not matter why the run
before stopped.
"""

import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass

from ci_perf.judging.policy import (
    CALM_LOOKS,
    CALM_WEIGHTS,
    LOOKS,
    MOST_PAIRS,
    WEIGHT_OF_SIGNS,
    WEIGHTS,
)

# A larger exponent leaves more to the first check and less to late ones: of the losses by 3 % on
# noisy simulated machines the 1st, 5th and 20th check find 81, 63 and 47 % with 1.6, and 84, 59 and
# 34 % with 2.
_EXPONENT = 1.6
# The sum of k^-1.6 over all k: Riemann's zeta function (scipy.special.zeta(1.6)).
_SUM = 2.28576566568
# Beyond the looks of one run there is one whenever so many pairs more are known.
_STEP = 6


def share(number: int) -> float:
    """Return the share of the `number`-th check (from 1); the shares of all add up to 1."""
    if number < 1:
        raise ValueError(f"expected checks to be counted from 1, found {number}")
    return math.pow(number, -_EXPONENT) / _SUM


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """After how many pairs, those of earlier runs counted, a confirmation may decide.

    ``alarm`` and ``signs`` (the sign test) map numbers of pairs to shares of alpha, ``calm`` to
    shares of beta. ``last`` is where the confirmation ends.
    """

    alarm: dict[int, float]
    signs: dict[int, float]
    calm: dict[int, float]
    last: int

    def next(self, pairs: int) -> int:
        """Return the first look at an alarm after so many pairs, or the last one."""
        looks = sorted(self.alarm)
        return looks[min(bisect_right(looks, pairs), len(looks) - 1)]

    def calm_share(self, pairs: int) -> float:
        """Return the share of beta of the last look at "unchanged" among so many pairs."""
        looks = sorted(self.calm)
        return self.calm[looks[max(bisect_right(looks, pairs) - 1, 0)]]


def looks(calm_of_one: Mapping[int, float], *, runs: int = 1, before: int = 0) -> Looks:
    """Return the looks of the last of `runs` runs, where `before` pairs were known at its start.

    `calm_of_one` are the shares of beta of the looks of a single run.

    Weights depend on how many runs there are and not on where the one before stopped: shares of
    looks that lie behind are not given back. "Unchanged" in a later run costs beta once more, by
    its `share`.
    """
    if runs < 1 or not 0 <= before <= (runs - 1) * MOST_PAIRS:
        raise ValueError(f"expected at most {MOST_PAIRS} pairs per earlier run, found {before}")
    further = range(MOST_PAIRS + _STEP, runs * MOST_PAIRS + 1, _STEP)
    rise = WEIGHTS[-1] - WEIGHTS[-2]
    alarm = dict(zip(LOOKS, WEIGHTS, strict=True))
    alarm |= {pairs: WEIGHTS[-1] + rise * (i + 1) for i, pairs in enumerate(further)}
    signs = {MOST_PAIRS * (run + 1): WEIGHT_OF_SIGNS for run in range(runs)}
    calm = {**calm_of_one, **dict.fromkeys(further, calm_of_one[MOST_PAIRS])}
    of_alpha = math.fsum((*alarm.values(), *signs.values()))
    of_beta = math.fsum(calm.values()) / (share(runs) if runs > 1 else 1)
    last = max(pairs for pairs in alarm if pairs <= before + MOST_PAIRS)
    return Looks(
        alarm=_between(alarm, before, last, of_alpha),
        signs=_between(signs, before, last, of_alpha),
        calm=_between(calm, before, last, of_beta),
        last=last,
    )


def _between(weights: dict[int, float], before: int, last: int, whole: float) -> dict[int, float]:
    return {pairs: weights[pairs] / whole for pairs in weights if before < pairs <= last}


ONE_RUN = looks(dict(zip(CALM_LOOKS, CALM_WEIGHTS, strict=True)))
