"""Time steps of several files in turns, in one process: what slows a few rounds slows all of them.

    python -m benchmarks.causes.turns FILE…

Prints JSON: of each round the seconds of a step of each file. The time in which the step was ready
to run and others had its CPU is no part of them, where Linux tells it.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import torch

from ci_perf.workload import Context

_ROUNDS: Final = 150
_MOST_S: Final = 10.0
_LEAST_ROUNDS: Final = 20
_WARMUP: Final = 5
_RESOLUTION_S: Final = 1e-6
_SCHEDULED: Final = Path("/proc/thread-self/schedstat")


def loaded(file: str) -> Callable[[], object]:
    """Build the workload of a file, and return its step."""
    names: dict[str, Any] = {"__name__": "model", "__file__": file}
    # Two sides may not define one operator in one process.
    text = Path(file).read_text(encoding="utf-8").replace('"planted::', f'"{namespace(file)}::')
    exec(compile(text, file, "exec"), names)  # noqa: S102  our own text
    folder = str(Path(file).parent)
    workload = names["build"](Context(device="cpu", parameters={}, seed=0, data_dir=folder))
    step: Callable[[], object] = workload.step
    return step


def namespace(file: str) -> str:
    """Name the operators of a side."""
    return f"planted_{Path(file).parent.name}"


def rounds_s(files: Sequence[str]) -> list[list[float]]:
    """Time the steps of the files: of each round one step of each."""
    torch.set_num_threads(1)
    steps = [loaded(file) for file in files]
    for _ in range(_WARMUP):
        for step in steps:
            step()
    rounds: list[list[float]] = []
    begin = time.perf_counter()
    while len(rounds) < _LEAST_ROUNDS or (
        len(rounds) < _ROUNDS and time.perf_counter() - begin < _MOST_S
    ):
        rounds.append([_timed_s(step) for step in steps])
    return rounds


def _timed_s(step: Callable[[], object]) -> float:
    start, ready = time.perf_counter(), _ready_s()
    step()
    seconds = time.perf_counter() - start - (_ready_s() - ready)
    return max(seconds, _RESOLUTION_S)


def _ready_s() -> float:
    """Return how long this thread has been ready while others had its CPU; 0 where unknown."""
    try:
        return int(_SCHEDULED.read_text().split()[1]) * 1e-9
    except (OSError, IndexError, ValueError):
        return 0.0


if __name__ == "__main__":
    print(json.dumps(rounds_s(sys.argv[1:])))
