"""Print what each number of a launch, and each mean of pairs, answers on recorded crowded CPUs.

    python -m benchmarks.crowded [--draws N]

`recordings/launches-NN.json.gz`: launches of three workloads by a harness that ran, in each cycle
and in random order, the base twice and two slower variants (extra work of about 5 and 10 %), each
in a process of its own, while other programs used the two CPUs. `recordings/pairs.json.gz`:
resident pairs of the same code, launched by this package (record.py). There a change is planted by
making the head's number larger, and a pair may be read in either direction.

A row is a confirmation of 18 pairs, drawn without replacement, of one of three suspects, without a
history, with the limit of a step time on a CPU (5 %). The last column says which losses all 18
pairs of the same code exclude, in the middle of the workloads. Draws overlap: the shares
of launches rest on 24 disjoint sets of pairs, those of resident pairs on one per workload. So a
share may be wrong by 15 points, and no alarm in any draw says only that alarms are rare.
"""

import argparse
import gzip
import json
import math
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ci_perf.judging.confirm import Confirmation, Outcome, share_alpha
from ci_perf.judging.launch_numbers import ratio_of_blocks
from ci_perf.judging.policy import MOST_PAIRS, Policy, PolicyKind, policy_of

RECORDINGS = Path(__file__).parent / "recordings"
# The columns of the recorded launches; the package itself takes the mean of CPU time.
NUMBERS = ("wall median", "wall min", "CPU mean", "CPU median", "CPU min")
# By the ratios of blocks side by side, as the package takes the step time of a resident pair.
BY_BLOCKS = "wall blocks"
OF_BLOCKS: dict[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "min": min,
    "mean": statistics.fmean,
}
POLICY = policy_of(PolicyKind.TIME, 0.05)
# A limit that no pair decides: all of them are read.
SMALLEST_ALPHA = 1e-12
NEVER = Policy(limit=1e-9, session_spread=POLICY.session_spread)
SUSPECTS = 3
SLOWER = {"B5": "+5 % found", "B10": "+10 % found"}
PLANTED = {"B5": 0.05, "B10": 0.10}

# Differences of pairs (natural logarithms), by variant; "A" has no change.
Differences = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class Cell:
    """One workload of one recording, by one number of a launch."""

    workload: str
    differences: Differences
    either_direction: bool


def launches(name: str) -> Iterator[Cell]:
    """Yield the workloads of the sessions; bases alternate between the two of a cycle."""
    number = NUMBERS.index(name)
    for path in sorted(RECORDINGS.glob("launches-*.json.gz")):
        for workload, cycles in _read(path)["cycles"].items():
            differences: Differences = {"A": [], **{variant: [] for variant in SLOWER}}
            for place, cycle in enumerate(cycles):
                base = cycle["A"][place % 2][number]
                differences["A"].append(math.log(cycle["A"][1 - place % 2][number] / base))
                for variant in SLOWER:
                    differences[variant].append(math.log(cycle[variant][0][number] / base))
            yield Cell(workload, differences, either_direction=False)


def resident_pairs(name: str) -> Iterator[Cell]:
    """Yield the workloads of the pairs that this package launched."""
    clock, _, statistic = name.lower().partition(" ")
    for workload, pairs in _read(RECORDINGS / "pairs.json.gz")["pairs"].items():
        same = [_difference(base[clock], head[clock], statistic) for base, head in pairs]
        yield Cell(workload, {"A": same}, either_direction=True)


def _difference(base: Sequence[float], head: Sequence[float], statistic: str) -> float:
    if statistic == "blocks":
        return ratio_of_blocks(base, head)
    return math.log(OF_BLOCKS[statistic](head) / OF_BLOCKS[statistic](base))


def calls(cell: Cell, variant: str, draws: int, *, trimmed: bool) -> list[str]:
    """Return how confirmations of one variant end."""
    draw = random.Random(f"{cell.workload} {variant}")  # noqa: S311  no secret
    outcomes = (
        _confirmed(list(_drawn(cell, variant, draw)), trimmed=trimmed) for _ in range(draws)
    )
    return [outcome.call for outcome in outcomes]


def _drawn(cell: Cell, variant: str, draw: random.Random) -> Iterator[float]:
    is_planted = variant not in cell.differences
    size = math.log1p(PLANTED[variant]) if is_planted else 0.0
    for difference in draw.sample(cell.differences["A" if is_planted else variant], MOST_PAIRS):
        sign = draw.choice((-1, 1)) if cell.either_direction else 1
        yield sign * difference + size


def excluded(cell: Cell, draws: int, *, trimmed: bool) -> float:
    """Return the loss that 18 pairs of the same code exclude, in the middle of the draws."""
    draw = random.Random(f"{cell.workload} A")  # noqa: S311  no secret
    outcomes = (
        _confirmed(list(_drawn(cell, "A", draw)), trimmed=trimmed, policy=NEVER)
        for _ in range(draws)
    )
    return statistics.median(math.expm1(max(outcome.high, 0.0)) for outcome in outcomes)


def _confirmed(differences: Sequence[float], *, trimmed: bool, policy: Policy = POLICY) -> Outcome:
    confirmation = Confirmation(
        policy=policy,
        # Nothing is an alarm where nothing may decide.
        alpha=SMALLEST_ALPHA if policy is NEVER else share_alpha(SUSPECTS),
        prior_variance=0.0,
        prior_df=0.0,
        trimmed=trimmed,
    )
    for difference in differences:
        if outcome := confirmation.add(difference):
            return outcome
    return confirmation.finish()


def main(draws: int) -> int:
    """Print a table for each kind of recording."""
    tables = (
        ("launches", launches, NUMBERS),
        ("resident pairs", resident_pairs, (BY_BLOCKS, *NUMBERS)),
    )
    for title, cells, names in tables:
        columns = [
            "unchanged",
            "inconclusive",
            "alarms",
            *SLOWER.values(),
            "+5 % called unchanged",
            "no slowdown above",
        ]
        print(f"\n| {title}: number, mean of pairs | {' | '.join(columns)} |")
        print("|:--|" + "--:|" * len(columns))
        for name in names:
            for trimmed in (False, True):
                _row(name, list(cells(name)), draws, trimmed=trimmed)
    return 0


def _row(name: str, cells: Sequence[Cell], draws: int, *, trimmed: bool) -> None:
    ends = {
        variant: [call for cell in cells for call in calls(cell, variant, draws, trimmed=trimmed)]
        for variant in ("A", *SLOWER)
    }

    def share(variant: str, *wanted: str) -> str:
        return f"{100 * sum(call in wanted for call in ends[variant]) / len(ends[variant]):.1f}"

    columns = [
        f"{name}, {'trimmed' if trimmed else 'mean'}",
        share("A", "unchanged"),
        share("A", "inconclusive"),
        share("A", "regressed", "improved"),
        *(share(variant, "regressed") for variant in SLOWER),
        share("B5", "unchanged"),
        f"{100 * statistics.median(excluded(cell, draws, trimmed=trimmed) for cell in cells):.1f}",
    ]
    print("| " + " | ".join(columns) + " |", flush=True)


def _read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return document


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=50, help="confirmations per cell")
    sys.exit(main(parser.parse_args().draws))
