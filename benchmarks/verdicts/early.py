"""How often the early look blames unchanged code: it may in 1 of 1,000 pull requests.

    python -m benchmarks.verdicts.early [--pull-requests N]

The regimes are those of `python -m benchmarks.verdicts`, and machines with two modes 30 % apart.
All workloads of a pull request are asked, not only the suspects of its screen, with their history
and without; and once more as if a count of each had grown, while its time has not. Fails (exit
code 1) when more than 0.1 % of the pull requests of a regime alarm.
"""

import argparse
import concurrent.futures
import itertools
import sys

import numpy as np

from benchmarks.verdicts import regimes
from benchmarks.verdicts.regimes import CROWDED, HARSH, ORDINARY, Regime
from benchmarks.verdicts.scores import Rate
from benchmarks.verdicts.simulated import AT_ONCE, SEED, SUITE
from ci_perf.judging.early import find_early
from ci_perf.judging.policy import EARLY_PAIRS, PolicyKind, policy_of

POLICY = policy_of(PolicyKind.TIME)
MOST_ALARMED = 0.001
FAR_MODES = tuple(
    regimes.two_modes(name, share=share, gap=0.26)  # a logarithm: 30 %
    for name, share in (("50/50, 30 % apart", 0.5), ("30/70, 30 % apart", 0.3))
)
# Launches of the head before its pairs: fewer show less of two modes.
_HEAD = 1


def alarmed(regime: Regime, pull_requests: int) -> list[Rate]:
    """Return how many alarm: with and without a history, each with and without grown counts."""
    rates = [Rate()] * 4
    random = np.random.default_rng((SEED, *regime.name.encode()))
    for _ in range(-(-pull_requests // AT_ONCE)):
        changes = np.zeros(AT_ONCE * SUITE)
        observed = regimes.simulate(
            regime, pull_requests=AT_ONCE, suite=SUITE, changes=changes, random=random
        )
        seen = (observed.sessions, observed.head, observed.paired_base, observed.paired_head)
        sessions, heads, bases, paired = (np.median(side, axis=-1) for side in seen)
        bases, differences = bases[:, :EARLY_PAIRS], (paired - bases)[:, :EARLY_PAIRS]
        for kind, (has_history, has_grown) in enumerate(itertools.product((True, False), repeat=2)):
            is_alarm = np.zeros(len(observed), dtype=bool)
            for row in np.flatnonzero(differences.min(axis=1) > 0):
                early = find_early(
                    POLICY,
                    sessions=sessions[row].tolist() if has_history else (),
                    head=heads[row, :_HEAD].tolist(),
                    has_more_counts=has_grown,
                )
                interval = early.find_interval(bases[row].tolist(), differences[row].tolist())
                is_alarm[row] = interval is not None
            of_pulls = is_alarm.reshape(-1, SUITE).any(axis=1)
            rates[kind] += Rate(int(of_pulls.sum()), of_pulls.size)
    return rates


def main(pull_requests: int) -> int:
    """Print a row per regime."""
    print(
        f"Pull requests with an early alarm, of {pull_requests} unchanged ones of each regime.\n\n"
        "| regime | counts grown | no change | no history, counts grown | no history |\n"
        "|:--|--:|--:|--:|--:|"
    )
    worst = 0.0
    every = (*ORDINARY, *HARSH, CROWDED, *FAR_MODES)
    with concurrent.futures.ProcessPoolExecutor() as pool:
        of_regimes = pool.map(alarmed, every, itertools.repeat(pull_requests))
        for regime, rates in zip(every, of_regimes, strict=True):
            worst = max(worst, *(rate.share for rate in rates))
            print(
                f"| {regime.name} | {' | '.join(str(rate.count) for rate in rates)} |", flush=True
            )
    return int(worst > MOST_ALARMED)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pull-requests", type=int, default=4000, metavar="N")
    sys.exit(main(parser.parse_args().pull_requests))
