"""How often a back-test of 50 merges in which nothing has changed reports one as moved.

    python -m benchmarks.verdicts.backtests [--back-tests N]

Each merge has five workloads, judged by pairs alone as `ci-perf backtest` does: at first by alpha
of their own, then what moved by fresh pairs of the same machine. A twentieth of the merges of a
second sort is 5 % slower: how many of these are reported. Fails (exit code 1) when more than 2 % of
the back-tests of a machine report an unchanged merge.
"""

import argparse
import concurrent.futures
import itertools
import sys
from collections.abc import Iterable

import numpy as np

from benchmarks.verdicts import regimes
from benchmarks.verdicts.observed import Array, Observed
from benchmarks.verdicts.regimes import REGIMES, Regime
from benchmarks.verdicts.simulated import SEED
from ci_perf.judging.confirm import Confirmation, share_alpha
from ci_perf.judging.policy import PolicyKind, policy_of

POLICY = policy_of(PolicyKind.TIME)
MERGES, SUITE = 50, 5
SLOWER, EVERY = 0.05, 20
MOST_WRONG = 0.02


def list_differences(observed: Observed) -> Array:
    """Return by how much each pair of each workload differs."""
    return np.median(observed.paired_head, axis=-1) - np.median(observed.paired_base, axis=-1)


def find_moved(differences: Iterable[Array], alpha: float) -> list[int]:
    """Return which workloads of a merge pairs call moved, either way."""
    moved = []
    for place, of_workload in enumerate(differences):
        confirmation = Confirmation(POLICY, alpha, prior_variance=0.0, prior_df=0.0)
        outcome = next(filter(None, map(confirmation.add, of_workload.tolist())), None)
        if (outcome or confirmation.finish()).call in {"regressed", "improved"}:
            moved.append(place)
    return moved


def find_reported(first: Array, fresh: Array) -> list[int]:
    """Return the merges that a back-test reports; both are [merges, workloads, pairs]."""
    reported, retests = [], 0
    for merge, pairs in enumerate(first):
        if not (moved := find_moved(pairs, share_alpha(len(pairs)))):
            continue
        retests += 1
        if find_moved(fresh[merge][moved], share_alpha(len(moved), check=retests)):
            reported.append(merge)
    return reported


def simulate_backtest(regime: Regime, number: int, *, slower: bool) -> list[int]:
    """Return the merges that a back-test reports; every twentieth may be slower."""
    changes = np.zeros((MERGES, SUITE))
    if slower:
        changes[::EVERY, 0] = np.log1p(SLOWER)
    seen = regimes.simulate_checks(
        regime,
        pull_requests=MERGES,
        suite=SUITE,
        changes=changes.ravel(),
        random=np.random.default_rng((SEED, REGIMES.index(regime), number, slower)),
        checks=2,
    )
    first, fresh = (list_differences(each).reshape(MERGES, SUITE, -1) for each in seen)
    return find_reported(first, fresh)


def score(regime: Regime, count: int) -> tuple[str, float, float]:
    """Return the share of back-tests that are wrong, and of slower merges that are found."""
    wrong = sum(bool(simulate_backtest(regime, i, slower=False)) for i in range(count))
    planted = range(0, MERGES, EVERY)
    tried = max(1, count // 10)
    found = sum(
        len(set(planted).intersection(simulate_backtest(regime, i, slower=True)))
        for i in range(tried)
    )
    return regime.name, wrong / count, found / (tried * len(planted))


def main(count: int) -> int:
    """Print a row per regime."""
    print(
        f"{count} back-tests of {MERGES} unchanged merges, seed {SEED}.\n\n"
        f"| machine | a merge is wrongly reported | {SLOWER:.0%} slower is reported |\n"
        "|:--|--:|--:|"
    )
    worst = 0.0
    with concurrent.futures.ProcessPoolExecutor(max_workers=2) as pool:
        for name, wrong, found in pool.map(score, REGIMES, itertools.repeat(count)):
            worst = max(worst, wrong)
            print(f"| {name} | {wrong:.1%} | {found:.1%} |", flush=True)
    return int(worst > MOST_WRONG)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--back-tests", type=int, default=1000, metavar="N")
    sys.exit(main(parser.parse_args().back_tests))
