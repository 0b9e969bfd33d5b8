"""What the workloads of a suite say together about the spread of each (empirical Bayes).

A variance of three launches is nearly a guess. Workloads of one suite on one machine have
variances of similar size, so each is drawn towards what the others have: Smyth, "Linear models
and empirical Bayes methods", 2004, by moments of the log variances.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from ci_perf.judge import gamma, logarithms
from ci_perf.judge.policy import SMALLEST_VARIANCE


@dataclass(frozen=True, slots=True)
class Variance:
    """A variance, and the degrees of freedom it is worth; none means that nothing is known."""

    value: float
    df: float


UNKNOWN = Variance(0.0, 0.0)


def prior(
    variances: Sequence[Variance], bounds: tuple[float, float], *, assumed_df: float = 0.0
) -> Variance:
    """Return what the variances have in common, worth between the two `bounds`.

    Never worth more than the observations it is made of, of which `assumed_df` are added later.
    Unknown when fewer than two variances are known: one has nothing in common with itself.
    """
    known = [variance for variance in variances if variance.df > 0]
    if len(known) < 2:
        return UNKNOWN
    logs = [_unbiased_log(variance) for variance in known]
    noise = math.fsum(gamma.trigamma(variance.df / 2) for variance in known) / len(known)
    excess = logarithms.squares(logs) / (len(logs) - 1) - noise
    least, most = bounds
    most = min(most, assumed_df + math.fsum(variance.df for variance in known))
    df = most if excess <= 0 else min(max(2 * gamma.inverse_trigamma(excess), least), most)
    centre = statistics.fmean(logs) + gamma.digamma(df / 2) - math.log(df / 2)
    return Variance(math.exp(centre), df)


def moderate(own: Variance, shared: Variance) -> Variance:
    """Draw one workload's variance towards what the suite has in common."""
    df = own.df + shared.df
    if df <= 0:
        return UNKNOWN
    return Variance((own.df * own.value + shared.df * shared.value) / df, df)


def _unbiased_log(variance: Variance) -> float:
    """Return the log variance less what few observations put it off by, on average."""
    half = variance.df / 2
    return math.log(max(variance.value, SMALLEST_VARIANCE)) - gamma.digamma(half) + math.log(half)
