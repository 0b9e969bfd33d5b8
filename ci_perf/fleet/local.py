"""Slots of this machine: each attempt is a child process in a session of its own."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf.errors import EngineError, UsageError
from ci_perf.fleet import node
from ci_perf.fleet.engine import EngineJob, Observation, Placed
from ci_perf.model.fleet import Attempt, NodeClass
from ci_perf.system import processes

# It costs nothing to look at one's own children.
_POLL_S = 0.1


@dataclass(slots=True)
class _Task:
    """One attempt: it waits for a slot, runs in one, or has ended in one."""

    attempt: Attempt
    job: EngineJob
    slot: int = -1
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def runs(self) -> bool:
        """Whether its process has not ended yet."""
        return self.process is not None and self.process.poll() is None


class LocalEngine:
    """Starts an attempt in a free slot of its class; a slot is called "CLASS-0".

    `select` of a class names CUDA devices, one for each slot: "0,1".
    """

    poll_s = _POLL_S

    def __init__(self, environment: Sequence[str], ours: Mapping[str, str]) -> None:
        # What runs here is given no more than what a node would be given.
        self._environment = node.environment_of(ours, environment)
        self._tasks: dict[str, _Task] = {}

    def submit(self, job: EngineJob) -> Mapping[str, str]:
        """See FleetEngine: start what has a slot. Raises EngineError."""
        for attempt in job.attempts:
            self._tasks[attempt.nonce] = _Task(attempt, job)
        self._start_waiting()
        return {attempt.nonce: attempt.nonce for attempt in job.attempts}

    def poll(self, placed: Sequence[Placed]) -> Mapping[str, Observation]:
        """See FleetEngine."""
        self._start_waiting()
        nonces = {p.attempt.nonce for p in placed}
        # Of what has ended and is asked for no more, nobody will ask again.
        self._tasks = {n: t for n, t in self._tasks.items() if n in nonces or t.runs}
        return {n: _observed(task) for n, task in self._tasks.items() if n in nonces}

    def cancel(self, placed: Sequence[Placed]) -> None:
        """See FleetEngine: an agent ends its command; what does not end in time is killed."""
        tasks = [self._tasks.get(p.attempt.nonce) for p in placed]
        for task in tasks:
            if task is not None and task.process is not None and task.runs:
                task.process.send_signal(signal.SIGTERM)
        for p, task in zip(placed, tasks, strict=True):
            if task is not None and task.process is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    task.process.wait(timeout=node.TIDY_UP_S + 1)
            # An earlier controller's too: they carry the nonce wherever they have gone.
            for pid in processes.carrying(node.COOKIE, p.attempt.nonce):
                processes.kill(pid)
            self._tasks.pop(p.attempt.nonce, None)

    def close(self) -> None:
        """Kill what still runs: nobody will read it."""
        self.cancel([Placed(attempt=t.attempt, handle="") for t in list(self._tasks.values())])

    def _start_waiting(self) -> None:
        for task in self._tasks.values():
            if task.process is None and (slot := self._free_slot(task.job)) is not None:
                task.slot = slot
                task.process = self._start(task)

    def _free_slot(self, job: EngineJob) -> int | None:
        taken = {
            task.slot
            for task in self._tasks.values()
            if task.job.class_name == job.class_name and task.runs
        }
        free = [slot for slot in range(job.node_class.nodes) if slot not in taken]
        others = [slot for slot in free if _name(job, slot) not in job.avoid]
        if others:
            return others[0]
        # There is no other machine here: a slot that failed before is better than none.
        is_anywhere = len(job.avoid) < job.node_class.nodes
        return None if is_anywhere or not free else free[0]

    def _start(self, task: _Task) -> "subprocess.Popen[bytes]":
        log = Path(task.job.file).with_suffix(f".{task.attempt.index}.log")
        devices = _devices(task.job.node_class)
        chosen = {"CUDA_VISIBLE_DEVICES": devices[task.slot]} if devices else {}
        agent = [sys.executable, "-P", "-m", node.MODULE, task.job.file, str(task.attempt.index)]
        try:
            with log.open("wb") as output:
                return subprocess.Popen(
                    [*agent, str(os.getpid())],
                    env={**self._environment, **chosen},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # Ctrl-C reaches us, and we end it in our own way
                )
        except OSError as error:
            raise EngineError(f"a slot cannot be started: {error.strerror}") from None


def check(classes: Mapping[str, NodeClass]) -> None:
    """Refuse a class with fewer devices than slots. Raises UsageError."""
    for name, node_class in classes.items():
        count = len(_devices(node_class))
        if count and count < node_class.nodes:
            raise UsageError(
                f"[class.{name}]: expected a CUDA device in `select` for each of "
                f"{node_class.nodes} nodes, found {count}"
            )


def _observed(task: _Task) -> Observation:
    if task.process is None:
        return Observation(state="queued")
    name = _name(task.job, task.slot)
    if task.runs:
        return Observation(state="running", node=name)
    code = task.process.returncode
    # A killed agent says nothing of its unit, as a node that died.
    return Observation(state="lost" if code < 0 else "ended", node=name, detail=_said(task, code))


def _said(task: _Task, code: int) -> str:
    log = Path(task.job.file).with_suffix(f".{task.attempt.index}.log")
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    return f"exit code {code}" + "".join(f": {line[:300]}" for line in lines[-1:])


def _devices(node_class: NodeClass) -> list[str]:
    return [name.strip() for name in node_class.select.split(",") if name.strip()]


def _name(job: EngineJob, slot: int) -> str:
    return f"{job.class_name}-{slot}"
