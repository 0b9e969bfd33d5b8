"""How much may be claimed, and how surely: constants of both stages, and the default limits.

Sizes are differences of natural logarithms, so 0.01 is a change of about 1 %. Where a comment says
"in simulation", machines were simulated with spreads between steps, launches and sessions; docs/
accuracy.md says how right the whole turned out to be.
"""

import functools
import math
from dataclasses import dataclass, field
from enum import StrEnum

from ci_perf.model import metrics, run
from ci_perf.model.baseline import Calibration
from ci_perf.model.environment import CpuMachine, Machine
from ci_perf.model.metrics import Kind, Metric
from ci_perf.model.suite import Limit, Limits

# The chance that a pull request in which no change is larger than half its limit gets any alarm
# at all, over all suspects, looks and sides.
ALPHA = 0.05
# The second way to an alarm, at the last look: the change is proven beyond zero at this share of
# alpha, and the estimate lies beyond the limit. Alarms are tested against half the limit, so
# without a change they are far rarer than promised, and this spends some of what they leave. At the
# last look alone, where it finds most: a share of 0.4 over all looks finds no more, and alarms more
# often.
ALPHA_BEYOND_ZERO = 0.15
# What each look of a confirmation spends of its share of alpha on a side: 1 is the side on which
# the screen saw the head, -1 the other; 0 is either side where nothing was screened. A change that
# is there is mostly seen on its own side: in simulation 84.4 instead of 81.4 % of the changes by
# 3 % were found on bimodal machines, 93.8 instead of 91.6 % on noisy ones. The other side keeps
# something: the screen compares with another day.
ALPHA_OF_SIDE = {1: 0.9, 0: 0.5, -1: 0.1}
# The chance that a change as large as the limit is passed by the screen, and, if it is not, that
# the confirmation calls it unchanged. One-sided: a change has one direction. Nearly all changes
# that were missed on drifting machines were passed by the screen, and 3 instead of 5 % there found
# 99.8 instead of 98.4 % of those by 3 %. The confirmation may take more: that saves launches where
# the screen cannot help (docs/decisions/024).
BETA_SCREEN = 0.03
BETA_CONFIRM = 0.06

# Launches of the head that the screen needs. What sessions differ by is the larger part of its
# error, and no launch more makes that smaller; the confirmation launches its own.
SCREENED_LAUNCHES = 3

