"""Time steps of both sides in turns, in one process: by how much the head is slower.

    python -m benchmarks.causes.turns BASE HEAD

Prints JSON: seconds of a step of each file, of the fastest round: nothing has disturbed that.
"""

import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import torch

from ci_perf.workload import Context

_ROUNDS: Final = 40
_WARMUP: Final = 5


def loaded(file: str) -> Callable[[], object]:
    """Build the workload of a file, and return its step."""
    names: dict[str, Any] = {"__name__": "model", "__file__": file}
    # Two sides may not define one operator in one process.
    text = Path(file).read_text(encoding="utf-8").replace('"planted::', f'"{namespace(file)}::')
    exec(compile(text, file, "exec"), names)  # noqa: S102  our own text
    workload = names["build"](Context(device="cpu", parameters={}, seed=0, data_dir="."))
    step: Callable[[], object] = workload.step
    return step


def namespace(file: str) -> str:
    """Name the operators of a side."""
    return f"planted_{Path(file).parent.name}"


def fastest_s(files: Sequence[str]) -> list[float]:
    """Time the steps of each file."""
    torch.set_num_threads(1)
    steps = [loaded(file) for file in files]
    fastest = [math.inf] * len(steps)
    for rounds in range(_WARMUP + _ROUNDS):
        for index, step in enumerate(steps):
            start = time.perf_counter()
            step()
            if rounds >= _WARMUP:
                fastest[index] = min(fastest[index], time.perf_counter() - start)
    return fastest


if __name__ == "__main__":
    print(json.dumps(fastest_s(sys.argv[1:])))
