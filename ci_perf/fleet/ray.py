"""Ray: a task per attempt, which Ray must not try again. Checkout and results travel as bytes.

With ray_task.py the only file that knows the package ray, an extra for those who have a cluster.
"""

import contextlib
import os
import re
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ci_perf.errors import EngineError, InvalidFileError, UsageError
from ci_perf.fleet import node, ray_task, transfer
from ci_perf.fleet.engine import EngineJob, Observation, Placed
from ci_perf.fleet.transfer import PackedCheckout
from ci_perf.model.fleet import JobFile, NodeClass, RayTable
from ci_perf.model.shards import WorkUnit
from ci_perf.system import files, signals

_POLL_S = 1.0
# An agent gives its command time to tidy up, a task its agent, and we give it to the task.
_AGENT_S = node.TIDY_UP_S + 1
_TASK_S = _AGENT_S + 1
_CONNECT_S = 10.0
_MOST_CHARS = 500
_RESOURCE = re.compile(r"\s*([^,:\s][^,]*?)(?::([0-9]+(?:\.[0-9]+)?))?\s*", re.ASCII)
# What Ray raises where nobody knows what came of an attempt.
_LOST = {
    "NodeDiedError": "its node died",
    "OutOfMemoryError": "Ray ended it: its node was short of memory",
    "TaskCancelledError": "somebody cancelled it",
    "WorkerCrashedError": "Ray's worker process was killed",
}


@dataclass(slots=True)
class _Task:
    """An attempt that Ray has. It yields the id of its node, and at its end two more items."""

    stream: Any
    folder: Path
    items: list[bytes] = field(default_factory=list)
    over: Observation | None = None
    cancelled_at: float | None = None

    @property
    def node(self) -> str:
        """Return the id of its node; empty before it runs."""
        return self.items[0].decode(errors="replace") if self.items else ""


