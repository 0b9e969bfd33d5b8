"""Qualification: whether the verdicts of a machine are right, without a change and with one.

One run launches every workload in three arms: as it is, as it is once more, and slowed down.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ci_perf.errors import CiPerfError, UsageError
from ci_perf.judging import launch_numbers, policy
from ci_perf.judging.calibration import Uniform, confirmed, prior, provenance, short
from ci_perf.judging.confirm import Confirmation, share_alpha
from ci_perf.judging.policy import MOST_PAIRS
from ci_perf.model import metrics
from ci_perf.model.base import Statistic
from ci_perf.model.baseline import (
    CalibratedWorkload,
    Calibration,
    Qualification,
    QualifiedWorkload,
    Replays,
)
from ci_perf.model.run import Measured, Run
from ci_perf.model.suite import Plan, PlannedWorkload

SAME, SLOWER = "+same", "+slower"
# No baseline may come from a run in which a workload was slowed down: it is of no suite.
_SUITE = "+qualify"
# The name of a workload is at most this long, and ours are its name and a word.
_MAX_ID_CHARS = 200
# Confirmations per workload and change: a share of 5 % is then known to 1 point, as far as the
# recorded pairs say it at all.
REPLAYS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arms:
    """The launches of one workload as logarithms, in rounds, and how their pairs are judged."""

    statistic: Statistic
    before: Sequence[float]
    slower: Sequence[float]
    after: Sequence[float]
    confirmation: Callable[[], Confirmation]

    @classmethod
    def of(
        cls,
        workload: PlannedWorkload,
        measured: Mapping[str, Measured],
        plan: Plan,
        calibrated: CalibratedWorkload | None,
        alpha: float,
    ) -> "_Arms":
        """Take the statistic that the plan names, and the limit of the time that gates."""
        statistic = workload.protocol.statistic
        limits = plan.limits.of(workload.id)
        arms = [measured[name].processes for name in _names(workload.id)]
        has_cpu_time = all(process.timed.cpu_s for arm in arms for process in arm)
        by_cpu = has_cpu_time and limits[metrics.STEP_CPU.name].gate
        before, slower, after = (
            [
                math.log(
                    (by_cpu and launch_numbers.cpu_time(process.timed))
                    or launch_numbers.of_blocks(process.timed.block_s, statistic)
                )
                for process in arm
            ]
            for arm in arms
        )
        limit = limits[(metrics.STEP_CPU if by_cpu else metrics.STEP_TIME).name]
        step_s = math.exp(statistics.fmean(before))
        variance, df = prior(calibrated)
        return cls(
            statistic=statistic,
            before=before,
            slower=slower,
            after=after,
            confirmation=lambda: Confirmation(
                policy=policy.policy_under(metrics.STEP_TIME, limit, step_s),
                alpha=alpha,
                prior_variance=variance,
                prior_df=df,
                trimmed=plan.limits.trimmed,
            ),
        )


def arms(plan: Plan, size: float) -> Plan:
    """Return a plan in which each workload stands three times, next to each other.

    The slowed one stands between the two equal ones, so that its base can come before it or after.
    """
    return msgspec.structs.replace(
        plan,
        suite=plan.suite + _SUITE,
        workloads=tuple(arm for workload in plan.workloads for arm in _arms(workload, size)),
    )


def qualify(
    run: Run,
    plan: Plan,
    *,
    size: float,
    calibration: Calibration | None,
    uniform: Uniform,
) -> Qualification:
    """Judge what `run`, of the `arms` of `plan`, holds, as a pull request would have been judged.

    All workloads are suspects that share alpha, as when a baseline is too old to clear any. Raises
    CiPerfError when no workload has all of its three arms.
    """
    measured = {workload.workload: workload for workload in run.measured}
    whole = [workload for workload in plan.workloads if set(_names(workload.id)) <= measured.keys()]
    if not whole:
        raise CiPerfError(
            f"suite {plan.suite!r}: expected at least one workload with numbers as it is and "
            f"slowed down, found none of {len(plan.workloads)}; see the reasons above"
        )
    known = calibration.workloads if calibration else {}
    alpha = share_alpha(len(whole))
    return Qualification(
        machine=run.environment.hard,
        size=size,
        replays=REPLAYS,
        provenance=provenance(run, plan),
        workloads={
            workload.id: _workload(
                _Arms.of(workload, measured, plan, known.get(workload.id), alpha), uniform
            )
            for workload in whole
        },
    )


def _arms(workload: PlannedWorkload, size: float) -> tuple[PlannedWorkload, ...]:
    if len(workload.id + SLOWER) > _MAX_ID_CHARS:
        raise UsageError(
            f"{workload.id}: expected an id that leaves {len(SLOWER)} of {_MAX_ID_CHARS} "
            f"characters, found {len(workload.id)}; shorten the entry's `name`"
        )
    _, slower, same = _names(workload.id)
    return (
        workload,
        msgspec.structs.replace(workload, id=slower, slowdown=size),
        msgspec.structs.replace(workload, id=same),
    )


def _names(workload: str) -> tuple[str, str, str]:
    """Name the arms of a workload in the order of a round."""
    return workload, workload + SLOWER, workload + SAME


def _workload(arms: _Arms, uniform: Uniform) -> QualifiedWorkload:
    same, slower = _differences(arms.before, arms.after, arms.slower)
    return QualifiedWorkload(
        statistic=arms.statistic,
        limit=short(math.expm1(arms.confirmation().policy.limit)),
        spread=short(math.sqrt(statistics.fmean(d * d for d in same))),
        pairs=len(same),
        same=_replays(same, arms, uniform, is_same=True),
        slower=_replays(slower, arms, uniform, is_same=False),
    )


def _differences(
    before: Sequence[float], after: Sequence[float], slower: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Return the differences of the pairs without a change, and of those with the slowed arm.

    A round launches `before`, `slower`, `after`. In every other pair the head comes first, as in a
    real confirmation, so that what drifts is on no side.
    """
    rounds = list(enumerate(zip(before, after, slower, strict=True)))
    same = [first - last if i % 2 else last - first for i, (first, last, _) in rounds]
    slowed = [slow - (last if i % 2 else first) for i, (first, last, slow) in rounds]
    return same, slowed


def _replays(
    differences: Sequence[float], arms: _Arms, uniform: Uniform, *, is_same: bool
) -> Replays:
    """Judge the pairs as recorded, then many times with pairs drawn from them with replacement.

    Of two launches of the same code a coin says which is the head: else the mean that these few
    pairs happen to have would be taken for a change.
    """

    def drawn() -> float:
        difference = differences[int(uniform() * len(differences))]
        return -difference if is_same and uniform() < 0.5 else difference

    recorded = confirmed(arms.confirmation(), differences[:MOST_PAIRS])
    outcomes = [
        confirmed(arms.confirmation(), [drawn() for _ in range(MOST_PAIRS)]) for _ in range(REPLAYS)
    ]
    shares = {
        call: sum(outcome.call == call for outcome in outcomes) / REPLAYS
        for call in ("regressed", "improved", "unchanged", "inconclusive")
    }
    return Replays(
        call=recorded.call,
        estimate=short(recorded.estimate),
        pairs=short(statistics.fmean(outcome.pairs for outcome in outcomes)),
        **shares,
    )
