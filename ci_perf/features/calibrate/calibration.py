"""Calibration: the statistic and the limit that suit a machine, by launches of the same code.

No head is measured here, so no choice can favour one.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ci_perf.errors import CiPerfError
from ci_perf.judging import launch_numbers, policy, variability
from ci_perf.judging.confirm import Confirmation, Outcome, share_alpha
from ci_perf.judging.policy import (
    LAUNCH_PRIOR_DF,
    MOST_PAIRS,
    PRIOR_DF_CAP,
    SMALLEST_VARIANCE,
    PolicyKind,
)
from ci_perf.judging.variability import Variance
from ci_perf.model import metrics
from ci_perf.model.base import Statistic
from ci_perf.model.baseline import (
    CalibratedWorkload,
    Calibration,
    Noise,
    Provenance,
)
from ci_perf.model.run import Measured, Run
from ci_perf.model.suite import Plan

# Evenly from 0 to below 1, from a seed.
Uniform = Callable[[], float]

# From the statistic that uses most blocks to the one that uses a single one.
STATISTICS: tuple[Statistic, ...] = ("median", "p25", "min")
# Limits of a step time that people choose; the smallest that a machine can hold is told.
LIMITS = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
# A machine that holds this needs no help of CPU time: the default limit on a CPU.
_QUIET = 0.05
# How much quieter a statistic must be than one that uses more blocks. On quiet machines all three
# repeat equally well (public launches of GPU and JVM benchmarks: within 5 %), on a crowded one the
# minimum was two to three times quieter.
QUIETER = 0.75
# Trimmed pairs must leave so many of the workloads undecided that plain ones do, or fewer.
FEWER_UNDECIDED = 0.9
# A limit that leaves more workloads undecided asks too much of the machine.
MOST_INCONCLUSIVE = 0.10
# Of fewer launches two modes cannot be seen, and these are only three pairs.
FEWEST_PROCESSES = 6
# Simulated confirmations per workload: a share of 10 % is then known to 2 points.
SIMULATED = 200
# Confirmations per workload that are drawn from its launches, to choose the mean of pairs.
DRAWN = 100


@dataclass(frozen=True, slots=True)
class _Workload:
    """One workload by one clock: launches as logarithms, how pairs differ, and how these end."""

    name: str
    by: Mapping[Statistic, Sequence[float]]
    statistic: Statistic
    pairs: Variance
    inconclusive: float
    expected_pairs: float


@dataclass(frozen=True, slots=True)
class _Clock:
    """What one clock, the wall's or the CPU's, shows of the machine, and what suits it."""

    spreads: Mapping[Statistic, float]
    statistic: Statistic
    limit: float
    workloads: Sequence[_Workload]

    @property
    def spread(self) -> float:
        """Return the typical spread of launches by the statistic that was chosen."""
        return self.spreads[self.statistic]


def calibrate(run: Run, plan: Plan, uniform: Uniform) -> Calibration:
    """Choose the statistic, and find the limit that can be held. Raises CiPerfError without any."""
    planned = {workload.id for workload in plan.workloads}
    suite = [measured for measured in run.measured if measured.workload in planned]
    if not suite:
        raise CiPerfError(
            f"suite {run.suite!r}: expected at least one workload with numbers, found none of "
            f"{len(planned)}; see the reasons above"
        )
    timed = [process.timed for measured in suite for process in measured.processes]
    wall = _clock(suite, plan, uniform, by_cpu=False)
    has_cpu_time = all(blocks.cpu_s for blocks in timed)
    cpu = _clock(suite, plan, uniform, by_cpu=True) if has_cpu_time else None
    noise = _noise(wall, cpu)
    chosen = cpu if cpu is not None and noise == "crowded" else wall
    alpha = share_alpha(len(suite))
    return Calibration(
        machine=run.environment.hard,
        statistic=wall.statistic,
        limit=chosen.limit,
        provenance=Provenance(
            recorded_at=run.started_at,
            source=run.source,
            run=run.id,
            tool_version=run.tool.version,
            suite=plan.suite,
            selection=plan.selection,
            soft=run.environment.soft,
            distrust=tuple(sorted({reason.code for reason in run.validity.reasons})),
        ),
        launches={name: _short(spread) for name, spread in wall.spreads.items()},
        inconclusive=_short(statistics.fmean(each.inconclusive for each in chosen.workloads)),
        noise=noise,
        trimmed=noise != "quiet" and _is_trimmed_better(chosen, plan, uniform),
        launches_cpu=_short(cpu.spread) if cpu else None,
        workloads={
            each.name: _calibrate_workload(each, chosen.limit, alpha) for each in chosen.workloads
        },
    )


def _clock(suite: Sequence[Measured], plan: Plan, uniform: Uniform, *, by_cpu: bool) -> _Clock:
    """Choose the quietest statistic, and find the limit, by the time of the wall or of the CPU.

    A statistic that uses fewer blocks must be quieter by a quarter.
    """
    logarithms = {measured.workload: _logarithms(measured, by_cpu=by_cpu) for measured in suite}
    spreads = {name: _typical([by[name] for by in logarithms.values()]) for name in STATISTICS}
    statistic = STATISTICS[0]
    for name in STATISTICS[1:]:
        if spreads[name] <= QUIETER * spreads[statistic]:
            statistic = name
    own = {each.id: each.protocol.statistic for each in plan.workloads if each.own_statistic}
    variances = [
        _estimate_pair_variance(by[own.get(name, statistic)]) for name, by in logarithms.items()
    ]
    # Each is drawn towards what the suite has in common, as verdicts do.
    shared = variability.prior(variances, LAUNCH_PRIOR_DF)
    pairs = [variability.moderate(variance, shared) for variance in variances]
    limit, ends = _smallest(pairs, uniform)
    workloads = [
        _Workload(name, by, own.get(name, statistic), variance, *end)
        for (name, by), variance, end in zip(logarithms.items(), pairs, ends, strict=True)
    ]
    return _Clock(spreads, statistic, limit, workloads)


def _noise(wall: _Clock, cpu: _Clock | None) -> Noise:
    """Say what disturbs the launches.

    Quiet is a machine that holds the default limit of a CPU by the wall. On any other, CPU time
    helps where it is quieter by a quarter.
    """
    if wall.limit <= _QUIET:
        return "quiet"
    if cpu is not None and cpu.spread <= QUIETER * wall.spread:
        return "crowded"
    return "shared_host"


def _is_trimmed_better(clock: _Clock, plan: Plan, uniform: Uniform) -> bool:
    """Whether trimmed pairs leave fewer unchanged workloads undecided, by a tenth at least.

    Pairs are drawn from the launches as they are, with their tails, and judged by the limits of the
    suite. Where plain pairs decide, they stay: trimmed ones need more of them.
    """
    alpha = share_alpha(len(clock.workloads))

    def estimate_undecided(workload: _Workload, *, trimmed: bool) -> float:
        launches = workload.by[workload.statistic]
        limit = plan.limits.of(workload.name)[metrics.STEP_TIME.name]
        judged_by = policy.policy_under(metrics.STEP_TIME, limit, math.exp(launches[0]))
        ends = [
            confirm_by_pairs(
                Confirmation(
                    policy=judged_by, alpha=alpha, prior_variance=0.0, prior_df=0.0, trimmed=trimmed
                ),
                [_difference(launches, uniform) for _ in range(MOST_PAIRS)],
            )
            for _ in range(DRAWN)
        ]
        return statistics.fmean(outcome.call == "inconclusive" for outcome in ends)

    plain, trimmed = (
        statistics.fmean(
            estimate_undecided(workload, trimmed=trimmed) for workload in clock.workloads
        )
        for trimmed in (False, True)
    )
    return plain > MOST_INCONCLUSIVE and trimmed <= FEWER_UNDECIDED * plain


def _difference(launches: Sequence[float], uniform: Uniform) -> float:
    """Return the difference of two launches, drawn at random, that are not the same one."""
    first = int(uniform() * len(launches))
    second = int(uniform() * (len(launches) - 1))
    return launches[first] - launches[second + (second >= first)]


def confirm_by_pairs(confirmation: Confirmation, differences: Sequence[float]) -> Outcome:
    """Let pairs decide, in their order; those after the decision are left alone."""
    for difference in differences:
        if outcome := confirmation.add(difference):
            return outcome
    return confirmation.finish()


def _short(number: float) -> float:
    """Round to three digits: further ones are chance, and would be noise in a diff."""
    return float(f"{number:.3g}")


def _logarithms(measured: Measured, *, by_cpu: bool) -> dict[Statistic, list[float]]:
    """Take the time by the wall of each statistic; CPU time is that of all blocks, whichever."""
    timed = [process.timed for process in measured.processes]
    return {
        name: [
            math.log(
                (by_cpu and launch_numbers.cpu_time(blocks))
                or launch_numbers.reduce_blocks(blocks.block_s, name)
            )
            for blocks in timed
        ]
        for name in STATISTICS
    }


def _typical(groups: Sequence[Sequence[float]]) -> float:
    """Return the geometric mean of the workloads' spreads, which no single one dominates."""
    logs = [math.log(max(statistics.variance(group), SMALLEST_VARIANCE)) for group in groups]
    return math.exp(statistics.fmean(logs) / 2)


