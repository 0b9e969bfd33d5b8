"""Run the ranks of one workload by torchrun on this host, and report one result or failure for all.

Run as `python -P -m ci_perf.measuring.ranks FOLDER PARENT`, in the place of a worker: the files in
FOLDER are named in task.py, PARENT is the id of the process that waits for them. Every rank is a
worker, whose parent is the agent.
"""

import contextlib
import faulthandler
import logging
import os
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from ci_perf.errors import InvalidFileError
from ci_perf.measuring import knobs
from ci_perf.measuring.rank_outputs import Outputs
from ci_perf.measuring.turn_client import RanksAgent
from ci_perf.model import task
from ci_perf.model.base import MAX_ERROR_CHARS
from ci_perf.model.explanation import StepProfile
from ci_perf.model.process import Phase, WorkerResult
from ci_perf.model.task import Task, TaskFailure
from ci_perf.system import files, linux

# Never the host's own name: a container's often has no address.
_HOST = "127.0.0.1"

# Somebody else may take a free port before torchrun does.
_PORTS = 5

# A rank that has been asked to end gets this long, in versions of torch that let us say so.
_GRACE_S = "5"

# What is kept of the ranks' outputs, in all: what a run file takes.
_OUTPUT_CHARS = 10_000

# With these signals Python leaves a stack in the output at the moment of its death.
_FAULTS = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}

# torchrun looks every now and then, and notes whole seconds.
_NOTICED_LATE_S = 5.0

# Between asking the ranks where they hang and passing on what they say: see system/child.py.
_STACKS_S = 0.2


class _RanksError(Exception):
    """The ranks ended without a result; `failure` says why."""

    def __init__(self, failure: TaskFailure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def main(
    folder: Path,
    *,
    worker: str = task.WORKER,
    port: Callable[[], int] | None = None,
) -> int:
    """Run the task in `folder` in as many ranks as it says; return the exit code.

    Every rank runs the module `worker`; `port` finds a free one. Whatever goes wrong becomes one
    TaskFailure: that of the rank that failed first.
    """
    failure: TaskFailure | None = None
    try:
        todo = files.read(folder / task.TASK, Task)
        if todo.turns:
            RanksAgent(todo, folder).take_for_import()
        with tempfile.TemporaryDirectory() as here:  # pipes must be of this host
            _run(folder, Path(here), todo, worker, port or free_port)
    except _RanksError as error:
        failure = error.failure
    except BaseException as error:  # noqa: BLE001  torchrun's answer to a signal is none
        reason = " ".join(f"torchrun: {type(error).__name__}: {error}".split())
        failure = TaskFailure(phase=Phase.LAUNCH, reason=reason[:MAX_ERROR_CHARS])
    if failure is not None:
        files.write(folder / task.FAILURE, failure)
        return 1
    return 0


def free_port() -> int:
    """Return a port of this host that is free now."""
    with socket.socket() as probe:
        probe.bind((_HOST, 0))
        return int(probe.getsockname()[1])


def _run(folder: Path, here: Path, todo: Task, worker: str, port: Callable[[], int]) -> None:
    """Start the ranks and wait for their end. Raises _RanksError, and what torchrun raises."""
    os.environ.update(_local_only(), TORCH_ELASTIC_SHUTDOWN_TIMEOUT=_GRACE_S)
    with knobs.pause_collector():
        from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    # It repeats in a screen of lines what we say in one.
    logging.getLogger("torch.distributed.elastic").setLevel(logging.CRITICAL)
    count = todo.workload.world_size
    with Outputs(here, count) as outputs, _print_stacks_on_signal(folder, outputs):
        try:
            _torchrun(folder, outputs, worker, port)
        except ChildFailedError as error:
            raise _RanksError(_failure(folder, error.failures, outputs)) from None
        if wrong := _wrong(folder, count, profiles=bool(todo.profiler)):
            raise _RanksError(
                TaskFailure(
                    phase=Phase.TEARDOWN,
                    reason=wrong[:MAX_ERROR_CHARS],
                    output=outputs.tail(0)[-_OUTPUT_CHARS:],
                )
            )


def _torchrun(folder: Path, outputs: Outputs, worker: str, port: Callable[[], int]) -> None:
    """Run all ranks on this host; once more where the port has been taken meanwhile."""
    from torch.distributed import DistNetworkError

    for left in reversed(range(_PORTS)):
        try:
            _launch(
                folder,
                outputs,
                worker,
                run_id="ci-perf",
                rdzv_backend="static",
                rdzv_endpoint=f"{_HOST}:{port()}",
                rdzv_configs={"rank": 0},
                local_addr=_HOST,
            )
        except DistNetworkError:
            if not left:
                raise
        else:
            return


def _launch(
    folder: Path, outputs: Outputs, worker: str, **rendezvous: str | dict[str, Any]
) -> None:
    """Run torchrun through its Python API. Raises what torchrun raises."""
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=len(outputs.paths),
        max_restarts=0,
        logs_specs=_ToPipes(folder / "torchrun", outputs),
        **rendezvous,
    )
    elastic_launch(config, sys.executable)("-P", "-m", worker, str(folder), str(os.getpid()))


class _ToPipes:
    """Tells torchrun where the output of each rank goes, in the place of its own LogsSpecs."""

    def __init__(self, folder: Path, outputs: Outputs) -> None:
        from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs

        self._theirs = DefaultLogsSpecs(log_dir=str(folder))
        self._outputs = outputs
        self.root_log_dir = str(folder)

    def reify(self, envs: dict[int, dict[str, str]]) -> Any:  # noqa: ANN401  torch's LogsDest
        """Say where everything goes."""
        destinations = self._theirs.reify(envs)
        self._outputs.first = int(envs[0]["RANK"])
        self._outputs.world_size = int(envs[0]["WORLD_SIZE"])
        paths = {rank: str(path) for rank, path in enumerate(self._outputs.paths)}
        destinations.stdouts = paths
        destinations.stderrs = dict(paths)
        return destinations


