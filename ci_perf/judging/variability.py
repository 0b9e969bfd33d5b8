"""How launches of the same code differ: their variance, two modes, and the rounding of the numbers.

Launch values are natural logarithms. Nothing here is a verdict.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from ci_perf.judging import distributions
from ci_perf.judging.policy import DAY_PRIOR_DF, LARGEST_DAY, SMALLEST_VARIANCE

# --- variances that the workloads of a suite share


class Variance(msgspec.Struct, frozen=True):
    """A variance, and the degrees of freedom it is worth; none means that nothing is known."""

    value: float
    df: float


UNKNOWN = Variance(0.0, 0.0)


def prior(
    variances: Sequence[Variance], bounds: tuple[float, float], *, assumed_df: float = 0.0
) -> Variance:
    """Return what the variances have in common, worth between the two `bounds`.

    A variance of three launches is nearly a guess. Workloads of one suite on one machine have
    variances of similar size, so each is drawn towards what the others have (empirical Bayes):
    Smyth, "Linear models and empirical Bayes methods", 2004, by moments of the log variances.
    Never worth more than the observations it is made of, of which `assumed_df` are added later.
    Unknown when fewer than two variances are known: one has nothing in common with itself.
    """
    known = [variance for variance in variances if variance.df > 0]
    if len(known) < 2:
        return UNKNOWN
    logs = [_correct_log(variance) for variance in known]
    noise = math.fsum(distributions.trigamma(variance.df / 2) for variance in known) / len(known)
    excess = distributions.sum_of_squares(logs) / (len(logs) - 1) - noise
    least, most = bounds
    most = min(most, assumed_df + math.fsum(variance.df for variance in known))
    df = most if excess <= 0 else min(max(2 * distributions.inverse_trigamma(excess), least), most)
    centre = statistics.fmean(logs) + distributions.digamma(df / 2) - math.log(df / 2)
    return Variance(math.exp(centre), df)


def pool(groups: Sequence[Sequence[float]]) -> Variance:
    """Return the variance around each group's own mean."""
    df = sum(len(group) - 1 for group in groups)
    if df == 0:
        return UNKNOWN
    return Variance(math.fsum(map(distributions.sum_of_squares, groups)) / df, df)


def moderate(own: Variance, shared: Variance) -> Variance:
    """Draw one workload's variance towards what the suite has in common."""
    df = own.df + shared.df
    if df <= 0:
        return UNKNOWN
    return Variance((own.df * own.value + shared.df * shared.value) / df, df)


def _correct_log(variance: Variance) -> float:
    """Return the log variance less what few observations put it off by, on average."""
    half = variance.df / 2
    return (
        math.log(max(variance.value, SMALLEST_VARIANCE))
        - distributions.digamma(half)
        + math.log(half)
    )


# --- the mean of pairs


@dataclass(frozen=True, slots=True)
class Centre:
    """The mean of n values. ``variance / n`` is the square of its standard error."""

    mean: float
    variance: float
    df: float


def trim_mean(values: Sequence[float], share: float) -> Centre:
    """Return the mean without this share of the values (at least one) on each side, rounded down.

    Its error is that of Yuen, "The two-sample trimmed t for unequal population variances",
    Biometrika 1974, for one sample. With g of n values left out on each side, h = n - 2g are left.
    The outer values are moved to the outermost of those left; the sum of squares of the n values
    around their mean, divided by h (h - 1), is the square of the standard error. It is worth h - 1
    degrees of freedom. With a share of zero, this is the plain mean.
    """
    cut = count_trimmed(len(values), share)
    left = sorted(values)[cut : len(values) - cut]
    if len(left) < 2:
        return Centre(statistics.fmean(left), 0.0, 0.0)
    squares = distributions.sum_of_squares([*[left[0]] * cut, *left, *[left[-1]] * cut])
    df = len(left) - 1
    return Centre(statistics.fmean(left), len(values) * squares / (len(left) * df), df)


def count_trimmed(values: int, share: float) -> int:
    """Return how many of so many values a trimmed mean leaves out on each side."""
    return int(share * values + _FLOAT_ERROR)


# --- today against the history


@dataclass(frozen=True, slots=True)
class Day:
    """How many times as large as the history's the variance of a pair is today.

    ``df`` degrees of freedom say so; without any, today is a day like others.
    """

    factor: float
    df: float


USUAL_DAY = Day(1.0, 0.0)


