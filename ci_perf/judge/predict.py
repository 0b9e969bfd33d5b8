"""A prediction: what history alone allows to say of the head, where the base cannot be launched.

Weaker evidence than a confirmation: that sessions differ is part of the error, and how much they
do is itself learned from few of them, or assumed. So it never says "regressed".
"""

from typing import Literal

from ci_perf.judge import student
from ci_perf.judge.confirm import POWER_TAIL
from ci_perf.judge.policy import Policy
from ci_perf.judge.screen import Screened

Prediction = Literal["unconfirmed", "unchanged", "inconclusive"]


def predict(screened: Screened, policy: Policy, alpha: float) -> Prediction:
    """Say whether the head lies beyond the floor, as far as history can tell.

    Share `alpha` with everything that was screened, not with the suspects only: these were chosen
    by the same numbers. The direction is the sign of `screened.difference`.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"expected 0 < alpha < 1, found {alpha}")
    if screened.clears(policy.margin):
        return "unchanged"
    reach = student.upper_quantile(alpha / 2, screened.df) * screened.error
    return "unconfirmed" if abs(screened.difference) - reach > policy.floor else "inconclusive"


def smallest_detectable(screened: Screened, policy: Policy, alpha: float) -> float:
    """Return the smallest true change that would mostly have been predicted (logarithm).

    Never below the margin: up to there "unchanged" is a right answer, too.
    """
    quantiles = student.upper_quantile(alpha / 2, screened.df)
    quantiles += student.upper_quantile(POWER_TAIL, screened.df)
    return max(policy.margin, policy.floor + quantiles * screened.error)
