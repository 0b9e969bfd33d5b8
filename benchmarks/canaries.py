"""How often the canaries leave the screen on, and whether they switch it off when a machine moves.

    python -m benchmarks.canaries [--data DIR]

A run of several minutes asks each canary before, between and after its rounds. Histories of 1, 5
and 20 runs are drawn from a machine, and one more run of the same machine: either as ever, or with
every canary slower by 10, 20 or 50 % throughout. The screen is *on* while nothing moved by more
than it may: by the fixed limit of 3 % against the latest session alone, or by the limit that
follows from the history.

Simulated machines have three canaries. With `--data` there is one more: a CPU of two cores that
others use, of which DIR holds recordings (`session*.json`, as for `benchmarks.verdicts`).
"""

import argparse
import json
import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from ci_perf.judging import canaries
from ci_perf.judging.canaries import Move
from ci_perf.judging.policy import default_limits
from ci_perf.model.metrics import CANARY
from ci_perf.model.summary import Numbers

LIMIT = default_limits()[CANARY]
NAMES = ("launch_latency", "matmul", "memory_copy")
HISTORIES = (1, 5, 20)
MOVES = (0.0, 0.10, 0.20, 0.50)
TRIALS, SEED = 1000, 410
# Launches of a recording that make one run: a canary stands before each, and after the last.
LAUNCHES = 5

Draw = Callable[[int, np.random.Generator], list[Numbers]]
"""Draws so many runs of one machine: seconds by "NAME POSITION"."""


def main(data: Path | None) -> int:
    """Print the table."""
    machines: dict[str, Draw] = {
        "calm: sessions differ by 0.5 %, readings by 0.3 %": simulated(0.005, 0.003),
        "usual: 2 % and 1 %": simulated(0.02, 0.01),
        "crowded: 5 % and 8 %": simulated(0.05, 0.08),
    }
    if data:
        machines["recorded: crowded CPU of 2 cores"] = recorded(data)
    head = ("machine", "sessions", "on by the fixed limit", "on by the history's")
    moved = tuple(f"after +{100 * move:.0f} %" for move in MOVES[1:])
    names = (*head, *moved, "limit against the history", "from beginning to end")
    print(f"| {' | '.join(names)} |\n|:--|" + "--:|" * (len(names) - 1))
    for name, draw in machines.items():
        for sessions in HISTORIES:
            cells = (name, str(sessions), *_cells(draw, sessions))
            print(f"| {' | '.join(cells)} |")
    return 0


def _cells(draw: Draw, sessions: int) -> Sequence[str]:
    random = np.random.default_rng([SEED, sessions])
    fixed, on = 0, dict.fromkeys(MOVES, 0)
    against: list[float] = []
    within: list[float] = []
    for _ in range(TRIALS):
        *history, head = draw(sessions + 1, random)
        fixed += is_on_by_fixed_limit(history, head)
        for move in MOVES:
            on[move] += not any(row.is_beyond for row in moves(history, slower(head, move)))
        against += [row.most for row in canaries.from_history(history, head, LIMIT)]
        within += [row.most for row in canaries.within(history, head, LIMIT)]
    shares = [fixed / TRIALS, *(count / TRIALS for count in on.values())]
    limits = [math.expm1(statistics.median(limit)) for limit in (against, within)]
    return [f"{100 * share:.0f} %" for share in shares] + [
        f"{100 * limit:.1f} %" for limit in limits
    ]


def moves(history: Sequence[Numbers], head: Numbers) -> list[Move]:
    """Return every comparison that the judge makes."""
    return [
        *canaries.from_history(history, head, LIMIT),
        *canaries.within(history, head, LIMIT),
    ]


def is_on_by_fixed_limit(history: Sequence[Numbers], head: Numbers) -> bool:
    """Whether all sizes stay within the limit, against the latest session alone."""
    most = math.log1p(LIMIT.relative)
    return all(abs(move.size) <= most for move in moves(history[-1:], head))


def slower(head: Numbers, by: float) -> Numbers:
    """Return the readings of a machine that needs longer for everything."""
    return {place: seconds * (1 + by) for place, seconds in head.items()}


def simulated(session: float, reading: float) -> Draw:
    """Let runs and readings differ by these standard deviations of logarithms."""

    def draw(runs: int, random: np.random.Generator) -> list[Numbers]:
        return [
            {
                f"{name} {position}": math.exp(level + random.normal(0, reading))
                for name, level in zip(NAMES, random.normal(0, session, len(NAMES)), strict=True)
                for position in ("before", "between", "after")
            }
            for _ in range(runs)
        ]

    return draw


def recorded(folder: Path) -> Draw:
    """Draw runs of five launches each, without replacement, from one of the recordings."""
    recordings = [_runs(path) for path in sorted(folder.glob("session*.json"))]

    def draw(runs: int, random: np.random.Generator) -> list[Numbers]:
        runs_of_machine = recordings[random.integers(len(recordings))]
        return [
            runs_of_machine[place]
            for place in random.choice(len(runs_of_machine), runs, replace=False)
        ]

    return draw


def _runs(path: Path) -> list[Numbers]:
    launches = json.loads(path.read_text(encoding="utf-8"))["runs"]
    before, after = (
        [statistics.median(launch[key]["wall"]) for launch in launches]
        for key in ("canary0", "canary1")
    )
    return [
        {
            "matmul before": before[first],
            "matmul between": statistics.median(before[first + 1 : first + LAUNCHES]),
            "matmul after": after[first + LAUNCHES - 1],
        }
        for first in range(0, len(launches) - LAUNCHES + 1, LAUNCHES)
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.canaries")
    parser.add_argument("--data", type=Path)
    raise SystemExit(main(parser.parse_args().data))
