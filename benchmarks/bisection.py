"""Measure how often a bisect finds the commit that made a workload worse, and what it costs.

    python -m benchmarks.bisection [--lines N] [--commits N]

Prints a table: simulated lines of commits, of which one makes a step longer. Each session draws
differences of pairs with the known-good commit from a normal distribution; the judge decides as in
`ci-perf bisect`, with no program that is known to be the same.
"""

import argparse
import math
import random
import statistics
from collections.abc import Callable
from dataclasses import dataclass

from ci_perf.features.bisect import bisecting
from ci_perf.features.bisect.bisecting import Search
from ci_perf.features.bisect.bisection import CommitAnswer
from ci_perf.features.calibrate import calibration
from ci_perf.judging.confirm import Confirmation, Outcome, share_alpha
from ci_perf.judging.policy import MOST_PAIRS, Policy, PolicyKind, policy_of

EFFECT = math.log1p(0.03)
# How much pairs of the same code differ (standard deviation), as a share of the effect.
SPREADS = (1 / 6, 1 / 3, 1 / 2, 2 / 3, 1.0)
_ANSWERS = {
    "regressed": CommitAnswer.LIKE_BAD,
    "improved": CommitAnswer.LIKE_GOOD,
    "unchanged": CommitAnswer.LIKE_GOOD,
}


@dataclass(frozen=True)
class Ended:
    """One simulated bisect. ``right``: the culprit is in the range; ``left``: how many are."""

    is_worse: bool
    is_shown: bool = False
    right: bool = False
    left: int = 0
    sessions: int = 0
    pairs: int = 0


class Machine:
    """Launches sessions of which everything is known."""

    def __init__(self, spread: float, uniform: random.Random) -> None:
        """Draw pairs that differ by `spread`."""
        self.sessions, self.pairs = 0, 0
        self._spread, self._random = spread, uniform

    def session(self, policy: Policy, effect: float) -> Outcome:
        """Judge pairs of a commit that is slower by `effect`."""
        confirmation = Confirmation(
            policy=policy, alpha=share_alpha(1), prior_variance=0.0, prior_df=0.0
        )
        pairs = [self._random.gauss(effect, self._spread) for _ in range(MOST_PAIRS)]
        outcome = calibration.confirm_by_pairs(confirmation, pairs)
        self.sessions, self.pairs = self.sessions + 1, self.pairs + outcome.pairs
        return outcome


def bisect(commits: int, machine: Machine, culprit: int) -> Ended:
    """Search for the culprit, a position from 1 to `commits`."""
    usual = policy_of(PolicyKind.TIME)
    first = machine.session(usual, EFFECT)
    if first.call != "regressed":
        return Ended(is_worse=False)
    limit = bisecting.DIVIDING * first.estimate
    dividing = Policy(limit=limit, session_spread=usual.session_spread)
    search = Search(commits)
    while (at := bisecting.next_position(search)) is not None:
        outcome = machine.session(dividing, EFFECT if at >= culprit else 0.0)
        search = search.with_answer(at, _ANSWERS.get(outcome.call, CommitAnswer.UNDECIDED))
    left = search.range
    # The last session pairs the commit that is left with its parent, and takes a wrong one back.
    is_shown = left.is_one and (
        machine.session(usual, EFFECT if left.high == culprit else 0.0).call == "regressed"
    )
    return Ended(
        is_worse=True,
        is_shown=is_shown,
        right=left.low < culprit <= left.high,
        left=left.high - left.low,
        sessions=machine.sessions,
        pairs=machine.pairs,
    )


def simulate(lines: int, commits: int, spread: float, *, seed: int = 1) -> list[Ended]:
    """Search in many lines, each with a culprit of its own."""
    uniform = random.Random(f"{seed} {commits} {spread}")  # noqa: S311  no secret
    return [
        bisect(commits, Machine(spread * EFFECT, uniform), uniform.randint(1, commits))
        for _ in range(lines)
    ]


def main(lines: int, commits: int) -> None:
    """Print the table."""
    print(f"{commits} commits, one of them +3 %; {lines} lines each; a session is 2 to 18 pairs\n")
    print(
        "| pairs differ by | worse is seen | right | one commit, shown by its parent |"
        " wrong commit shown | sessions | pairs | commits left |"
    )
    print("|--:|--:|--:|--:|--:|--:|--:|--:|")
    for spread in SPREADS:
        print(_row(spread, simulate(lines, commits, spread)))


def _row(spread: float, ends: list[Ended]) -> str:
    searched = [end for end in ends if end.is_worse]

    def mean(of: Callable[[Ended], float]) -> float:
        return statistics.fmean(map(of, searched)) if searched else math.nan

    cells = (
        f"{100 * math.expm1(spread * EFFECT):.1f} %",
        f"{100 * len(searched) / len(ends):.1f} %",
        f"{100 * mean(lambda end: end.right):.1f} %",
        f"{100 * mean(lambda end: end.is_shown and end.right):.1f} %",
        f"{100 * mean(lambda end: end.is_shown and not end.right):.2f} %",
        f"{mean(lambda end: end.sessions):.1f}",
        f"{mean(lambda end: end.pairs):.0f}",
        f"{mean(lambda end: end.left):.1f}",
    )
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lines", type=int, default=1000)
    parser.add_argument("--commits", type=int, default=100)
    asked = parser.parse_args()
    main(asked.lines, asked.commits)