# Numbers of pairs after which a confirmation may raise an alarm; 18 pairs of 20 s are six minutes.
# Not earlier: of four pairs, all bases are in the fast mode of a workload with two modes and all
# heads in the slow one in 0.4 % of cases, which made alarms in 4 to 13 % of unchanged suites of
# twenty. docs/decisions/013 has the measurements behind looks, weights and spread of an alarm.
# In simulation, looks that share alpha found +3 % on noisy machines in 97 % of cases, a test valid
# after every pair (e-process) in 89 %. Looking after every pair without sharing called a change
# as large as half the limit beyond it in 4 to 9 % instead of 1.5 %.
LOOKS = (6, 9, 13, run.MOST_PAIRS)
# An early look comes before them, and alarms only where a loss is obvious: each of its pairs shows
# at least so much, and so many times the largest gap between two launches of one side. Where a
# count has grown, and the history has launches that would show two modes, less is enough: so many
# limits, and at least so much. In benchmarks.verdicts.early none of 64,000 unchanged pull requests
# has such an alarm. A 3 among LOOKS instead would end far rows after three pairs as green.
EARLY_PAIRS = 3
OBVIOUS, OBVIOUS_WITH_COUNTS = 1.0, 0.15
OBVIOUS_LIMITS, OBVIOUS_GAPS = 3, 2
FEWEST_KNOWN_LAUNCHES = 5
# Each look's share of alpha: late looks, with more pairs, get more. Together with the sign test's,
# after the last pair, and the early look's, which the last look gives, they add up to 1. So the
# union bound holds, however they depend on each other.
WEIGHT_OF_EARLY = 1 / 50
WEIGHTS = (2 / 15, 3 / 15, 4 / 15, 5 / 15 - WEIGHT_OF_EARLY)
WEIGHT_OF_SIGNS = 1 / 15
# After which numbers of pairs it may say "unchanged", and each look's share of beta. They begin
# earlier, because no alarm can come of it. Wherever an alarm is looked for, so is this.
CALM_LOOKS = (1, 2, 3, 4, *LOOKS)
CALM_WEIGHTS = tuple(look / 20 for look in (6, 4, 2, 2, 2, 1, 1, 2))
# The same where no history knows how much launches differ. The pairs must show it themselves, so
# one of them says nothing, and two or three only where they hardly differ (docs/decisions/024).
CALM_WEIGHTS_WITHOUT_HISTORY = dict(
    zip(CALM_LOOKS[1:], (look / 20 for look in (1, 2, 5, 4, 3, 2, 3)), strict=True)
)
# After how many pairs "unchanged" then mostly comes, where they differ by half the limit.
PAIRS_WITHOUT_HISTORY = 4
# What the looks may spend of beta together. They look at the same pairs and err together: of
# changes as large as the limit 6.1 % are missed after any look, and not 9.6 % (100,000 simulated
# cases; docs/decisions/024). Without a history 5.8 %, and not 9 %.
CALM_TOGETHER, CALM_TOGETHER_WITHOUT_HISTORY = 1.6, 1.5
# How many degrees of freedom must speak of today before a single pair may say "unchanged". Without
# such pairs an unchanged workload of a typical machine takes 4.85 instead of 4.05 launches.
DAY_KNOWN_DF = 3.0
# Where launches have heavy tails, the mean of pairs leaves out this share of them on each side, as
# Yuen 1974 and Wilcox ("Introduction to Robust Estimation and Hypothesis Testing") advise: one of
# five pairs. Such pairs say "unchanged" late: a trimmed mean of few of them knows little of its
# error, and what the last look may spend more makes its interval a fifth narrower. Of 50 simulated
# pull requests on heavy machines it finds 82 instead of 63 % of the changes by 2 %, and leaves 0.1
# instead of 23 % of the unchanged workloads open.
TRIMMED = 0.2
TRIMMED_CALM_WEIGHTS = dict(zip(LOOKS, (1 / 20, 2 / 20, 3 / 20, 14 / 20), strict=True))
# Which shares of the blocks of a resident pair may be left out on each side: the one with the least
# error of the mean is, as in Jaeckel, "Some flexible estimates of location", Annals of Mathematical
# Statistics 1971. Nearly a median where something else runs beside many of the blocks
# (docs/decisions/009).
TRIMMED_BLOCKS = (TRIMMED, 0.3, 0.4)
# After how many pairs exact numbers, and what is judged by ranges, are decided.
PAIRS_FOR_RANGES = 4
# Where every confirmation ends.
MOST_PAIRS = LOOKS[-1]

# What a prior learned from the suite may count at least and at most (degrees of freedom). The
# method of moments of Smyth 2004 says "infinite" when all workloads happen to look alike, and
# nearly nothing when one differs wildly; neither is believed.
SESSION_PRIOR_DF = (1.0, 30.0)
LAUNCH_PRIOR_DF = (0.5, 20.0)
# The most that history may count beside the fresh pairs when "unchanged" is said: its launches are
# of another day. It counts more, up to the second number, by each pair of any suspect that shows
# how much launches differ today. An alarm never looks at its spread: with that, a history calmer
# than today made false alarms of 16 to 30 % of unchanged suites of twenty suspects, in simulation.
PRIOR_DF_CAP, MOST_PRIOR_DF = 8.0, 30.0
# Today's variance over the history's: no suspect says more than this factor, so that a change of
# one does not speak for all; and the mean counts the assumption that nothing differs as so many
# pairs more. docs/decisions/024 has the measurements.
LARGEST_DAY = 12.0
DAY_PRIOR_DF = 3.0
# How many times as large as the history's a variance of the pairs shows that today is another kind
# of day, so that the history is forgotten. Of four pairs that differ as ever 0.7 % do so by chance,
# of eighteen none. Without it a calm history called a change like the limit unchanged in 29 %.
CONTRADICTING = 4.0
# With fewer sessions, how much they differ is mostly the policy's assumption, and a verdict from
# history alone would rest on it.
PREDICTING_SESSIONS = 3
# A spread of one millionth: less is rounding, and has no logarithm when it is zero.
SMALLEST_VARIANCE = 1e-12


class PolicyKind(StrEnum):
    """How a noisy metric behaves. What is exact needs no policy: ranges decide there."""

    TIME = "time"  # the middle of many steps
    TAIL = "tail"  # their 95th percentile: twice as many launches for the same certainty
    ONE_OFF = "one_off"  # one value per launch (compilation, first step): skewed
    HOST_MEMORY = "host_memory"  # nearly deterministic


