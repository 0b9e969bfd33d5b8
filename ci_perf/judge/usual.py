"""The usual variance of launches: of most of them, so that no outlier enlarges it.

Two modes do enlarge it, which the upper quartile of differences sees where they have 15 % of the
launches or more: of two launches, a quarter then are in different modes.
"""

import statistics
from collections.abc import Iterator, Sequence

# The upper quartile of |difference| of two normal numbers, in their standard deviations:
# sqrt(2) times the 87.5 % quantile of the normal distribution, 1.15035.
_QUARTILE_OF_DIFFERENCE = 1.62684
# Each launch is compared with so many after it: all pairs of a session as it is mostly recorded,
# and no square of the number in a long one.
_NEIGHBOURS = 9


def variance(sessions: Sequence[Sequence[float]]) -> float:
    """Return the usual variance of launches of the same session; 0 where no session has two."""
    differences = [difference for session in sessions for difference in _differences(session)]
    if len(differences) < 2:
        return 0.0
    quartile = statistics.quantiles(differences, n=4, method="inclusive")[-1]
    return (quartile / _QUARTILE_OF_DIFFERENCE) ** 2


def _differences(session: Sequence[float]) -> Iterator[float]:
    for i, launch in enumerate(session):
        for other in session[i + 1 : i + 1 + _NEIGHBOURS]:
            yield abs(launch - other)