def _estimate_pair_variance(launches: Sequence[float]) -> Variance:
    """Return the variance of the difference of two launches next to each other.

    Their mean is known to be zero: the code was the same.
    """
    differences = [
        after - before for before, after in zip(launches[::2], launches[1::2], strict=False)
    ]
    return Variance(statistics.fmean(d * d for d in differences), len(differences))


def _smallest(
    pairs: Sequence[Variance], uniform: Uniform
) -> tuple[float, list[tuple[float, float]]]:
    """Return the smallest limit that still decides, or the largest, and how workloads end by it.

    All limits meet the same noise, in simulated confirmations without a change.
    """
    alpha, normal = share_alpha(len(pairs)), statistics.NormalDist()
    noise = [
        [
            [normal.inv_cdf(max(uniform(), SMALLEST_VARIANCE)) for _ in range(MOST_PAIRS)]
            for _ in range(SIMULATED)
        ]
        for _ in pairs
    ]
    ends: list[tuple[float, float]] = []
    for limit in LIMITS:
        ends = [
            _simulate_confirmations(variance, limit, alpha, errors)
            for variance, errors in zip(pairs, noise, strict=True)
        ]
        if statistics.fmean(inconclusive for inconclusive, _ in ends) <= MOST_INCONCLUSIVE:
            return limit, ends
    return LIMITS[-1], ends


