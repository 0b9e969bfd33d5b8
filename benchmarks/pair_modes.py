"""Launch pairs against resident pairs: which spread less, and what they cost.

    python benchmarks/pair_modes.py [--rounds N] [--device cpu|cuda:N] [--json FILE]

Both processes of every pair run the same code (A/A), so every difference is noise. In each round
every workload has one pair of each mode, in an order that is drawn: a busy machine hits both. A
pair's value is the logarithm of the ratio of its two step times; the tables show the standard
deviation of these values, once for each statistic by which blocks may speak for their process. The
last one takes the blocks of a resident pair one by one: the median of the ratios of those that
stood side by side.

Where a wide mean stands beside a small standard deviation, the first of a pair would be favoured.
"""

import argparse
import json
import math
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ci_perf import suite
from ci_perf.launch import local
from ci_perf.model.process import WorkerResult
from ci_perf.model.task import MachineDescription, Task, TaskFailure

ROOT = Path(__file__).parents[1]
WORKLOADS = ("matmul.size=256", "mlp_mnist_train", "bert_base_infer.dtype=fp32")
LAUNCH, RESIDENT = "launch", "resident"

Blocks = tuple[float, ...]
STATISTICS: dict[str, Callable[[Sequence[float]], float]] = {
    "min": min,
    "p25": lambda blocks: statistics.quantiles(blocks, n=4)[0],
    "median": statistics.median,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Seconds for the pair, and the blocks of both processes."""

    seconds: float
    first: Blocks
    second: Blocks

    def log_ratio(self, of: Callable[[Sequence[float]], float]) -> float:
        """Return by how much the second process was slower."""
        return math.log(of(self.second) / of(self.first))

    def log_ratio_of_blocks(self) -> float:
        """Return the same from blocks that stood side by side."""
        return statistics.median(map(math.log, map(_ratio, self.second, self.first)))


@dataclass
class Pairs:
    """All pairs of one workload."""

    launch: list[Pair] = field(default_factory=list)
    resident: list[Pair] = field(default_factory=list)


def main(rounds: int, device: str, output: Path | None) -> int:
    """Measure, and print the tables."""
    planned = suite.plan(ROOT / "workloads", "smoke", selection=WORKLOADS, root=ROOT).workloads
    found = {workload.id: Pairs() for workload in planned}
    draw = random.Random(0)  # noqa: S311  no secret is made of it
    with local.launcher(ROOT) as launcher, tempfile.TemporaryDirectory() as data_dir:
        machine = _describe(launcher, device)
        for index in range(rounds):
            for workload in planned:
                todo = Task(
                    workload=workload,
                    index=index,
                    device=machine.device,
                    root=str(ROOT),
                    data_dir=data_dir,
                    gpus=machine.gpus,
                )
                for mode in draw.sample((LAUNCH, RESIDENT), 2):
                    getattr(found[workload.id], mode).append(launch(launcher, todo, mode))
            print(f"round {index + 1} of {rounds}", file=sys.stderr, flush=True)
            if output is not None:
                everything = {name: asdict(pairs) for name, pairs in found.items()}
                output.write_text(json.dumps(everything), encoding="utf-8")
    _show(found, rounds)
    return 0


def _describe(launcher: local.LocalLauncher, device: str) -> MachineDescription:
    found = launcher.describe(device, 1, 1)
    if isinstance(found, TaskFailure):
        raise SystemExit(found.reason)
    return found


def launch(launcher: local.LocalLauncher, todo: Task, mode: str) -> Pair:
    """Launch both processes of a pair."""
    start = time.perf_counter()
    if mode == RESIDENT:
        outcomes = launcher.launch_pair(todo, todo)
    else:
        outcomes = launcher.launch(todo), launcher.launch(todo)
    seconds = time.perf_counter() - start
    first, second = map(_blocks, outcomes)
    return Pair(seconds=seconds, first=first, second=second)


def _blocks(outcome: WorkerResult | TaskFailure) -> Blocks:
    if isinstance(outcome, TaskFailure):
        raise SystemExit(f"{outcome.reason}\n{outcome.output}")
    return outcome.process.timed.block_s


def _show(found: dict[str, Pairs], rounds: int) -> None:
    print(f"{rounds} A/A pairs of each mode per workload, on {os.cpu_count()} CPUs\n")
    print("| workload | s per launch pair | s per resident pair | ratio |")
    print("|:--|--:|--:|--:|")
    for name, pairs in found.items():
        launch_s, resident_s = median_s(pairs.launch), median_s(pairs.resident)
        print(f"| {name} | {launch_s:.1f} | {resident_s:.1f} | {resident_s / launch_s:.2f} |")
    print("\n| workload | statistic | sd, launch | sd, resident | ratio | mean, resident |")
    print("|:--|:--|--:|--:|--:|--:|")
    for name, pairs in found.items():
        for title, of in STATISTICS.items():
            apart = [pair.log_ratio(of) for pair in pairs.launch]
            _show_spread(name, title, apart, [pair.log_ratio(of) for pair in pairs.resident])
        apart = [pair.log_ratio(statistics.median) for pair in pairs.launch]
        together = [pair.log_ratio_of_blocks() for pair in pairs.resident]
        _show_spread(name, "median, block by block", apart, together)


def _show_spread(name: str, title: str, apart: Sequence[float], together: Sequence[float]) -> None:
    wide, narrow = statistics.stdev(apart), statistics.stdev(together)
    print(
        f"| {name} | {title} | {wide:.2%} | {narrow:.2%} | {narrow / wide:.2f} "
        f"| {statistics.mean(together):+.2%} |"
    )


def median_s(pairs: Sequence[Pair]) -> float:
    """Return how long the middle one of these pairs took."""
    return statistics.median(pair.seconds for pair in pairs)


def _ratio(one: float, other: float) -> float:
    return one / other


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path, help="keep every block here")
    arguments = parser.parse_args()
    sys.exit(main(arguments.rounds, arguments.device, arguments.json))
