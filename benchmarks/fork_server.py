"""What a fork server would save, and what it would hide, against the fresh launches that we make.

    python benchmarks/fork_server.py [ROUNDS]

A fork server imports torch and transformers once, builds nothing, and forks for every launch. Both
kinds run the same worker on the same tasks. In each round, every workload is launched fresh and
from each of two servers, so that a busy machine slows all of them; the tables hold ratios.

*Spread* is the interquartile range of the processes' step times over their median: on a machine
that others use too, a standard deviation would mostly show the one launch that they hit. Forked
processes share the addresses and the allocator of their server: *between servers* is how far the
medians of the two servers are apart, which no number of launches from one server would show.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ci_perf import suite
from ci_perf.judging import launch_numbers
from ci_perf.model import metrics, task
from ci_perf.model.process import Process, WorkerResult
from ci_perf.model.suite import PlannedWorkload
from ci_perf.system import files

ROOT = Path(__file__).parents[1]
WORKLOADS = ("matmul.size=256", "mlp_mnist_train", "bert_base_infer.dtype=fp32")
SERVERS = 2
KNOBS = {
    "HF_HUB_OFFLINE": "1",
    "MKL_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}
# Reads folders, one per line, and forks a worker for each; answers with its exit status. The names
# are touched because transformers imports its modules only then.
SERVER = """
import os, sys
from pathlib import Path
import torch
from transformers import BertModel, GPT2LMHeadModel, ResNetForImageClassification
from ci_perf.measuring import phases, worker
print("ready", flush=True)
for folder in sys.stdin:
    if not (child := os.fork()):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os._exit(worker.main(Path(folder.strip())))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""

Start = Callable[[Path], object]


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What one launch took from asking to its end, and what it measured."""

    seconds: float
    process: Process


# By workload, then by the way in which they were launched.
Launches = dict[str, dict[str, list[Launch]]]


class Server:
    """A process that has imported everything and forks workers."""

    def __init__(self) -> None:
        start = time.perf_counter()
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-c", SERVER],
            cwd=ROOT,
            env={**os.environ, **KNOBS},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._expect("ready")
        self.start_s = time.perf_counter() - start

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._child.communicate()

    def run(self, folder: Path) -> None:
        """Run one worker to its end."""
        assert self._child.stdin is not None
        self._child.stdin.write(f"{folder}\n")
        self._child.stdin.flush()
        self._expect("0")

    def _expect(self, answer: str) -> None:
        assert self._child.stdout is not None
        if (found := self._child.stdout.readline().strip()) != answer:
            raise SystemExit(f"fork server: expected {answer!r}, found {found!r}")


def fresh(folder: Path) -> None:
    """Run one worker as ci-perf does."""
    subprocess.run(
        [sys.executable, "-P", "-m", "ci_perf.measuring.worker", str(folder), str(os.getpid())],
        cwd=ROOT,
        env={**os.environ, **KNOBS},
        check=True,
    )


def main(rounds: int) -> int:
    """Print the tables."""
    planned = suite.plan(ROOT / "workloads", "smoke", selection=WORKLOADS, root=ROOT).workloads
    with ExitStack() as stack:
        data_dir = stack.enter_context(tempfile.TemporaryDirectory())
        servers = [stack.enter_context(Server()) for _ in range(SERVERS)]
        ways = {"fresh": fresh, **{f"server {n}": s.run for n, s in enumerate(servers)}}
        launches: Launches = {workload.id: {way: [] for way in ways} for workload in planned}
        for index in range(rounds):
            for workload in planned:
                for way, start in ways.items():
                    launches[workload.id][way].append(_launch(workload, index, data_dir, start))
        start_s = statistics.mean(server.start_s for server in servers)
    print(f"{rounds} rounds; a fork server needs {start_s:.1f} s to start.\n")
    _show_seconds(launches)
    _show_spread(launches)
    return 0


def _launch(workload: PlannedWorkload, index: int, data_dir: str, start: Start) -> Launch:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        todo = task.Task(
            workload=workload, index=index, device="cpu", root=str(ROOT), data_dir=data_dir
        )
        files.write(folder / task.TASK, todo)
        begin = time.perf_counter()
        start(folder)
        seconds = time.perf_counter() - begin
        result = files.read(folder / task.RESULT, WorkerResult)
    return Launch(seconds=seconds, process=result.process)


def _show_seconds(launches: Launches) -> None:
    print("| workload | s per fresh launch | in its phase import | s per fork | ratio |")
    print("|:--|--:|--:|--:|--:|")
    for name, ways in launches.items():
        whole = _median(launch.seconds for launch in ways["fresh"])
        imports = _median(launch.process.phases.import_s for launch in ways["fresh"])
        forked = _median(launch.seconds for launch in _forked(ways))
        print(
            f"| {name} | {whole:.1f} | {imports / whole:.0%} | {forked:.1f} "
            f"| {forked / whole:.2f} |"
        )


def _show_spread(launches: Launches) -> None:
    print(
        "\n| workload | step time, fresh | spread, fresh | spread, in a server | ratio "
        "| between servers | step time, fork / fresh | peak memory, fork / fresh |"
    )
    print("|:--|--:|--:|--:|--:|--:|--:|--:|")
    for name, ways in launches.items():
        steps = {way: [_step_s(launch) for launch in made] for way, made in ways.items()}
        servers = [found for way, found in steps.items() if way != "fresh"]
        apart = _spread(steps["fresh"])
        together = statistics.mean(_spread(found) for found in servers)
        medians = [statistics.median(found) for found in servers]
        step_s = statistics.median(steps["fresh"])
        forked_s = statistics.median(value for found in servers for value in found)
        peak = _median(map(_peak, _forked(ways))) / _median(map(_peak, ways["fresh"]))
        print(
            f"| {name} | {step_s * 1e3:.3f} ms | {apart:.1%} | {together:.1%} "
            f"| {together / apart:.2f} | {max(medians) / min(medians) - 1:.1%} "
            f"| {forked_s / step_s:.3f} | {peak:.2f} |"
        )


def _forked(ways: dict[str, list[Launch]]) -> list[Launch]:
    return [launch for way, made in ways.items() if way != "fresh" for launch in made]


def _step_s(launch: Launch) -> float:
    return launch_numbers.of_process(launch.process)[metrics.STEP_TIME.name]


def _peak(launch: Launch) -> float:
    return launch.process.memory.host_rss_peak_bytes


def _median(values: Iterable[float]) -> float:
    return statistics.median(values)


def _spread(values: Sequence[float]) -> float:
    low, middle, high = statistics.quantiles(values, n=4)
    return (high - low) / middle


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 8))