def _local_only() -> dict[str, str]:
    """Have gloo and nccl talk over the loopback: they would ask for the address of the host."""
    names = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    name = "lo" if "lo" in names or not names else names[0]
    return {"GLOO_SOCKET_IFNAME": name, "NCCL_SOCKET_IFNAME": name}


@contextlib.contextmanager
def _print_stacks_on_signal(folder: Path, outputs: Outputs) -> Iterator[None]:
    """Within, SIGUSR1 has every rank print its stack, and us pass it on: the time limit is over."""

    def pass_on(number: int, frame: FrameType | None) -> None:
        del number, frame
        for child in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGUSR1)
        time.sleep(_STACKS_S)
        phases = [_phase(folder, rank) for rank in outputs.ranks]
        (folder / task.PHASE).write_text(min(phases, key=list(Phase).index).value)
        share = _OUTPUT_CHARS // len(outputs.paths)
        for rank in outputs.ranks:
            sys.stdout.write(_last_lines(outputs.tail(rank), share - 20, f"rank {rank}:"))
        sys.stdout.flush()

    signal.signal(signal.SIGUSR1, pass_on)
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)


def _children() -> list[int]:
    """Return the ids of the ranks, our child processes; none where /proc lacks the list."""
    us = os.getpid()
    try:
        return [int(pid) for pid in Path(f"/proc/{us}/task/{us}/children").read_text().split()]
    except OSError:
        return []


def _last_lines(text: str, limit: int, title: str) -> str:
    return f"{title}\n{text[-limit:].rstrip()}\n" if text.strip() else f"{title} no output\n"


def _failure(folder: Path, failures: Mapping[int, Any], outputs: Outputs) -> TaskFailure:
    """Describe the failure of the rank that failed first: the others ended because of it."""
    rank = _first(folder, failures, outputs)
    said = _read(folder, rank)
    if said is not None:
        reason, phase = said.reason, said.phase
    else:
        phase = _phase(folder, rank)
        code = failures[rank].exitcode
        end = f"ended with exit code {code}"
        end = end if code >= 0 else f"was ended by {linux.name_signal(code)}"
        reason = f"the process {end} in phase {phase.value}"
    return TaskFailure(
        phase=phase,
        reason=f"rank {rank} of {outputs.world_size}: {reason}"[:MAX_ERROR_CHARS],
        output=outputs.tail(rank)[-_OUTPUT_CHARS:],
        exhausted=said.exhausted if said is not None else None,
        rank=rank,
    )


def _first(folder: Path, failures: Mapping[int, Any], outputs: Outputs) -> int:
    """Find the rank whose end was the first. torchrun finds several dead at once."""
    # SIGTERM is what torchrun sends to the others.
    own = [rank for rank, failure in failures.items() if failure.exitcode != -signal.SIGTERM]
    return min(own or failures, key=lambda rank: _find_end(folder, rank, failures[rank], outputs))


def _find_end(folder: Path, rank: int, failure: Any, outputs: Outputs) -> float:  # noqa: ANN401
    """Return about when a rank ended, by `time.time`.

    An exception is known by the time of its report, and a fault by that of the last output. What
    ends without a word (SIGKILL, an exit) is no consequence of another's end, and comes first.
    """
    with contextlib.suppress(FileNotFoundError):
        return (folder / task.name_rank_file(task.FAILURE, rank)).stat().st_mtime
    spoken = outputs.spoken_at(rank)
    if -failure.exitcode in _FAULTS and spoken:
        return spoken
    return float(failure.timestamp) - _NOTICED_LATE_S


def _read(folder: Path, rank: int) -> TaskFailure | None:
    """Return what a rank wrote of its own end, if it did and it can be read."""
    path = folder / task.name_rank_file(task.FAILURE, rank)
    try:
        return None if files.is_missing(path) else files.read(path, TaskFailure)
    except InvalidFileError:
        return None


def _phase(folder: Path, rank: int) -> Phase:
    try:
        return Phase((folder / task.name_rank_file(task.PHASE, rank)).read_text())
    except (OSError, ValueError):  # it has not come so far
        return Phase.LAUNCH


def _wrong(folder: Path, count: int, *, profiles: bool = False) -> str:
    """Say why what the ranks left is no result of `count` ranks; empty when it is one."""
    path = folder / task.RESULT
    undone = [r for r in range(count) if not (folder / task.name_rank_file(task.DONE, r)).exists()]
    if undone and len(undone) < count:
        phase = _phase(folder, undone[0]).value
        return f"rank {undone[0]} of {count}: the process ended with exit code 0 in phase {phase}"
    if files.is_missing(path):
        return f"{count} ranks ended well, and none of them left a result"
    try:
        if profiles:  # rank 0 alone leaves what it found
            files.read(path, StepProfile)
            return ""
        ranks = files.read(path, WorkerResult).process.ranks
    except InvalidFileError as error:
        return f"invalid result: {error}"
    if ranks is None:
        return f"expected the result of {count} ranks, found that of one process"
    if (ranks.world_size, ranks.restarts) == (count, 0):
        return ""
    return (
        f"expected {count} ranks that were never restarted, found {ranks.world_size} ranks and "
        f"{ranks.restarts} restarts"
    )


if __name__ == "__main__":
    linux.end_with_parent(int(sys.argv[2]))
    faulthandler.register(signal.SIGUSR1, all_threads=True)  # until there are ranks to ask
    knobs.end_process(main(Path(sys.argv[1])))