class RayEngine:
    """Tasks, each in a worker process of its own (`max_calls=1`); Ray ends them when we die."""

    poll_s = _POLL_S

    def __init__(self, table: RayTable, *, python: str, root: Path) -> None:
        self._table, self._python, self._root = table, python, root
        self._ray: Any = None
        self._left = contextlib.ExitStack()
        self._tasks: dict[str, _Task] = {}
        self._checkouts: dict[tuple[str, str], tuple[PackedCheckout, Any]] = {}

    def submit(self, job: EngineJob) -> Mapping[str, str]:
        """See FleetEngine. Raises EngineError; UsageError and CiPerfError of `transfer.pack`."""
        ray = self._connected()
        options = _placement(job, self._nodes())
        agent = ray.remote(max_retries=0, max_calls=1, num_returns="streaming")(ray_task.attempt)
        command = [self._python, "-P", "-m", transfer.MODULE]
        folders = [Path(folder) for folder in files.read(Path(job.file), JobFile).folders]
        try:
            for attempt, folder in zip(job.attempts, folders, strict=True):
                checkout, repository = self._checkout(folder)
                said = transfer.sent(checkout, folder)
                given = (command, said, repository, _AGENT_S, transfer.MOST_BYTES)
                stream = agent.options(name=f"ci-perf {attempt.unit}", **options).remote(*given)
                self._tasks[attempt.nonce] = _Task(stream, folder)
        except (ray.exceptions.RayError, RuntimeError, ValueError) as error:
            self.cancel([Placed(attempt=attempt, handle="") for attempt in job.attempts])
            raise EngineError(f"Ray: {_said(error)}") from None
        return {attempt.nonce: attempt.nonce for attempt in job.attempts}

    def poll(self, placed: Sequence[Placed]) -> Mapping[str, Observation]:
        """See FleetEngine."""
        self._advance()
        nodes = {each["NodeID"]: each for each in self._nodes()}
        nonces = {p.attempt.nonce for p in placed}
        self._tasks = {n: t for n, t in self._tasks.items() if n in nonces or t.over is None}
        return {n: _observed(t, nodes) for n, t in self._tasks.items() if n in nonces}

    def cancel(self, placed: Sequence[Placed]) -> None:
        """See FleetEngine: a task ends its agent; what does not end in time Ray ends."""
        tasks = (self._tasks.get(p.attempt.nonce) for p in placed)
        self._cancel([task for task in tasks if task is not None])

    def close(self) -> None:
        """Cancel what still runs, wait for it, and leave the cluster."""
        if self._ray is None:
            return
        open_tasks = [task for task in self._tasks.values() if task.over is None]
        self._cancel(open_tasks)
        deadline = time.monotonic() + _TASK_S
        while any(task.over is None for task in open_tasks) and time.monotonic() < deadline:
            time.sleep(0.1)
            self._advance()
        self._ray.shutdown()
        self._left.close()
        self._ray = None

    def _cancel(self, tasks: Sequence[_Task]) -> None:
        for task in tasks:
            if task.cancelled_at is None:
                task.cancelled_at = time.monotonic()
                self._ray.cancel(task.stream, force=False)

    def _connected(self) -> Any:  # noqa: ANN401  the package ray, where it is installed
        """Return ray, as the driver of a cluster. Raises EngineError and UsageError."""
        if self._ray is None:
            ray, address = _imported(), self._table.address
            if address == "auto":
                address = os.environ.get("RAY_ADDRESS", address)
            try:
                _check_head(address)
                # Ray goes on to handle SIGTERM in its own way; the end of this puts ours back.
                with signals.deferred() as deferral, deferral.suspended():
                    ray.init(address=address, log_to_driver=False, logging_level="CRITICAL")
            except (ray.exceptions.RayError, OSError, RuntimeError, ValueError) as error:
                raise EngineError(
                    f"Ray at {address!r}: expected a cluster of Ray {ray.__version__} with Python "
                    f"{sys.version.split()[0]}, as here, found: {_said(error)}; `ray status` and "
                    "`address` in [engine.ray] may help"
                ) from None
            # Workers need not have ci_perf: the task is sent as it is.
            ray.cloudpickle.register_pickle_by_value(ray_task)
            # Ray prints what it thinks of its nodes, and stdout is for the report.
            self._left.enter_context(contextlib.redirect_stdout(sys.stderr))
            self._ray = ray
        return self._ray

    def _nodes(self) -> Sequence[Mapping[str, Any]]:
        """Return all nodes, also dead ones. Raises EngineError."""
        ray = self._connected()
        try:
            return list(ray.nodes())
        except (ray.exceptions.RayError, RuntimeError) as error:
            raise EngineError(f"Ray: {_said(error)}") from None

    def _checkout(self, folder: Path) -> tuple[PackedCheckout, Any]:
        """Return the checkout for the unit in `folder`, which each node is sent once."""
        unit = files.read(folder / "unit.json", WorkUnit)
        ends = unit.against, "HEAD"
        if ends not in self._checkouts:
            checkout = transfer.pack(self._root, *ends)
            self._checkouts[ends] = checkout, self._ray.put(checkout.repository)
        return self._checkouts[ends]

    def _advance(self) -> None:
        """Take what tasks have yielded since, and end those that were cancelled long ago."""
        now = time.monotonic()
        for task in self._tasks.values():
            while task.over is None and self._ray.wait([task.stream], timeout=0)[0]:
                self._take(task)
            is_late = task.cancelled_at is not None and now - task.cancelled_at > _TASK_S
            if task.over is None and is_late:
                self._ray.cancel(task.stream, force=True)

    def _take(self, task: _Task) -> None:
        """Take the next item of a task, which is there. Raises CannotWriteError."""
        try:
            item = self._ray.get(next(task.stream), timeout=60)
        except StopIteration:
            task.over = Observation(state="ended", detail="it has said nothing")
        except Exception as error:  # noqa: BLE001  a stranger may have it raise anything
            task.over = _failed(error)
        else:
            task.items.append(item if isinstance(item, bytes) else b"")
            if len(task.items) == 3:
                task.over = _returned(task)