# Which noisy metrics are judged how. All others are compared exactly, or by ranges.
KIND_OF = {
    Kind.TIME: PolicyKind.TIME,
    Kind.TAIL: PolicyKind.TAIL,
    Kind.ONE_OFF: PolicyKind.ONE_OFF,
    Kind.ENERGY: PolicyKind.ONE_OFF,  # a time and a power in one number, from a coarse counter
    Kind.HOST_MEMORY: PolicyKind.HOST_MEMORY,
}


# One ratio in two units differs by less, in logarithms of times: it must not change an answer where
# launches do not differ at all, and the ratio is the very one of a limit.
FLOAT_ERROR = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Policy:
    """What counts as a change of one kind of metric, in natural logarithms.

    "Unchanged" promises less than `limit`, and an alarm needs proof of more than `half_limit`.
    Between the two either answer is right, so that looking again ends in a true one. The smallest
    policy is the one of the smallest limit.
    `session_spread` is how much sessions are assumed to differ (standard deviation) while the
    history cannot tell; it counts as `prior_df` observations. `lone_session_spread` is the same of
    a history of one session, and as much larger as the limit: where a team allows more, the machine
    differs more, and a single session must not clear what another day hides.
    """

    limit: float
    session_spread: float
    lone_session_spread: float = 0.0
    prior_df: float = 4.0
    half_limit: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not (self.limit > 0 and self.session_spread > 0 and self.prior_df > 0):
            raise ValueError(
                f"expected limit > 0, session_spread > 0 and prior_df > 0, found {self}"
            )
        object.__setattr__(self, "half_limit", math.log1p(math.expm1(self.limit) / 2))

    def is_beyond_half(self, size: float) -> bool:
        """Whether a change is larger than half the limit, by more than the error of floats."""
        return size > self.half_limit + FLOAT_ERROR

    def is_below_limit(self, size: float) -> bool:
        """Whether a change is smaller than the limit, by more than the error of floats."""
        return size < self.limit - FLOAT_ERROR

    def clears(self, low: float, high: float) -> bool:
        """Whether an interval of the change says "unchanged".

        It excludes a change as large as the limit. One that lies beyond half the limit on one side
        says that something has changed, and clears nothing.
        """
        return self.is_below_limit(max(high, -low)) and not self.is_beyond_half(max(low, -high))


# Limit and session spread, as relative sizes (0.01 for 1 %). Limits are choices: small enough to
# matter, large enough to be decided in time. That of times lets +3 % be found on all typical
# machines. The spreads lie between runs of CPython's benchmark machines days apart (1.1 to 2 %)
# and launches of MLPerf Training v4.0 (0.13 %); peak host memory of 1260 launches of torch
# differed by 0.14 %.
_DEFAULT = {
    PolicyKind.TIME: (0.02, 0.01),
    PolicyKind.TAIL: (0.06, 0.015),
    PolicyKind.ONE_OFF: (0.10, 0.02),
    PolicyKind.HOST_MEMORY: (0.02, 0.002),
}
# The limit of a time on a CPU. Its caches and clocks are shared with everything that runs there: on
# simulated noisy machines an unchanged workload costs 3 launches, and 18 at 2 %.
_CPU_TIME = 0.05
# Canaries on a CPU that others use move as much as everything else.
_CPU_CANARY = 0.3


# The metrics of a suite mostly have few limits, and each is asked for often.
@functools.lru_cache(maxsize=4096)
def policy_of(kind: PolicyKind, limit: float | None = None) -> Policy:
    """Return the policy of a kind of metric; `limit` is a share, and the default of the kind."""
    of_kind, spread = _DEFAULT[kind]
    limit = limit or of_kind
    return Policy(
        limit=math.log1p(limit),
        session_spread=spread,
        lone_session_spread=spread * max(1.0, limit / of_kind),
    )


# --- the limits where suite.toml says nothing

_MIB = 2**20


def _noisy(kind: PolicyKind, absolute: float = 0.0, *, gate: bool = True) -> Limit:
    return Limit(relative=_DEFAULT[kind][0], absolute=absolute, gate=gate)


