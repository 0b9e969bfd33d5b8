"""Run workloads below torch.profiler and print their operators: what users would do by hand.

    python -m benchmarks.causes.averages STEPS FILE…

Prints JSON, a list for each file: of each operator its name, the mean of its self time per step (as
`key_averages` has it), and its calls per step times the 25 % quantile of its self time.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, schedule

from benchmarks.causes.turns import loaded, namespace

_WARMUP = 3
# Put beside the file.
TRACE = ".pt.trace.json.gz"


def main(steps: int, files: list[str]) -> None:
    """Profile so many steps of each file."""
    torch.set_num_threads(1)
    print(json.dumps([list(_averages(file, steps)) for file in files]))


def _averages(file: str, steps: int) -> Iterator[tuple[str, float, float]]:
    step = loaded(file)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=_WARMUP, active=steps, repeat=1),
    ) as profiler:
        for _ in range(1 + _WARMUP + steps):
            step()
            profiler.step()
    profiler.export_chrome_trace(str(Path(file).with_suffix(TRACE)))
    times: dict[str, list[float]] = defaultdict(list)
    for event in profiler.events():
        times[event.name].append(event.self_cpu_time_total * 1e-6)
    means = {each.key: each.self_cpu_time_total * 1e-6 for each in profiler.key_averages()}
    for name, of_name in times.items():
        if "::" in name:
            shown = name.replace(namespace(file), "planted")
            yield shown, means.get(name, 0.0) / steps, len(of_name) / steps * _quartile(of_name)


def _quartile(times: list[float]) -> float:
    return sorted(times)[(len(times) - 1) // 4]


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