def resources(name: str, node_class: NodeClass) -> dict[str, float]:
    """Return what a unit of a class takes of its node, by the names of Ray. Raises UsageError."""
    words = [_RESOURCE.fullmatch(word) for word in node_class.select.split(",")]
    wanted = {known[1]: float(known[2] or 1) for known in words if known}
    if len(wanted) < len(words) or not all(wanted.values()):
        raise UsageError(
            f"[class.{name}]: select: expected all resources of a node of Ray, as 'GPU:8' or "
            f"'CPU:64,h100', found {node_class.select!r}"
        )
    return wanted


def _placement(job: EngineJob, nodes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Say what Ray must give a job, and where not. Raises EngineError: it cannot."""
    wanted = resources(job.class_name, job.node_class)
    fitting = [each for each in nodes if each["Alive"] and _holds(each, wanted, 1)]
    if doubled := [each["NodeName"] for each in fitting if _holds(each, wanted, 2)]:
        raise EngineError(
            f"[class.{job.class_name}]: select: expected all of a node, on which a unit is alone, "
            f"found {job.node_class.select!r}, which {doubled[0]} has twice"
        )
    avoided = [each["NodeID"] for each in fitting if each["NodeName"] in job.avoid]
    if fitting and len(avoided) == len(fitting):
        raise EngineError(f"Ray has no node with {job.node_class.select} but those to avoid")
    return {
        "num_cpus": wanted.pop("CPU", 0),
        "num_gpus": wanted.pop("GPU", 0),
        "resources": wanted,
        "label_selector": {"ray.io/node-id": f"!in({','.join(avoided)})"} if avoided else None,
    }


def _holds(node_of_ray: Mapping[str, Any], wanted: Mapping[str, float], times: int) -> bool:
    return all(times * n <= node_of_ray["Resources"].get(name, 0) for name, n in wanted.items())


def _observed(task: _Task, nodes: Mapping[str, Mapping[str, Any]]) -> Observation:
    """Say what has become of a task, by the name of its node."""
    if not task.node:
        return task.over or Observation(state="queued")
    host = nodes.get(task.node, {})
    name = str(host.get("NodeName", task.node))
    if task.over is not None:
        return Observation(state=task.over.state, node=name, detail=task.over.detail)
    # Of a node that died Ray itself says nothing as long as a worker process lives on there.
    if not host.get("Alive"):
        return Observation(state="lost", node=name, detail=_LOST["NodeDiedError"])
    return Observation(state="running", node=name)


def _returned(task: _Task) -> Observation:
    """Keep what the node has returned for `reading` to judge. Raises CannotWriteError."""
    _, returned, said = task.items
    detail = " ".join(said.decode(errors="replace").split())[:_MOST_CHARS]
    try:
        if returned:
            transfer.unpack(returned, task.folder)
    except InvalidFileError as error:
        detail = f"{error}"[:_MOST_CHARS]
    # A killed agent says nothing of its unit, as a node that died.
    return Observation(state="lost" if said.startswith(b"-") else "ended", detail=detail)


def _failed(error: Exception) -> Observation:
    for kind in {each.__name__ for each in type(error).__mro__} & {*_LOST}:
        return Observation(state="lost", detail=_LOST[kind])
    if type(error).__name__.startswith("RayTaskError"):
        # The task itself has failed; the traces of several processes come first.
        return Observation(state="ended", detail=str(error).splitlines()[-1][:_MOST_CHARS])
    return Observation(state="lost", detail=_said(error))


def _said(error: Exception) -> str:
    """Return what Ray says, in one line."""
    words = str(error).split() or [type(error).__name__]
    return " ".join(words)[:_MOST_CHARS]


def _check_head(address: str) -> None:
    """Raise OSError where nobody listens: Ray would try for minutes."""
    host, sign, port = address.rpartition(":")
    if sign and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()


def _imported() -> Any:  # noqa: ANN401  it may be missing
    try:
        import ray
    except ImportError:
        raise UsageError(
            "--engine ray: expected the package ray, of the version of your cluster, found none; "
            "`pip install 'ci-perf[ray]'`"
        ) from None
    return ray
