"""The conductor of one sitting: every process of every workload, and the run they make."""

import datetime as dt
import os
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from ci_perf import git
from ci_perf.errors import CiPerfError
from ci_perf.launch import Launcher, interrupts, lock
from ci_perf.launch.interrupts import Interrupts
from ci_perf.measure.task import Surroundings, Task, Trouble
from ci_perf.measure.validity import distrust, during, preflight
from ci_perf.model import run as runs
from ci_perf.model import validity
from ci_perf.model.evidence import Evidence
from ci_perf.model.process import Phase, WorkerResult
from ci_perf.model.suite import Plan, PlannedWorkload
from ci_perf.model.validity import Canary, Reason, Status
from ci_perf.version import __version__

Position = Literal["before", "between", "after"]

# The driver frees what a killed process held within a second; each look takes some two.
_LOOKS = 4


class Listener(Protocol):
    """Hears what is going on, to tell a person."""

    def waiting(self, device: str, owner: str) -> None:
        """Hear that somebody else is measuring on the device."""

    def planned(self, processes: Mapping[str, int], canaries: int) -> None:
        """Hear how many processes of each workload, and how many canaries, will be launched."""

    def canary_started(self) -> None:
        """Hear that the canaries are being asked."""

    def canary_finished(self, left: int) -> None:
        """Hear that they have answered, or never will, and how often they are still asked."""

    def started(self, workload: str, process: int, of: int) -> None:
        """Hear that process `process` (from 1) of `of` is being launched."""

    def finished(self, workload: str, seconds: float) -> None:
        """Hear that a process delivered its result."""

    def failed(self, failed: runs.Failed, skipped: int) -> None:
        """Hear that a workload failed; its `skipped` further processes will not be launched."""

    def round_finished(self, number: int, of: int) -> None:
        """Hear that every workload has had its process `number` (from 1) of at most `of`."""


@dataclass
class _Progress:
    """What is known of one workload so far."""

    workload: PlannedWorkload
    results: list[WorkerResult] = field(default_factory=list)
    failed: runs.Failed | None = None

    def is_due(self, index: int) -> bool:
        """Whether process `index` (from 0) is to be launched."""
        return self.failed is None and index < self.workload.protocol.processes


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
        identity = uuid.uuid4().hex[:12]
        surroundings = _describe(plan, launcher, device, ending)
        source = git.source(Path(plan.root))
        sitting = _Sitting(plan, launcher, listener, ending, surroundings)
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
            sitting.measure()
        return runs.Run(
            tool=runs.Tool(version=__version__),
            id=identity,
            started_at=started.isoformat(timespec="seconds").replace("+00:00", "Z"),
            duration_s=round(time.monotonic() - start, 3),
            source=source,
            suite=plan.suite,
            selection=plan.selection,
            environment=surroundings.environment,
            validity=validity.of(_merged(sitting.reasons)),
            canaries=tuple(sitting.canaries),
            measured=sitting.measured(),
            failed=sitting.failed(),
        )


