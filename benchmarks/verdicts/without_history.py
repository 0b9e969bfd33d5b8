"""How right the judge is in the first check of a repository, where no baseline is committed yet.

    python -m benchmarks.verdicts.without_history [--pull-requests N]

The pull requests and regimes are those of `python -m benchmarks.verdicts`, both parts of the seeds,
without their sessions. So all 20 workloads are suspects: the head is launched once, and pairs
alone decide. Fails (exit code 1) when surely more than 5 % of the unchanged pull requests of
a regime alarm.
"""

import argparse
import concurrent.futures
import itertools
import sys

import numpy as np

from benchmarks.verdicts import simulated
from benchmarks.verdicts.observed import Judged, Observed, Rows
from benchmarks.verdicts.ours import CODES
from benchmarks.verdicts.regimes import HARSH, ORDINARY, Regime
from benchmarks.verdicts.scores import Score
from ci_perf.judging.confirm import Confirmation, share_alpha
from ci_perf.judging.policy import ALPHA, PolicyKind, policy_of

POLICY = policy_of(PolicyKind.TIME)
# A change as large as the limit, and sizes that should be found.
MARGIN, SIZES = 0.02, (0.03, 0.05)


def judge(observed: Observed, rows: Rows) -> Judged:
    """Judge these workloads by their pairs alone."""
    sides = (observed.paired_base[rows], observed.paired_head[rows])
    base, head = (np.median(side, axis=-1) for side in sides)
    alpha = share_alpha(observed.suite)
    calls, launches = [], []
    for differences in (head - base).tolist():
        confirmation = Confirmation(POLICY, alpha, prior_variance=0.0, prior_df=0.0)
        outcome = next(filter(None, map(confirmation.add, differences)), None)
        outcome = outcome or confirmation.finish()
        calls.append(CODES[outcome.call])
        launches.append(1 + 2 * outcome.pairs)
    return Judged(np.array(calls, dtype=np.int8), np.array(launches, dtype=float))


def scored(regime: Regime, pull_requests: int) -> Score:
    """Judge pull requests of a regime, changed and unchanged; so many of each part and kind."""
    score = Score(regime.name)
    for part in simulated.PARTS:
        changed = (
            simulated.changed(regime, part, pull_requests, sign * size)
            for size in (MARGIN, *SIZES)
            for sign in (1, -1)
        )
        unchanged = simulated.unchanged(regime, part, pull_requests)
        for batch in itertools.chain(unchanged, *changed):
            score.add(batch.effect, judge(batch.observed, batch.rows), batch.observed.suite)
    return score


def main(pull_requests: int) -> int:
    """Print a row per regime."""
    print(
        f"{len(simulated.PARTS) * pull_requests} pull requests of each kind and regime, "
        f"seed {simulated.SEED}.\n\n"
        "| regime | alarms | 3 % found | 5 % found | 2 % called unchanged | inconclusive "
        "| launches |\n|:--|--:|--:|--:|--:|--:|--:|"
    )
    regimes = (*ORDINARY, *HARSH)
    least = 0.0
    with concurrent.futures.ProcessPoolExecutor() as pool:
        for score in pool.map(scored, regimes, itertools.repeat(pull_requests)):
            alarmed = score.alarmed_pull_requests
            least = max(least, alarmed.bounds[0])
            found = (f"{score.together(size).right.share:.1%}" for size in SIZES)
            cells = (
                *(score.name, f"{alarmed.share:.1%}", *found),
                f"{score.together(MARGIN).green.share:.1%}",
                f"{score.inconclusive.share:.1%}",
                f"{score.launches_per_workload:.1f}",
            )
            print(f"| {' | '.join(cells)} |", flush=True)
    return int(least > ALPHA)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pull-requests", type=int, default=250, metavar="N")
    sys.exit(main(parser.parse_args().pull_requests))
