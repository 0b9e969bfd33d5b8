"""Record resident pairs of the same code while other programs use the CPU.

    python -m benchmarks.crowded.record FILE [--minutes N] [--busy N] [--workload ID]...

Pairs are launched as `ci-perf check --against` launches them. The file holds, per workload and
pair, both sides' seconds per step of each block: by the clock of the wall, and CPU time. `--busy`
starts so many programs that compute, for as long as the recording lasts.
"""

import argparse
import contextlib
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ci_perf import suite
from ci_perf.launch import local
from ci_perf.model.process import WorkerResult
from ci_perf.model.task import Task, TaskFailure

ROOT = Path(__file__).parents[2]
WORKLOADS = ("matmul.size=256", "mlp_mnist_train", "gpt_decode")
_DIGITS = 5

Side = dict[str, list[float]]


def record(file: Path, workloads: Sequence[str], seconds: float) -> None:
    """Launch pairs of each workload in turns, and write the file anew after each round."""
    folder, selection = ROOT / "workloads", tuple(workloads)
    planned = suite.plan(folder, "smoke", selection=selection, root=ROOT).workloads
    pairs: dict[str, list[tuple[Side, Side]]] = {workload.id: [] for workload in planned}
    end = time.monotonic() + seconds
    with local.launcher(ROOT) as launcher, tempfile.TemporaryDirectory() as data_dir:
        machine = launcher.describe("cpu", 1, 1)
        if isinstance(machine, TaskFailure):
            raise SystemExit(machine.reason)
        while time.monotonic() < end:
            for workload in planned:
                todo = Task(
                    workload=workload,
                    index=len(pairs[workload.id]),
                    device="cpu",
                    root=str(ROOT),
                    data_dir=data_dir,
                    gpus=(),
                )
                base, head = map(_side, launcher.launch_pair(todo, todo))
                pairs[workload.id].append((base, head))
            _write(file, {"cpus": os.cpu_count(), "load": os.getloadavg()[0], "pairs": pairs})


def _side(outcome: WorkerResult | TaskFailure) -> Side:
    if isinstance(outcome, TaskFailure):
        raise SystemExit(f"{outcome.reason}\n{outcome.output}")
    timed = outcome.process.timed
    return {"wall": _short(timed.block_s), "cpu": _short(timed.cpu_s or ())}


def _short(values: Sequence[float]) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values]


def _write(file: Path, content: object) -> None:
    text = json.dumps(content, separators=(",", ":"))
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


@contextlib.contextmanager
def _neighbours(count: int) -> Iterator[None]:
    """Keep so many programs busy."""
    code = "while True: sum(range(100_000))"
    busy = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--busy", type=int, default=0)
    parser.add_argument("--workload", action="append", dest="workloads")
    arguments = parser.parse_args()
    with _neighbours(arguments.busy):
        record(arguments.file, arguments.workloads or WORKLOADS, arguments.minutes * 60)