class _Sitting:
    """What happens while the device is ours."""

    def __init__(
        self,
        plan: Plan,
        launcher: Launcher,
        listener: Listener,
        ending: Interrupts,
        surroundings: Surroundings,
    ) -> None:
        self._plan = plan
        self._launcher = launcher
        self._listener = listener
        self._ending = ending
        self._surroundings = surroundings
        self._progress = [_Progress(workload) for workload in plan.workloads]
        # Canaries that failed once, or that are not there, are not asked again.
        self._asks_canaries = plan.canaries
        # Whether a process has ended badly, which may have left something on its GPUs.
        self._is_suspect = False
        self.canaries: list[Canary] = []
        self.reasons: list[Reason] = []

    def measure(self) -> None:
        """Launch process 1 of every workload, then process 2 of every workload, and so on.

        In turns, because a machine drifts over minutes: the processes of one workload, spread over
        the whole session, then disagree by as much as the machine does. The canaries, which say
        whether it drifted, stand before, between and after the rounds. An interrupt ends it all.
        """
        self.reasons += preflight.check()
        processes = {one.workload.id: one.workload.protocol.processes for one in self._progress}
        rounds = max(processes.values(), default=0)
        self._listener.planned(processes, rounds + 1 if self._plan.canaries else 0)
        try:
            self._look_at_gpus()
            self._ask_canaries("before", rounds)
            for index in range(rounds):
                self._go_round(index)
            self._ask_canaries("after", 0)
        except KeyboardInterrupt:
            self._ending.came = True
        if self._ending.came:
            self.reasons.append(preflight.INTERRUPTED)

    def _go_round(self, index: int) -> None:
        """Launch process `index` (from 0) of every workload that has not failed."""
        due = [one for one in self._progress if one.is_due(index)]
        if not due:
            return
        if index:
            self._ask_canaries("between", self._rounds() - index)
        for one in due:
            self._ending.check()
            self._await_clean_gpus(one.workload)
            self._launch(one, index)
        self._listener.round_finished(index + 1, max(index + 1, self._rounds()))

    def _rounds(self) -> int:
        """Return how many rounds there will be, as far as workloads have not failed yet."""
        going = [one.workload.protocol.processes for one in self._progress if not one.failed]
        return max(going, default=0)

    def measured(self) -> tuple[runs.Measured, ...]:
        """Return the workloads that have numbers."""
        return tuple(_measured(one) for one in self._progress if one.results and not one.failed)

    def failed(self) -> tuple[runs.Failed, ...]:
        """Return those that have none."""
        return tuple(
            one.failed or _never_started(one)
            for one in self._progress
            if one.failed or not one.results
        )

    def _ask_canaries(self, position: Position, left: int) -> None:
        if not self._asks_canaries:
            return
        self._ending.check()
        self._listener.canary_started()
        device, threads = self._surroundings.device, _threads(self._plan)
        found = self._launcher.canaries(device, threads, self._ending.have_come)
        if isinstance(found, Trouble):
            detail = f"no canaries {position} measuring, nor later: {found.reason}"
            self.reasons.append(distrust.reason("canary_failed", detail))
            found = {}
        self._asks_canaries = bool(found)
        self.canaries += [
            Canary(name=name, position=position, median_s=median_s)
            for name, median_s in sorted(found.items())
        ]
        self._listener.canary_finished(left if found else 0)

    def _look_at_gpus(self) -> None:
        """Ask whether the GPUs can be trusted, before anything of ours is on them."""
        if self._surroundings.device == "cpu":
            return
        if not self._surroundings.gpus:
            detail = "torch names no UUID of the GPU, by which NVML could be asked about it"
            self.reasons.append(distrust.reason("unwatched", detail))
            return
        states = self._launcher.look(self._surroundings.gpus, self._ending.have_come)
        if isinstance(states, Trouble):
            self.reasons.append(distrust.reason("unwatched", f"before the run: {states.reason}"))
        else:
            self.reasons += preflight.gpus(states)

    def _await_clean_gpus(self, workload: PlannedWorkload) -> None:
        """Wait until the memory is free that a failed process had; for a few seconds only."""
        if not (self._is_suspect and self._surroundings.gpus):
            return
        details: list[str] = []
        for _ in range(_LOOKS):
            states = self._launcher.look(self._surroundings.gpus, self._ending.have_come)
            if isinstance(states, Trouble):
                self.reasons.append(distrust.reason("unwatched", states.reason, workload.id))
                return
            used = [(gpu.uuid, preflight.foreign_memory(gpu.used_bytes)) for gpu in states.gpus]
            details = [
                f"{uuid}: after a failed process: {detail}" for uuid, detail in used if detail
            ]
            if not details:
                self._is_suspect = False
                return
        self.reasons.append(distrust.reason("foreign_memory", "; ".join(details), workload.id))

    def _launch(self, one: _Progress, index: int) -> None:
        workload, total = one.workload, one.workload.protocol.processes
        self._listener.started(workload.id, index + 1, total)
        start = time.monotonic()
        outcome = self._outcome(workload, index)
        if isinstance(outcome, Trouble):
            one.failed, self._is_suspect = _failed(one, outcome), True
            self._listener.failed(one.failed, total - index - 1)
            return
        one.results.append(outcome)
        self.reasons += self._against(workload, outcome.process.evidence)
        self._listener.finished(workload.id, time.monotonic() - start)

    def _against(self, workload: PlannedWorkload, evidence: Evidence | None) -> tuple[Reason, ...]:
        """Return what the monitor has against a process; nothing when it was turned off."""
        if evidence is None:
            return ()
        found = during.reasons(workload.id, evidence, workload.world_size)
        if self._surroundings.gpus and not evidence.gpus:
            return (*found, during.unwatched(workload.id, evidence.trouble))
        return found

    def _outcome(self, workload: PlannedWorkload, index: int) -> WorkerResult | Trouble:
        task = Task(
            workload=workload,
            index=index,
            device=self._surroundings.device,
            root=self._plan.root,
            data_dir=data_dir(),
            gpus=self._surroundings.gpus[: workload.world_size],
        )
        return self._launcher.launch(task, self._ending.have_come)


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


def _describe(plan: Plan, launcher: Launcher, device: str, ending: Interrupts) -> Surroundings:
    widest = max(plan.workloads, key=lambda workload: workload.world_size)
    found = launcher.describe(device, _threads(plan), widest.world_size, ending.have_come)
    if isinstance(found, Trouble):
        whose = f" ({widest.id} needs {widest.world_size})" if widest.world_size > 1 else ""
        raise CiPerfError(found.reason + whose, output=found.output)
    return found


def _threads(plan: Plan) -> int:
    return max((workload.protocol.threads for workload in plan.workloads), default=1)


def _merged(reasons: list[Reason]) -> tuple[Reason, ...]:
    """Keep one reason per workload and code: the worst one, the first of these."""
    order = list(Status)
    kept: dict[tuple[str, str], Reason] = {}
    for reason in reasons:
        known = kept.setdefault((reason.workload, reason.code), reason)
        if order.index(reason.status) > order.index(known.status):
            kept[reason.workload, reason.code] = reason
    return tuple(kept.values())


def _measured(one: _Progress) -> runs.Measured:
    first = one.results[0]
    return runs.Measured(
        workload=one.workload.id,
        description=one.workload.description,
        parameters=one.workload.parameters,
        launch=one.workload.launch,
        world_size=one.workload.world_size,
        protocol=one.workload.protocol,
        items_per_step=first.items_per_step,
        item_unit=first.item_unit,
        precision=first.precision,
        knobs=first.knobs,
        processes=tuple(result.process for result in one.results),
    )


def _failed(one: _Progress, trouble: Trouble) -> runs.Failed:
    return runs.Failed(
        workload=one.workload.id,
        description=one.workload.description,
        parameters=one.workload.parameters,
        launch=one.workload.launch,
        world_size=one.workload.world_size,
        protocol=one.workload.protocol,
        phase=trouble.phase,
        reason=trouble.reason,
        output=trouble.output,
        exhausted=trouble.exhausted,
        processes=tuple(result.process for result in one.results),
    )


def _never_started(one: _Progress) -> runs.Failed:
    trouble = Trouble(phase=Phase.LAUNCH, reason="interrupted before it was measured")
    return _failed(one, trouble)
