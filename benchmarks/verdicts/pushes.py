"""How often the pushes of one pull request alarm together, and what running again until green wins.

    python -m benchmarks.verdicts.pushes [--pull-requests N]

Simulates pull requests of 20 workloads that are pushed to 20 times, each time measured on another
day. All workloads are truly slower by their limit, or by nothing: no alarm is right. Then one
workload is slower by 3 or 5 %, as the 1st, 5th or 20th check of its pull request sees it; and the
same commits are measured three times, until a run does not say *regressed*. Every figure stands
beside that of checks which know nothing of each other. Fails (exit code 1) when surely more than
5 % of the pull requests alarm in 20 pushes. 100 pull requests take about four minutes.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.verdicts import ours, regimes, simulated
from benchmarks.verdicts.observed import SLOWER, Array, Observed
from benchmarks.verdicts.regimes import Regime
from benchmarks.verdicts.scores import Rate
from ci_perf.judging import confirm, screen, variability
from ci_perf.judging.confirm import Confirmation, Outcome
from ci_perf.judging.policy import ALPHA, SCREENED_LAUNCHES, PolicyKind, policy_of

PUSHES = 20
RUNS = 3
CHECKS = (1, 5, 20)
SIZES = (0.03, 0.05)
AT_ONCE = 25
POLICY = policy_of(PolicyKind.TIME)
# Launches in one of two modes, a few or half of them: what misled the judge most.
MODES = Regime(
    "modes 5 to 50 %",
    (0.003, 0.012),
    (0.002, 0.008),
    (0.005, 0.015),
    second_mode_share=(0.05, 0.5),
    second_mode_gap=(0.02, 0.06),
)
REGIMES = (
    *(regime for regime in regimes.ORDINARY if regime.name in {"typical", "noisy"}),
    MODES,
)


def main(pull_requests: int) -> int:
    """Print three tables; fail when pushes alarm together more often than promised."""
    print(f"{pull_requests} pull requests each, seed {simulated.SEED}.\n\n### {PUSHES} pushes\n")
    print("| alarms per pull request | each push alone | together, as if alone | shared |")
    print("|:--|--:|--:|--:|")
    least = 0.0
    for regime in REGIMES:
        for size in (0.01, 0.0):
            alone, together, shared = _alarms(regime, size, pull_requests)
            least = max(least, shared.bounds[0])
            print(
                f"| {regime.name}, all workloads {size:+.0%} | {alone.share:.1%} | "
                f"{together.share:.1%} | {shared.share:.1%} ({_bounds(shared)}) |"
            )
    print("\n### Found, as the check of that number\n")
    columns = ("alone", *CHECKS)
    print(f"| one workload | {' | '.join(map(str, columns))} |\n|:--|{'--:|' * len(columns)}")
    for regime in REGIMES:
        for size in SIZES:
            rates = [_power(regime, size, pull_requests, check) for check in (None, *CHECKS)]
            cells = " | ".join(f"{rate.share:.1%}" for rate in rates)
            print(f"| {regime.name}, {size:+.0%} | {cells} |")
    print(f"\n### One of {RUNS} runs of the same commits does not say regressed\n")
    print("| one workload | as if alone | pairs together | called unchanged |")
    print("|:--|--:|--:|--:|")
    for regime in REGIMES:
        for size in SIZES:
            apart, pooled, unchanged = _reruns(regime, size, pull_requests)
            print(
                f"| {regime.name}, {size:+.0%} | {apart.share:.1%} | {pooled.share:.1%} | "
                f"{unchanged.share:.1%} |"
            )
    return int(least > ALPHA)


def _alarms(regime: Regime, size: float, pull_requests: int) -> tuple[Rate, Rate, Rate]:
    """Return the alarms of a push alone, and of all of a pull request without and with sharing."""
    alone, together, shared = Rate(), Rate(), Rate()
    for observed in _measured(regime, size, pull_requests, PUSHES):
        is_alarm: dict[bool, list[Array]] = {False: [], True: []}
        for number, push in enumerate(observed, 1):
            rows = np.arange(len(push.head))
            for is_shared, alarms in is_alarm.items():
                judged = ours.judge(push, rows, POLICY, check=number if is_shared else None)
                alarms.append((judged.calls == SLOWER).reshape(-1, push.suite).any(axis=1))
        alone += _rate(np.concatenate(is_alarm[False]))
        together += _rate(np.any(is_alarm[False], axis=0))
        shared += _rate(np.any(is_alarm[True], axis=0))
    return alone, together, shared


def _power(regime: Regime, size: float, pull_requests: int, check: int | None) -> Rate:
    power = Rate()
    for observed in _measured(regime, size, pull_requests, 1, is_single=True):
        (push,) = observed
        rows = np.arange(0, len(push.head), push.suite)
        power += _rate(ours.judge(push, rows, POLICY, check=check).calls == SLOWER)
    return power


def _reruns(regime: Regime, size: float, pull_requests: int) -> tuple[Rate, Rate, Rate]:
    apart, pooled, unchanged = Rate(), Rate(), Rate()
    for observed in _measured(regime, size, pull_requests, RUNS, is_single=True):
        runs = list(observed)
        rows = np.arange(0, len(runs[0].head), runs[0].suite)
        calls = [ours.judge(run, rows, POLICY).calls for run in runs]
        apart += _rate(np.any([call != SLOWER for call in calls], axis=0))
        for row in rows:
            said = list(_pooled(runs, int(row)))
            pooled += Rate(int(any(call != "regressed" for call in said)), 1)
            unchanged += Rate(int("unchanged" in said), 1)
    return apart, pooled, unchanged


def _pooled(runs: Sequence[Observed], row: int) -> Iterator[str]:
    """Yield what each run says of a workload, with the pairs of the runs before it."""
    known: list[tuple[float, float]] = []
    earlier: tuple[int, ...] = ()
    proven = ""
    for number, run in enumerate(runs, 1):
        if proven == "unchanged":
            yield proven
            continue
        screened, suspects, usual = _screened(run, row)
        if screened.clears(POLICY) and not earlier:
            yield "unchanged"
            continue
        confirmation = Confirmation(
            policy=POLICY,
            alpha=confirm.share_alpha(max(1, suspects), check=number),
            prior_variance=screened.prior_variance,
            prior_df=screened.prior_df,
            suspected=confirm.sign(screened.difference),
            usual_variance=usual,
            earlier=earlier,
        )
        sides = (run.paired_base[row], run.paired_head[row])
        fresh = zip(*(np.median(side, axis=-1).tolist() for side in sides), strict=True)
        before = len(known)
        outcome = _read(confirmation, known, fresh)
        earlier = (*earlier, len(known) - before)
        proven = "regressed" if proven and outcome.call == "inconclusive" else outcome.call
        proven = proven if proven != "inconclusive" else ""
        yield proven or "inconclusive"


def _read(
    confirmation: Confirmation,
    known: list[tuple[float, float]],
    fresh: Iterator[tuple[float, float]],
) -> Outcome:
    """Read the pairs of earlier runs, then as many fresh ones as it takes, which are then known."""
    for base, head in known:
        confirmation.add(head - base, base=base)
    for base, head in fresh:
        known.append((base, head))
        if outcome := confirmation.add(head - base, base=base):
            return outcome
    return confirmation.finish()


def _screened(run: Observed, row: int) -> tuple[screen.Screened, int, float]:
    """Return the screen of a workload, how many suspects there are, and its usual variance."""
    first = row // run.suite * run.suite
    sessions = np.median(run.sessions[first : first + run.suite], axis=-1).tolist()
    head = np.median(run.head[first : first + run.suite, :SCREENED_LAUNCHES], axis=-1).tolist()
    screened = screen.screen(list(zip(sessions, head, strict=True)), POLICY)
    place = row - first
    usual = variability.usual_variance([*sessions[place], head[place]])
    return screened[place], sum(not result.clears(POLICY) for result in screened), usual


def _measured(
    regime: Regime, size: float, pull_requests: int, checks: int, *, is_single: bool = False
) -> Iterator[Iterator[Observed]]:
    """Yield checks of pull requests, of which every workload, or one of each suite, is slower."""
    for first in range(0, pull_requests, AT_ONCE):
        count = min(AT_ONCE, pull_requests - first)
        is_slower = np.arange(count * simulated.SUITE) % (simulated.SUITE if is_single else 1) == 0
        seed = (simulated.SEED, REGIMES.index(regime), round(1e4 * size), checks, first)
        yield regimes.simulate_checks(
            regime,
            pull_requests=count,
            suite=simulated.SUITE,
            changes=is_slower * np.log1p(size),
            random=np.random.default_rng(seed),
            checks=checks,
        )


def _rate(hits: Array) -> Rate:
    return Rate(int(hits.sum()), hits.size)


def _bounds(rate: Rate) -> str:
    return " to ".join(f"{100 * bound:.1f}" for bound in rate.bounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verdicts.pushes")
    parser.add_argument("--pull-requests", type=int, default=100)
    sys.exit(main(parser.parse_args().pull_requests))