def day(suspects: Iterable[tuple[float, Sequence[float]]]) -> Day:
    """Return what the pairs of all suspects together say of today.

    Each suspect gives the variance of a pair by its history, and the differences of its pairs. A
    single one is compared with zero: mostly nothing has changed, and what has makes the day look
    noisier than it is.
    """
    squares, pairs = [DAY_PRIOR_DF], 0
    for usual, differences in suspects:
        if usual <= 0 or not differences:
            continue
        df = max(len(differences) - 1, 1)
        is_single = len(differences) == 1
        of_all = differences[0] ** 2 if is_single else distributions.sum_of_squares(differences)
        squares.append(df * min(of_all / df / usual, LARGEST_DAY))
        pairs += df
    # Exact, so that no order of the suspects changes the last digit.
    return Day(math.fsum(squares) / (DAY_PRIOR_DF + pairs), float(pairs))


# --- the usual variance

# The upper quartile of |difference| of two normal numbers, in their standard deviations:
# sqrt(2) times the 87.5 % quantile of the normal distribution, 1.15035.
_QUARTILE_OF_DIFFERENCE = 1.62684
# Each launch is compared with so many after it: all pairs of a session as it is mostly recorded,
# and no square of the number in a long one.
_NEIGHBOURS = 9


def usual_variance(sessions: Sequence[Sequence[float]]) -> float:
    """Return the variance of most launches of a session, which no outlier enlarges.

    0 where no session has two launches. Two modes do enlarge it where the smaller one has 15 % of
    the launches or more: of two launches, a quarter then are in different modes, and the upper
    quartile of differences sees them.
    """
    differences = [difference for session in sessions for difference in _differences(session)]
    if len(differences) < 2:
        return 0.0
    quartile = statistics.quantiles(differences, n=4, method="inclusive")[-1]
    return (quartile / _QUARTILE_OF_DIFFERENCE) ** 2


def _differences(session: Sequence[float]) -> Iterator[float]:
    for i, launch in enumerate(session):
        for other in session[i + 1 : i + 1 + _NEIGHBOURS]:
            yield abs(launch - other)


# --- two modes

# How far apart the modes are, in standard deviations within them. Launches that are spread
# normally look like two modes in 6 % of cases of 6 launches, in 1 % of 10, in none of 18 (1500
# simulated cases each); two modes 8 deviations apart, with 30 % of the launches in one, are seen
# in 48, 72 and 79 %.
_SPREADS_APART = 4.0
# A mode needs two launches: one that lies apart is an outlier.
_SMALLEST_MODE = 2
# Of four or five launches, two pairs lie apart by chance in one case of ten.
_FEWEST_LAUNCHES = 6
# Of several sessions together. Launches that are spread normally look like two modes in 5 % of
# cases of 3 sessions of 5, in 1.5 % of 5 sessions; two modes 8 deviations apart, with 30 % of the
# launches in one, are seen in 92 % and 97 % (4000 and 2000 simulated cases each).
_FEWEST_IN_A_SESSION = 4
_FEWEST_IN_ALL = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Modes:
    """Where the two modes lie (mean logarithms), and how many launches each has.

    Launches of one commit have two speeds where a kernel is chosen, or memory placed, in two ways;
    a few launches may all show the same one.
    """

    low: float
    high: float
    low_launches: int
    high_launches: int


def have_two_modes(sessions: Sequence[Sequence[float]], *, smallest_gap: float) -> bool:
    """Whether launches have two modes: in one session that is long enough, or in most of several.

    Several are never mixed, because sessions differ, too. A gap counts within a session, but what
    is left of the spread beside the gaps is measured over all of them.
    """
    if any(two_modes(session, smallest_gap=smallest_gap) for session in sessions):
        return True
    sessions = [session for session in sessions if len(session) >= _FEWEST_IN_A_SESSION]
    launches = sum(map(len, sessions))
    if launches < _FEWEST_IN_ALL:
        return False
    splits = [_split(session, smallest_mode=1) for session in sessions]
    spread = math.sqrt(math.fsum(split.squares for split in splits) / (launches - 2 * len(splits)))
    least = max(smallest_gap, _SPREADS_APART * spread)
    return sum(split.gap > least for split in splits) > len(splits) / 2


