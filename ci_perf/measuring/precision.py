"""Whether a launch has timed for long enough: by what its blocks and its launches differ.

A launch is one value in the interval that judges a workload. Its variance is that between launches
plus that of its own blocks, which falls as it times longer. Kalibera and Jones (Rigorous
Benchmarking in Reasonable Time, ISMM 2013, section 9) give the number of blocks that makes the
whole interval cheapest: sqrt(cost of a start / cost of a block * variance of blocks / variance
between launches). In other words: stop when the seconds spent on blocks are to the seconds spent on
the start as the variance that is left of the blocks is to the variance between launches.
"""

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise

from ci_perf.model.base import Statistic

_SHARES = {"median": 0.5, "p25": 0.25}
# Whatever disturbs blocks disturbs launches: the smallest ratios of what launches and what
# blocks differ by in 16 recordings (decision 23). The smallest times longest.
_LEAST_SHARE_OF_BLOCKS: dict[Statistic, float] = {"median": 0.8, "p25": 0.6, "min": 0.3}
# The two of a resident pair have their disturbances in common, and their blocks are compared one by
# one: pairs differ by this share of what blocks do, or by less (decision 025).
_SHARE_OF_BLOCKS_IN_PAIR = 0.2
# Of normal noise, the interquartile range in standard deviations.
_QUARTILES = 1.349
# Blocks that follow each other so closely say next to nothing new: more would be a division by 0.
_MOST_CORRELATION = 0.9


def is_enough(
    block_s: Sequence[float],
    statistic: Statistic,
    *,
    spent_s: float,
    start_s: float,
    launch_spread: float,
    in_pair: bool = False,
) -> bool:
    """Whether another launch would narrow the interval more than more blocks of this one.

    `spent_s` has gone into the blocks, `start_s` into everything before them. `launch_spread` is
    the standard deviation between launches, as a share of the value. `in_pair` says that each block
    has one of a partner beside it. Two blocks are the fewest.
    """
    is_by_blocks = in_pair and statistic == "median"
    least_share = _SHARE_OF_BLOCKS_IN_PAIR if is_by_blocks else _LEAST_SHARE_OF_BLOCKS[statistic]
    ordered = sorted(block_s)
    low, middle, high = statistics.quantiles(ordered, n=4)
    blocks = (high - low) / _QUARTILES
    launches = max(launch_spread * middle, least_share * blocks)
    error = _standard_error(ordered, statistic)
    if statistic != "min" and not is_by_blocks:
        correlation = _correlation(block_s, middle)
        error *= math.sqrt((1 + correlation) / (1 - correlation))
    return error**2 * start_s <= launches**2 * spent_s


def _standard_error(ordered: Sequence[float], statistic: Statistic) -> float:
    """Return that of an order statistic, without a model of the noise.

    Of a quantile: half the distance of the blocks whose ranks are one standard deviation of a
    binomial count around it. The smallest block lies above the true minimum by as much, on average,
    as the next ones lie above each other.
    """
    count = len(ordered)
    if statistic == "min":
        gaps = min(math.isqrt(count), count - 1)
        return (ordered[gaps] - ordered[0]) / gaps
    share = _SHARES[statistic]
    rank, deviation = share * (count - 1), math.sqrt(count * share * (1 - share))
    low = max(0, math.floor(rank - deviation))
    high = min(count - 1, math.ceil(rank + deviation))
    return (ordered[high] - ordered[low]) / 2


def _correlation(block_s: Sequence[float], middle: float) -> float:
    """Return how far a block resembles the one before it: by which side of the median it is on.

    Signs, because a single slow block would hide what all others have in common.
    """
    signs = [math.copysign(1.0, value - middle) for value in block_s if value != middle]
    if len(signs) < 2:
        return 0.0
    same = statistics.fmean(before * after for before, after in pairwise(signs))
    return min(max(math.sin(math.pi / 2 * same), 0.0), _MOST_CORRELATION)
