"""Resident pairs that wake up on the CPU of their partner, against those that do so anywhere.

    python -m benchmarks.turns [--rounds N]

Both processes of every pair run the same code (A/A), so every difference is noise. In each round
every workload has one pair of each mode, in an order that is drawn. *Neighbours* is by how much the
ratio of two blocks side by side differs from that of their pair, in the median; *pairs* is the
standard deviation of the ratio of a pair by its blocks side by side, by the first six and by all.
"""

import argparse
import contextlib
import itertools
import math
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

from benchmarks.pair_modes import RESIDENT, ROOT, Pair, launch, median_s
from benchmarks.unchanged_checks import PRODUCT
from ci_perf import suite
from ci_perf.judging.launch_numbers import ratio_of_blocks
from ci_perf.launch import local
from ci_perf.model.suite import Plan
from ci_perf.model.task import Task
from ci_perf.system import files, linux, processes

SMOKE = ("matmul.size=256", "mlp_mnist_train")

FEW = 6


@contextlib.contextmanager
def waking_anywhere(_pid: int, _cpu: int) -> Iterator[None]:
    """Leave it to the kernel where a process wakes up."""
    yield


MODES = {"of the partner": processes.waking_on, "anywhere": waking_anywhere}


def plans(folder: Path) -> Iterator[Plan]:
    """Plan some workloads of the smoke suite, and a product of two small matrices."""
    yield suite.plan(ROOT / "workloads", "smoke", selection=SMOKE, root=ROOT)
    for name, text in PRODUCT.items():
        files.make_folder((folder / name).parent)
        files.write_text(folder / name, text)
    yield suite.plan(folder / "workloads", "smoke", root=folder)


def main(rounds: int) -> int:
    """Measure, and print a row per workload and mode."""
    measured: dict[tuple[str, str], list[Pair]] = {}
    draw = random.Random(0)  # noqa: S311  no secret is made of it
    with tempfile.TemporaryDirectory() as folder, local.launcher(ROOT) as launcher:
        tasks = [
            Task(workload=each, index=0, device="cpu", root=str(plan.root), data_dir=folder)
            for plan in plans(Path(folder))
            for each in plan.workloads
        ]
        for number, todo in itertools.product(range(rounds), tasks):
            for mode in draw.sample([*MODES], 2):
                with mock.patch.object(processes, "waking_on", MODES[mode]):
                    pair = launch(launcher, todo, RESIDENT)
                measured.setdefault((todo.workload.id, mode), []).append(pair)
            print(f"round {number + 1}: {todo.workload.id}", file=sys.stderr, flush=True)
    print(f"{rounds} pairs of each mode, {os.cpu_count()} CPUs, {linux.cpu_model()}\n")
    print("| workload | CPU | s per pair | blocks | neighbours | pairs, six blocks | all |")
    print("|:--|:--|--:|--:|--:|--:|--:|")
    for (name, mode), pairs in sorted(measured.items()):
        show(name, mode, pairs)
    return 0


def show(name: str, mode: str, pairs: Sequence[Pair]) -> None:
    """Print a row."""
    middles = [ratio_of_blocks(pair.first, pair.second) for pair in pairs]
    first = [ratio_of_blocks(pair.first[:FEW], pair.second[:FEW]) for pair in pairs]
    apart = [
        abs(math.log(second / first) - middle)
        for pair, middle in zip(pairs, middles, strict=True)
        for first, second in zip(pair.first, pair.second, strict=True)
    ]
    blocks = statistics.median(len(pair.first) for pair in pairs)
    print(
        f"| {name} | {mode} | {median_s(pairs):.1f} | {blocks:.0f} | "
        f"{statistics.median(apart):.2%} | {statistics.stdev(first):.2%} | "
        f"{statistics.stdev(middles):.2%} |"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=12)
    sys.exit(main(parser.parse_args().rounds))
