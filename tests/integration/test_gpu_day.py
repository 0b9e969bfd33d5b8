"""A day with a GPU, rehearsed on a CPU: one part of each kind."""

import json
import time

from benchmarks import gpu_day, gpu_day_steps
from ci_perf.model.base import Scalar
from ci_perf.workload import Context

# Each way to measure and to tell, and each step.
KINDS = ("loader", "graph-5", "forks", "command", "compiled", "scaler", "monitor", "operators")


def test_a_rehearsal_answers_each_kind_of_part(tmp_path):
    paths = (tmp_path / "day.json", tmp_path / "day.md")

    gpu_day.main(KINDS, "cpu", 10, *paths)

    parts = json.loads(paths[0].read_text())["parts"]
    assert {name: part.get("problem") for name, part in parts.items()} == dict.fromkeys(KINDS)
    assert all(part["told"] in paths[1].read_text().replace("\\|", "|") for part in parts.values())
    assert parts["loader"]["pairs"] >= 1
    first, second, edited = parts["compiled"]["digests"]
    assert first == second != edited
    assert all(parts["graph-5"][kind]["differences"] for kind in ("launch", "resident"))


def test_work_that_is_planted_into_a_step_makes_it_longer():
    planted: dict[str, Scalar] = {"kind": "long", "percent": 300, "is_head": True}

    plain_s, longer_s = (
        find_fastest(
            gpu_day_steps.build(Context(device="cpu", parameters=of, seed=0, data_dir="")).step
        )
        for of in (dict[str, Scalar](kind="long"), planted)
    )

    assert longer_s > 1.5 * plain_s


def find_fastest(step):
    """Return the time of the fastest of ten steps: a busy machine makes none of them faster."""
    times = []
    for _ in range(10):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return min(times)
