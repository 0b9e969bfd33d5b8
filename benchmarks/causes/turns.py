"""Time steps of both sides in turns, in one process: by how much the head is slower.

    python -m benchmarks.causes.turns BASE HEAD

Prints JSON: seconds of a step of both files. That of the base is the median over rounds, that of
the head is longer by the median ratio of a round: what slows a few rounds slows both sides. The
time in which the step was ready to run and others had its CPU is no part of either, where Linux
tells it.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
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


def medians_s(base: str, head: str) -> tuple[float, float]:
    """Time the steps of both files."""
    torch.set_num_threads(1)
    steps = loaded(base), loaded(head)
    for _ in range(_WARMUP):
        for step in steps:
            step()
    rounds: list[tuple[float, float]] = []
    begin = time.perf_counter()
    while len(rounds) < _LEAST_ROUNDS or (
        len(rounds) < _ROUNDS and time.perf_counter() - begin < _MOST_S
    ):
        rounds.append((_timed_s(steps[0]), _timed_s(steps[1])))
    base_s = statistics.median(before for before, _ in rounds)
    return base_s, base_s * statistics.median(after / before for before, after in rounds)


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
    print(json.dumps(medians_s(sys.argv[1], sys.argv[2])))
