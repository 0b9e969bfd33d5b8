"""A prediction: what history alone allows to say of the head, where the base cannot be launched.

Weaker evidence than a confirmation: that sessions differ is part of the error, and how much they
do is itself learned from few of them. So it never says "regressed".
"""

from typing import Literal

from ci_perf.judge import student
from ci_perf.judge.policy import PREDICTING_SESSIONS, Policy
from ci_perf.judge.screen import Screened

Prediction = Literal["unconfirmed", "unchanged", "inconclusive"]


def predict(screened: Screened, policy: Policy, alpha: float) -> Prediction:
    """Say whether the head lies beyond the floor, as far as history can tell.

    Share `alpha` with everything that was screened, not with the suspects only: these were chosen
    by the same numbers. The direction is the sign of `screened.difference`.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"expected 0 < alpha < 1, found {alpha}")
    if not screened.is_suspect:
        return "unchanged"
    if screened.sessions < PREDICTING_SESSIONS:
        return "inconclusive"
    reach = student.upper_quantile(alpha / 2, screened.df) * screened.error
    return "unconfirmed" if abs(screened.difference) - reach > policy.floor else "inconclusive"
