"""The conductor of one sitting: every process of every workload, and the run they make."""

import datetime as dt
import os
import tempfile
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from ci_perf import git
from ci_perf.errors import CiPerfError
from ci_perf.launch import Launcher, interrupts, lock
from ci_perf.launch.interrupts import Interrupts
from ci_perf.measure import preflight
from ci_perf.measure.task import Surroundings, Task, Trouble
from ci_perf.model import run as runs
from ci_perf.model.suite import Plan, PlannedWorkload
from ci_perf.version import __version__


class Listener(Protocol):
    """Hears what is going on, to tell a person."""

    def waiting(self, device: str, owner: str) -> None:
        """Hear that somebody else is measuring on the device."""

    def planned(self, workloads: int, processes: int) -> None:
        """Hear how many processes of how many workloads will be launched."""

    def started(self, workload: str, process: int, of: int) -> None:
        """Hear that process `process` (from 1) of `of` is being launched."""

    def finished(self, workload: str, seconds: float) -> None:
        """Hear that a process delivered its result."""

    def failed(self, failed: runs.Failed, skipped: int) -> None:
        """Hear that a workload failed; its `skipped` further processes will not be launched."""


@dataclass
class _Progress:
    """What is known of one workload so far."""

    workload: PlannedWorkload
    results: list[runs.WorkerResult] = field(default_factory=list)
    failed: runs.Failed | None = None


def measure(
    plan: Plan,
    launcher: Launcher,
    listener: Listener,
    *,
    device: str,
    lock_timeout_s: float,
    now: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
) -> runs.Run:
    """Measure the plan, alone on its device. A workload that fails is recorded and stops no other.

    An interrupt ends the child and keeps what is finished: the run says so in its validity. Further
    ones change nothing. Before anything is launched it raises KeyboardInterrupt.
    Raises CiPerfError when nothing can be measured at all: no such device, or BusyError.
    """
    with interrupts.noted() as ending:
        return _measure(
            plan,
            launcher,
            listener,
            ending,
            device=device,
            lock_timeout_s=lock_timeout_s,
            now=now,
        )


def _measure(
    plan: Plan,
    launcher: Launcher,
    listener: Listener,
    ending: Interrupts,
    *,
    device: str,
    lock_timeout_s: float,
    now: Callable[[], dt.datetime],
) -> runs.Run:
    identity = uuid.uuid4().hex[:12]
    surroundings = _describe(plan, launcher, device, ending)
    source = git.source(Path(plan.root))
    progress = [_Progress(workload) for workload in plan.workloads]
    with lock.held(
        surroundings.locks,
        f"run {identity} of process {os.getpid()} in {plan.root}",
        where=lock.folder(),
        timeout_s=lock_timeout_s,
        waiting=listener.waiting,
        sleep=ending.sleep,
    ):
        ending.check()
        started, start = now(), time.monotonic()
        reasons = preflight.check()
        _launch_all(plan, launcher, listener, ending, surroundings.device, progress)
    if ending.came:
        reasons += (preflight.INTERRUPTED,)
    return runs.Run(
        tool=runs.Tool(version=__version__),
        id=identity,
        started_at=started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        duration_s=round(time.monotonic() - start, 3),
        source=source,
        suite=plan.suite,
        selection=plan.selection,
        environment=surroundings.environment,
        validity=preflight.validity(reasons),
        measured=tuple(_measured(p) for p in progress if p.results and not p.failed),
        failed=tuple(
            p.failed or _never_started(p.workload) for p in progress if p.failed or not p.results
        ),
    )


def _describe(plan: Plan, launcher: Launcher, device: str, ending: Interrupts) -> Surroundings:
    threads = max((w.protocol.threads for w in plan.workloads), default=1)
    found = launcher.describe(device, threads, ending.have_come)
    if isinstance(found, Trouble):
        raise CiPerfError(found.reason, output=found.output)
    return found


def _launch_all(
    plan: Plan,
    launcher: Launcher,
    listener: Listener,
    ending: Interrupts,
    device: str,
    progress: list[_Progress],
) -> None:
    """Launch process 1 of every workload, then process 2 of every workload, and so on.

    In turns, because a machine drifts over minutes: the processes of one workload, spread over
    the whole session, then disagree by as much as the machine does. An interrupt is the end of it.
    """
    rounds = max((p.workload.protocol.processes for p in progress), default=0)
    listener.planned(len(progress), sum(p.workload.protocol.processes for p in progress))
    try:
        for index in range(rounds):
            for one in progress:
                if one.failed is None and index < one.workload.protocol.processes:
                    ending.check()
                    _launch_one(plan, launcher, listener, ending, device, one, index)
    except KeyboardInterrupt:
        ending.came = True


def _launch_one(
    plan: Plan,
    launcher: Launcher,
    listener: Listener,
    ending: Interrupts,
    device: str,
    one: _Progress,
    index: int,
) -> None:
    total = one.workload.protocol.processes
    listener.started(one.workload.id, index + 1, total)
    start = time.monotonic()
    task = Task(
        workload=one.workload, index=index, device=device, root=plan.root, data_dir=data_dir()
    )
    outcome = launcher.launch(task, ending.have_come)
    if isinstance(outcome, Trouble):
        one.failed = _failed(one, outcome)
        listener.failed(one.failed, total - index - 1)
    else:
        one.results.append(outcome)
        listener.finished(one.workload.id, time.monotonic() - start)


def data_dir() -> str:
    """Where data sets are kept: CI_PERF_DATA_DIR (a mount, say), else the user's cache."""
    return os.environ.get("CI_PERF_DATA_DIR") or str(Path(_cache(), "ci-perf", "data"))


def _cache() -> Path:
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen)
    try:
        return Path.home() / ".cache"
    except RuntimeError:  # a container runs as a user without a name and without HOME
        return Path(tempfile.gettempdir(), f"ci-perf-cache-{os.getuid()}")


def _measured(one: _Progress) -> runs.Measured:
    first = one.results[0]
    return runs.Measured(
        workload=one.workload.id,
        description=one.workload.description,
        parameters=one.workload.parameters,
        protocol=one.workload.protocol,
        items_per_step=first.items_per_step,
        item_unit=first.item_unit,
        processes=tuple(result.process for result in one.results),
    )


def _failed(one: _Progress, trouble: Trouble) -> runs.Failed:
    return runs.Failed(
        workload=one.workload.id,
        description=one.workload.description,
        parameters=one.workload.parameters,
        phase=trouble.phase,
        reason=trouble.reason,
        output=trouble.output,
        processes=tuple(result.process for result in one.results),
    )


def _never_started(workload: PlannedWorkload) -> runs.Failed:
    trouble = Trouble(phase=runs.Phase.LAUNCH, reason="interrupted before it was measured")
    return _failed(_Progress(workload), trouble)