# Host memory moves a little with the number of warm-up steps and the page cache. One-off times are
# skewed between launches: shown, and only when they are felt. The tail is information: it needs
# twice the launches. Scaling efficiency is made of two step times, which gate. Allocated memory:
# the allocator rounds to 2 MiB blocks. Shares: 5 percentage points of a step. Operators and FLOPs
# do not gate: a fusion, or another layer, changes them on purpose, and what they cost is gated as
# time and memory; shown, they explain it. Nor do kernels; a wait for the GPU, a lost CUDA graph and
# spilled registers are seldom meant. CPU time gates on a CPU (judging/clocks.py).
_LIMITS = {
    metrics.STEP_TIME.name: _noisy(PolicyKind.TIME),
    metrics.STEP_CPU.name: _noisy(PolicyKind.TIME, gate=False),
    metrics.STEP_P95.name: _noisy(PolicyKind.TAIL, gate=False),
    metrics.SCALING_EFFICIENCY.name: _noisy(PolicyKind.TIME, gate=False),
    metrics.FIRST_STEP.name: _noisy(PolicyKind.ONE_OFF, 4.0, gate=False),
    metrics.COMPILE_COLD.name: Limit(relative=0.25, absolute=2.0, gate=False),
    metrics.COMPILE_WARM.name: Limit(relative=0.25, absolute=2.0, gate=False),
    metrics.ENERGY.name: _noisy(PolicyKind.ONE_OFF, gate=False),
    metrics.DATA_WAIT.name: Limit(absolute=0.05, gate=False),
    metrics.H2D.name: Limit(absolute=0.05, gate=False),
    metrics.HOST_RSS_PEAK.name: _noisy(PolicyKind.HOST_MEMORY, 16 * _MIB),
    metrics.PEAK_ALLOCATED.name: Limit(relative=0.01, absolute=2 * _MIB),
    metrics.PEAK_RESERVED.name: Limit(relative=0.05, absolute=2 * _MIB, gate=False),
    metrics.GRAPHS.name: Limit(gate=False),
    metrics.GRAPH_BREAKS.name: Limit(),
    metrics.RECOMPILES.name: Limit(),
    metrics.OPERATORS.name: Limit(gate=False),
    metrics.FLOPS.name: Limit(gate=False),
    metrics.KERNELS.name: Limit(gate=False),
    metrics.HOST_WAITS.name: Limit(),
    metrics.GRAPH_REPLAYS.name: Limit(),
    metrics.SPILLS.name: Limit(),
    # The user's own metrics, by kind; the tail is information there, too.
    "time": _noisy(PolicyKind.TIME),
    "tail": _noisy(PolicyKind.TAIL, gate=False),
    "rate": _noisy(PolicyKind.TIME),
    "bytes": _noisy(PolicyKind.HOST_MEMORY),
    "count": Limit(),
    "score": Limit(),
    # Far above what rounding does to a loss in fp32, far below what a wrong formula does.
    metrics.FINGERPRINT: Limit(relative=0.001, gate=False),
    # Fixed programs repeat within 1 to 2 % on a machine that is left alone.
    metrics.CANARY: Limit(relative=0.03),
}
if _without := [name for name in metrics.LIMITED if name not in _LIMITS]:
    raise ValueError(
        f"{_without[0]}: expected a default limit of all that is judged, found none: it would be "
        "recorded and never judged; add it to _LIMITS"
    )
# Tests that are forked of one process have the imports of all test files in their memory.
LIMITS_OF_TESTS = {
    metrics.HOST_RSS_PEAK.name: _noisy(PolicyKind.HOST_MEMORY, 16 * _MIB, gate=False)
}


def default_limits(machine: Machine | None = None) -> dict[str, Limit]:
    """Return the limit of every metric, and of the two that belong to none, on this machine."""
    if not isinstance(machine, CpuMachine):
        return dict(_LIMITS)
    time = Limit(relative=_CPU_TIME)
    on_cpu = dict.fromkeys((metrics.STEP_TIME.name, metrics.STEP_CPU.name, "time", "rate"), time)
    return {**_LIMITS, **on_cpu, metrics.CANARY: Limit(relative=_CPU_CANARY)}


def limits_on(machine: Machine | None, calibration: Calibration | None = None) -> Limits:
    """Return the limits of a suite that names none, on this machine as it was calibrated."""
    trimmed = calibration is not None and calibration.trimmed
    return Limits(default=default_limits(machine), trimmed=trimmed)


def relative_size(limit: Limit, base: float) -> float:
    """Return the larger of both parts of a limit, as a share of the baseline (> 0)."""
    share = max(limit.relative, limit.absolute / base)
    assert math.isfinite(share)
    return share


def policy_under(metric: Metric, limit: Limit, base: float) -> Policy:
    """Return the policy of a noisy metric under a limit; `base` is its baseline's value (> 0)."""
    return policy_of(KIND_OF[metric.kind], relative_size(limit, base))
