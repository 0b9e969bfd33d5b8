"""Run the ranks of one workload on several nodes: the cluster's own command starts one agent each.

Run as `python -P -m ci_perf.measuring.nodes FOLDER PARENT`, in the place of an agent. The store by
which the agents meet is here, so that no node need be known beforehand. FOLDER is seen by all of
them: it lies below TMPDIR, which must be a folder that the nodes share.
"""

import contextlib
import math
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path

from ci_perf.errors import CiPerfError, InvalidFileError
from ci_perf.measuring import ranks
from ci_perf.model import task
from ci_perf.model.process import Phase
from ci_perf.model.task import Task, TaskFailure
from ci_perf.system import files, linux

# How to start a program once on each node. It is the runner's, never the repository's.
COMMAND = "CI_PERF_NODES_COMMAND"
# By a step of the job that this process runs in; the first agent that fails ends the others.
_SRUN = (
    "srun --overlap --kill-on-bad-exit=1 --input=none --export=ALL "
    "--nodes={nodes} --ntasks={nodes} --ntasks-per-node=1"
)
# What the other agents get to end by themselves, after one has failed.
_GRACE_S = 20.0
_LOOK_EVERY_S = 0.2


def main(folder: Path, environment: Mapping[str, str] = os.environ) -> int:
    """Run the task in `folder` on as many nodes as it says; return the exit code.

    Whatever goes wrong becomes one TaskFailure: that of the rank that failed first.
    """
    try:
        todo = files.read(folder / task.TASK, Task)
        failure = _run(folder, todo, command(todo.workload.nodes, environment))
    except (CiPerfError, OSError) as error:
        failure = TaskFailure(phase=Phase.LAUNCH, reason=str(error)[: ranks.REASON_CHARS])
    if failure is None:
        return 0
    files.write(folder / task.FAILURE, failure)
    return 1


def command(nodes: int, environment: Mapping[str, str]) -> list[str]:
    """Return the words that start a program once on each of `nodes` nodes.

    Raises CiPerfError where nothing says how.
    """
    spelled = environment.get(COMMAND, _SRUN if "SLURM_JOB_ID" in environment else "")
    if not spelled:
        raise CiPerfError(
            f"nodes = {nodes}: expected a job of Slurm around ci-perf, or a command in {COMMAND} "
            "that starts a program once per node ({nodes} in it is their number), found neither"
        )
    try:
        words = shlex.split(spelled)
    except ValueError as error:
        raise CiPerfError(f"{COMMAND}: expected a command, found {spelled!r}: {error}") from None
    return [word.replace("{nodes}", str(nodes)) for word in words]


def _run(folder: Path, todo: Task, starter: list[str]) -> TaskFailure | None:
    """Start an agent on each node, and return why there is no result, or `None`."""
    from torch.distributed import TCPStore

    limit = timedelta(seconds=task.limit_s(todo))
    host = ranks.address()
    store = TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=limit)
    endpoint = f"{host}:{store.port}"
    agent = [sys.executable, "-P", "-m", task.RANKS, str(folder), endpoint]
    with _started([*starter, *agent]) as process:
        code = _wait(folder, process)
    if failure := _first(folder):
        return failure
    if code:
        return TaskFailure(
            phase=Phase.LAUNCH,
            reason=f"{starter[0]} ended with exit code {code}, and no node says why; its folder "
            f"must be on all {todo.workload.nodes} nodes: TMPDIR names a folder that they share",
        )
    return ranks.wrong_result(folder, todo)


@contextlib.contextmanager
def _started(words: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Provide the process that starts the agents; SIGUSR1 asks them where they hang."""
    us = os.getpid()
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        preexec_fn=lambda: linux.end_with_parent(us),  # noqa: PLW1509  no thread of ours runs
    ) as process:
        signal.signal(signal.SIGUSR1, lambda *_: process.send_signal(signal.SIGUSR1))
        try:
            yield process
        finally:
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)
            process.kill()


def _wait(folder: Path, process: subprocess.Popen[bytes]) -> int:
    """Wait for the agents; where one has failed, the others only for a while."""
    left = _GRACE_S
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(_LOOK_EVERY_S)
        if _failures(folder):
            left -= _LOOK_EVERY_S
        if left <= 0:
            process.terminate()
            left = _GRACE_S


def _failures(folder: Path) -> list[Path]:
    stem, _, suffix = task.FAILURE.partition(".")
    return sorted(folder.glob(f"{stem}.node-*.{suffix}"))


def _first(folder: Path) -> TaskFailure | None:
    """Return the failure of the node whose rank ended first: the others ended because of it."""
    failures = []
    for path in _failures(folder):
        with contextlib.suppress(InvalidFileError):
            failures.append(files.read(path, TaskFailure))
    return min(failures, key=lambda failure: _told_at(folder, failure), default=None)


def _told_at(folder: Path, failure: TaskFailure) -> float:
    """Return about when a rank ended, by the clock of the folder.

    What ended without a word is no consequence of another's end, and comes first, as on one node; a
    node that names no rank comes last.
    """
    if failure.rank is None:
        return math.inf
    with contextlib.suppress(FileNotFoundError):
        return (folder / task.of_rank(task.FAILURE, failure.rank)).stat().st_mtime
    return 0.0


if __name__ == "__main__":
    linux.end_with_parent(int(sys.argv[2]))
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # until there are agents to ask
    sys.exit(main(Path(sys.argv[1])))