def exclude_two_modes(sessions: Sequence[Sequence[float]], *, smallest_gap: float) -> bool:
    """Whether there are enough launches to see two modes, and none are seen."""
    sizes = [len(session) for session in sessions]
    in_several = sum(size for size in sizes if size >= _FEWEST_IN_A_SESSION)
    is_enough = in_several >= _FEWEST_IN_ALL or any(size >= _FEWEST_LAUNCHES for size in sizes)
    return is_enough and not have_two_modes(sessions, smallest_gap=smallest_gap)


def two_modes(launches: Sequence[float], *, smallest_gap: float) -> Modes | None:
    """Return the two modes of launch values of one session, or `None` where there is one.

    `launches` are natural logarithms. A gap up to `smallest_gap`, such as the floor of the policy,
    harms nobody. Launches of several sessions must not be mixed: sessions differ, too.
    """
    distributions.check_logarithms(launches, what="the launches of a session")
    if len(launches) < _FEWEST_LAUNCHES:
        return None
    split = _split(launches, smallest_mode=_SMALLEST_MODE)
    spread = math.sqrt(split.squares / (len(launches) - 2))
    if split.gap <= max(smallest_gap, _SPREADS_APART * spread):
        return None
    return Modes(
        low=statistics.fmean(split.low),
        high=statistics.fmean(split.high),
        low_launches=len(split.low),
        high_launches=len(split.high),
    )


@dataclass(frozen=True, slots=True)
class _Split:
    """Launches parted at their largest gap."""

    gap: float
    low: Sequence[float]
    high: Sequence[float]

    @property
    def squares(self) -> float:
        """The sum of squares that is left within the two parts."""
        return distributions.sum_of_squares(self.low) + distributions.sum_of_squares(self.high)


def _split(launches: Sequence[float], *, smallest_mode: int) -> _Split:
    """Part launches at the largest gap that leaves so many on both sides of it."""
    ordered = sorted(launches)
    gaps = [(after - before, place) for place, (before, after) in enumerate(pairwise(ordered), 1)]
    gap, place = max(gaps[smallest_mode - 1 : len(ordered) - smallest_mode])
    return _Split(gap, ordered[:place], ordered[place:])


# --- rounding

# A tick below this share of the smallest value hides nothing: a tenth of the smallest limit.
_NEGLIGIBLE = 5e-4
# What float arithmetic does to a multiple, with room to spare: shares of the smallest value, and
# of the largest one.
_FLOAT_ERROR, _FLOAT_ERROR_OF_LARGEST = 1e-9, 1e-14
# The greatest common divisor of so many different multiples is the tick itself in 96 % of cases
# (1 / zeta(5)). Of fewer it may be a multiple of it, and only a power of ten is believed.
_ENOUGH_VALUES = 5


def relative_tick(values: Iterable[float], numbers: Iterable[float]) -> float:
    """Return the tick of measured values > 0 as a logarithm, relative to the smallest of `numbers`.

    The tick is that of a clock, or of the rounding of whoever wrote the values down. `numbers` are
    those of launches that were made of the values: each is a value or the middle of two, and
    rounding keeps their order, so the tick of the values is that of the numbers. 0 where it is
    negligible, or where all values are the same and nobody can know it.
    """
    different = sorted(set(values))
    if len(different) < 2:
        return 0.0
    smallest = min(numbers)
    tolerance = max(_FLOAT_ERROR * smallest, _FLOAT_ERROR_OF_LARGEST * different[-1])
    tick = 0.0
    for value in different:
        tick = _common_divisor(value, tick, tolerance)
        tick = value / round(value / tick)  # or errors would grow from value to value
        if tick < _NEGLIGIBLE * smallest:
            return 0.0
    if len(different) < _ENOUGH_VALUES:
        tick = _power_of_ten(tick, different, tolerance)
    share = float(f"{tick / smallest:.6g}")
    return math.log1p(share) if share >= _NEGLIGIBLE else 0.0


def _common_divisor(a: float, b: float, tolerance: float) -> float:
    """Return the greatest common divisor, by Euclid's algorithm; less than `tolerance` is zero."""
    while b > tolerance:
        a, b = b, abs(math.remainder(a, b))
    return a


def _power_of_ten(tick: float, values: Iterable[float], tolerance: float) -> float:
    """Return the largest power of ten, at most `tick`, of which all values are multiples."""
    exponent = math.floor(math.log10(tick) + 1e-6)
    while 10.0**exponent > tolerance:
        if all(abs(math.remainder(value, 10.0**exponent)) <= tolerance for value in values):
            return 10.0**exponent
        exponent -= 1
    return 0.0