def _simulate_confirmations(
    variance: Variance, limit: float, alpha: float, noise: Sequence[Sequence[float]]
) -> tuple[float, float]:
    """Return the share of confirmations without an answer, and their mean number of pairs."""
    spread = math.sqrt(variance.value)
    outcomes = [
        confirm_by_pairs(_confirmation(variance, limit, alpha), [spread * error for error in pairs])
        for pairs in noise
    ]
    return (
        statistics.fmean(outcome.call == "inconclusive" for outcome in outcomes),
        statistics.fmean(outcome.pairs for outcome in outcomes),
    )


def _confirmation(variance: Variance, limit: float, alpha: float) -> Confirmation:
    return Confirmation(
        policy=policy.policy_of(PolicyKind.TIME, limit),
        alpha=alpha,
        prior_variance=variance.value / 2,
        prior_df=min(variance.df, PRIOR_DF_CAP),
    )


def _calibrate_workload(workload: _Workload, limit: float, alpha: float) -> CalibratedWorkload:
    values = workload.by[workload.statistic]
    confirmation = _confirmation(workload.pairs, limit, alpha)
    half_limit = confirmation.policy.half_limit
    return CalibratedWorkload(
        processes=len(values),
        statistic=workload.statistic,
        step_time_s=float(f"{math.exp(statistics.fmean(values)):.4g}"),
        launches={name: _short(statistics.stdev(logs)) for name, logs in workload.by.items()},
        pairs=_short(math.sqrt(workload.pairs.value)),
        pairs_df=_short(workload.pairs.df),
        smallest_detectable=_short(math.expm1(confirmation.smallest_detectable())),
        expected_pairs=_short(workload.expected_pairs),
        inconclusive=_short(workload.inconclusive),
        two_modes=variability.two_modes(values, smallest_gap=half_limit) is not None,
    )
