"""Launch every process of every workload, in rounds, with the canaries between the rounds."""

import contextlib
import functools
import math
import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ci_perf.launch import Outcome, memory_check
from ci_perf.launch.run_task import Launcher
from ci_perf.measuring import distrust
from ci_perf.model.explanation import StepProfile
from ci_perf.model.process import Memory, Phase, WorkerResult
from ci_perf.model.run import Failed, Measured
from ci_perf.model.suite import Plan, PlannedWorkload
from ci_perf.model.task import MachineDescription, Task, TaskFailure
from ci_perf.model.validity import Canary, Evidence, Reason
from ci_perf.session import schedule
from ci_perf.session.listener import Listener
from ci_perf.session.machine import LOOK_EVERY_S, QUIET_WAIT_S, await_quiet, disturbances, threads
from ci_perf.system import files, git
from ci_perf.system.signals import Interrupts
from ci_perf.worktree import Checkout, sources

_INTERRUPTED = "interrupted before it was measured"
Position = Literal["before", "between", "after"]

# A machine drifts over minutes: canaries that follow each other sooner tell nothing new.
CANARIES_EVERY_S = 30.0
# The driver frees what a killed process held within a second; each look takes some two.
_LOOKS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineChecks:
    """How a session asks whether the machine is fit to measure on.

    `host` returns what speaks against the host; `has_room` whether two processes that have needed
    so much memory can be resident at once; `every_s` is how often to look while others use the
    machine. Canaries stand between two rounds if the last ones were asked `canaries_every_s` ago or
    earlier, and after the last round if the first ones were. `at_once` is how many processes may
    import at once.
    """

    host: Callable[[], Sequence[Reason]] = distrust.distrust_host
    has_room: Callable[[PlannedWorkload, Sequence[Memory]], bool] = memory_check.has_room
    every_s: float = LOOK_EVERY_S
    canaries_every_s: float = CANARIES_EVERY_S
    at_once: Callable[[], int] = memory_check.processes_at_once


@dataclass
class WorkloadProgress:
    """What is known of one workload so far."""

    workload: PlannedWorkload
    results: list[WorkerResult] = field(default_factory=list)
    launches_s: list[float] = field(default_factory=list)
    failed: Failed | None = None

    def left(self, index: int) -> int:
        """Return how many processes are to be launched, from number `index` (from 0) on."""
        return 0 if self.failed else max(self.workload.protocol.processes - index, 0)

    def measured(self) -> Measured:
        """Return the workload with its numbers; it has at least one result."""
        first = self.results[0]
        return Measured(
            workload=self.workload.id,
            description=self.workload.description,
            parameters=self.workload.parameters,
            launch=self.workload.launch,
            world_size=self.workload.world_size,
            protocol=self.workload.protocol,
            items_per_step=first.items_per_step,
            item_unit=first.item_unit,
            items_per_epoch=first.items_per_epoch,
            precision=first.precision,
            knobs=first.knobs,
            processes=tuple(result.process for result in self.results),
        )

    def failed_by(self, failure: TaskFailure) -> Failed:
        """Return the workload without numbers, and why it has none."""
        return Failed(
            workload=self.workload.id,
            description=self.workload.description,
            parameters=self.workload.parameters,
            launch=self.workload.launch,
            world_size=self.workload.world_size,
            protocol=self.workload.protocol,
            phase=failure.phase,
            reason=failure.reason,
            output=failure.output,
            exhausted=failure.exhausted,
            processes=tuple(result.process for result in self.results),
        )


class GpuLostError(Exception):
    """A GPU is lost: whatever was launched on it would fail, or hang."""


@dataclass(slots=True, eq=False)
class SessionRunner:
    """Measures while the device is ours, and keeps what came of it."""

    plan: Plan
    launcher: Launcher
    listener: Listener
    interrupts: Interrupts
    machine: MachineDescription
    wait_s: float | None
    checks: MachineChecks
    clock: Callable[[], float]
    checkout: Checkout | None = None
    canaries: list[Canary] = field(default_factory=list, init=False)
    reasons: list[Reason] = field(default_factory=list, init=False)
    _top: str = field(init=False)
    _source_folders: tuple[str, ...] = field(init=False)
    _progress: list[WorkloadProgress] = field(init=False)
    # Canaries that failed once, or that are not there, are not asked again.
    _asks_canaries: bool = field(init=False)
    _asked_s: float = field(default=-math.inf, init=False)
    # Whether a process has ended badly, which may have left something on its GPUs.
    _is_suspect: bool = field(default=False, init=False)
    _is_lost: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        root = Path(self.plan.root)
        self._top, self._source_folders = str(git.find_top(root)), sources.folders(root)
        self._asks_canaries = self.plan.canaries
        if self.checkout:
            self.reasons += distrust.distrust_base(self.plan, self.checkout.root)
        self.narrow(self.plan)

    def narrow(self, plan: Plan) -> None:
        """Go on with what is left of the plan, before its rounds; what was noted stays."""
        self.plan = plan
        self._progress = [WorkloadProgress(workload) for workload in plan.workloads]

    def launch_rounds(self) -> None:
        """Launch process 1 of every workload, then process 2 of every workload, and so on.

        In turns, because a machine drifts over minutes: the processes of one workload, spread over
        the whole session, then disagree by as much as the machine does. The canaries, which say
        whether it drifted, stand before the rounds and, where these take long enough, between and
        after them. Raises KeyboardInterrupt, and GpuLostError.
        """
        self.reasons += distrust.distrust_image(self.machine.environment.image)
        processes = {p.workload.id: p.workload.protocol.processes for p in self._progress}
        self.listener.planned(processes)
        self._ask_canaries("before")
        begun_s = self._asked_s
        index = 0
        while index < max(processes.values(), default=0):
            index = self._go_round(index)
        # The end is compared with the beginning, so those between do not stand for it.
        if self.clock() - begun_s >= self.checks.canaries_every_s:
            self._ask_canaries("after")

    def _go_round(self, index: int) -> int:
        """Launch process `index` (from 0) of every workload that has not failed; return the next.

        Of one workload that is alone, several rounds follow each other in a row.
        """
        due = [progress for progress in self._progress if progress.left(index)]
        if not due:
            return index + 1
        if index:
            self._begin_round()
        most, last = self.checks.at_once(), index
        if len(due) == 1:
            left = [due[0].workload] * due[0].left(index)
            end = index + next(end for _, end in schedule.batches(left, most))
            last = self._launch([(due[0], number) for number in range(index, end)])
        else:
            for first, end in schedule.batches([progress.workload for progress in due], most):
                self._launch([(progress, index) for progress in due[first:end]])
        self._end_round(last)
        return last + 1

    def _begin_round(self) -> None:
        if self.clock() - self._asked_s >= self.checks.canaries_every_s:
            self._ask_canaries("between")

    def _end_round(self, index: int) -> None:
        going = (p.workload.protocol.processes for p in self._progress if not p.failed)
        self.listener.round_finished(index + 1, max([index + 1, *going]))

    def measured(self) -> tuple[Measured, ...]:
        """Return the workloads that have numbers."""
        whole = (progress for progress in self._progress if not progress.failed)
        return tuple(progress.measured() for progress in whole if progress.results)

    def failed(self) -> tuple[Failed, ...]:
        """Return those that have none."""
        why = "not launched: a GPU was lost" if self._is_lost else _INTERRUPTED
        return tuple(
            progress.failed or progress.failed_by(TaskFailure(phase=Phase.LAUNCH, reason=why))
            for progress in self._progress
            if progress.failed or not progress.results
        )

    def _ask_canaries(self, position: Position) -> None:
        if self._is_lost or not self._asks_canaries:
            return
        self.interrupts.check()
        self.listener.canary_started()
        device, most = self.machine.device, threads(self.plan)
        medians_s = self.launcher.canaries(device, most, self.interrupts.have_come)
        if isinstance(medians_s, TaskFailure):
            told = [medians_s.reason, *medians_s.output.strip().splitlines()[-1:]]
            detail = f"no canaries {position} measuring, nor later: {': '.join(told)}"
            self.reasons.append(distrust.reason("canary_failed", detail))
            self._is_suspect, medians_s = True, {}
        self._asks_canaries = bool(medians_s)
        self.canaries += [
            Canary(name=name, position=position, median_s=median_s)
            for name, median_s in sorted(medians_s.items())
        ]
        self._asked_s = self.clock()

    def await_quiet(self) -> None:
        """Let others finish, for a while; what still speaks against the machine then is noted."""
        is_asked = self.wait_s is not None
        reasons = await_quiet(
            lambda: (*self.checks.host(), *self._against_gpus()),
            disturbances(self.machine.device, is_asked=is_asked),
            most_s=QUIET_WAIT_S if self.wait_s is None else self.wait_s,
            listener=self.listener,
            clock=self.clock,
            sleep=self.interrupts.sleep,
            every_s=self.checks.every_s,
        )
        self._note(reasons)

    def _against_gpus(self) -> tuple[Reason, ...]:
        """Return what speaks against the GPUs, before a worker uses them."""
        if self.machine.device == "cpu":
            return ()
        if not self.machine.gpus:
            detail = "torch names no UUID of the GPU, by which NVML could be asked about it"
            return (distrust.reason("unwatched", detail),)
        states = self.launcher.look(self.machine.gpus, self.interrupts.have_come)
        if isinstance(states, TaskFailure):
            return (distrust.reason("unwatched", f"before the run: {states.reason}"),)
        return distrust.distrust_gpus(states)

    def _await_clean_gpus(self, workload: PlannedWorkload) -> None:
        """Wait until the memory is free that a failed process had; for a few seconds only.

        Raises KeyboardInterrupt, and GpuLostError.
        """
        self.interrupts.check()
        if self._is_lost:
            raise GpuLostError
        if not (self._is_suspect and self.machine.gpus):
            return
        details: list[str] = []
        for _ in range(_LOOKS):
            states = self.launcher.look(self.machine.gpus, self.interrupts.have_come)
            if isinstance(states, TaskFailure):
                self.reasons.append(distrust.reason("unwatched", states.reason, workload.id))
                return
            if lost := distrust.find_lost_gpus(states):
                self._note(lost)
                raise GpuLostError
            used = [(gpu.uuid, distrust.foreign_memory(gpu.used_bytes)) for gpu in states.gpus]
            details = [
                f"{uuid}: after a failed process: {detail}" for uuid, detail in used if detail
            ]
            if not details:
                self._is_suspect = False
                return
        self.reasons.append(distrust.reason("foreign_memory", "; ".join(details), workload.id))

    def _launch(self, row: Sequence[tuple[WorkloadProgress, int]]) -> int:
        """Launch processes of workloads, by number (from 0); return the number of the last one.

        A row of one workload goes through several rounds. It ends where the workload fails.
        """
        start, last = self.clock(), row[0][1]
        with self.ready([self.task(progress.workload, index) for progress, index in row]) as ready:
            import_s = (self.clock() - start) / len(row) if len(row) > 1 else 0.0
            for (progress, index), launch in zip(row, ready, strict=True):
                if index > last:
                    if progress.failed:
                        break
                    self._end_round(last)
                    self._begin_round()
                    last = index
                workload, began = progress.workload, self.clock()
                self.listener.started(workload.id, index + 1, workload.protocol.processes)
                self._keep(progress, index, launch(), import_s + self.clock() - began)
        return last

    def _keep(
        self, progress: WorkloadProgress, index: int, outcome: Outcome, seconds: float
    ) -> None:
        workload = progress.workload
        if isinstance(outcome, TaskFailure):
            self.fail(workload.id, outcome, skipped=workload.protocol.processes - index - 1)
            return
        progress.results.append(outcome)
        progress.launches_s.append(seconds)
        self.listener.finished(workload.id, seconds)

    def fail(self, workload: str, failure: TaskFailure, *, skipped: int = 0) -> None:
        """Take a workload out: it is launched no more, and the run says why."""
        progress = self._of(workload)
        progress.failed = progress.failed_by(failure)
        self.listener.failed(progress.failed, skipped)

    def task(self, workload: PlannedWorkload, index: int) -> Task:
        """Spell out one launch of the head."""
        return Task(
            workload=workload,
            index=index,
            device=self.machine.device,
            root=self.plan.root,
            python_path=self.plan.python_path,
            foreign_root=str(self.checkout.top) if self.checkout else "",
            top=self._top,
            source_folders=self._source_folders,
            native_source=self.checkout.native_source if self.checkout else "",
            data_dir=data_folder(),
            gpus=self.machine.gpus[: workload.world_size],
        )

    def profile(self, task: Task) -> StepProfile | TaskFailure:
        """Launch one process that profiles; it says nothing against the machine.

        Raises KeyboardInterrupt, GpuLostError.
        """
        self._await_clean_gpus(task.workload)
        outcome = self.launcher.profile(task, self.interrupts.have_come)
        self._is_suspect = self._is_suspect or isinstance(outcome, TaskFailure)
        return outcome

    @contextlib.contextmanager
    def ready(self, tasks: Sequence[Task]) -> Iterator[Sequence[Callable[[], Outcome]]]:
        """Provide launches that stand ready, each on GPUs that are clean: see `Launcher.ready`.

        What an outcome says against the machine is noted. Raises KeyboardInterrupt, and so does a
        launch, or GpuLostError.
        """

        def launch(task: Task, run: Callable[[], Outcome]) -> Outcome:
            self._await_clean_gpus(task.workload)
            return self._noted(task, run())

        self.interrupts.check()
        with self.launcher.ready(tasks, self.interrupts.have_come) as runs:
            yield [functools.partial(launch, *each) for each in zip(tasks, runs, strict=True)]

    def outcome(self, task: Task) -> Outcome:
        """Launch one process, on GPUs that are clean. Raises KeyboardInterrupt, GpuLostError."""
        with self.ready([task]) as (launch,):
            return launch()

    def outcome_of_pair(self, first: Task, second: Task) -> tuple[Outcome, ...]:
        """Launch two processes that take turns. Raises KeyboardInterrupt, GpuLostError."""
        self._await_clean_gpus(first.workload)
        outcomes = self.launcher.launch_pair(first, second, self.interrupts.have_come)
        tasks = (first, second)
        return tuple(map(self._noted, tasks, outcomes))

    def _noted(self, task: Task, outcome: Outcome) -> Outcome:
        """Note what an outcome says against the machine."""
        if isinstance(outcome, TaskFailure):
            self._is_suspect = True
            workload = task.workload
            self._note(distrust.distrust_failure(workload.id, outcome, workload.world_size))
            return outcome
        self._note(self._against(task.workload, outcome.process.evidence))
        lost = distrust.report_incomplete(task.workload.id, outcome.process)
        self.reasons += lost
        self._is_suspect = self._is_suspect or bool(lost)
        return outcome

    def _note(self, reasons: Sequence[Reason]) -> None:
        self.reasons += reasons
        self._is_lost |= any(each.code == "gpu_lost" for each in reasons)

    def results(self, workload: str) -> Sequence[WorkerResult]:
        """Return what each process of a workload delivered that has not failed."""
        return self._of(workload).results

    def launch_s(self, workload: str) -> float:
        """Return how long a launch of a workload takes that has not failed, start to end."""
        return statistics.median(self._of(workload).launches_s)

    def _of(self, workload: str) -> WorkloadProgress:
        return next(p for p in self._progress if p.workload.id == workload)

    def _against(self, workload: PlannedWorkload, evidence: Evidence | None) -> tuple[Reason, ...]:
        """Return what the monitor has against a process; nothing when it was turned off."""
        if evidence is None:
            return ()
        reasons = distrust.distrust_process(workload.id, evidence, workload.world_size)
        if self.machine.gpus and not evidence.gpus:
            return (*reasons, distrust.report_unwatched(workload.id, evidence.trouble))
        return reasons


def data_folder() -> str:
    """Return where data sets are kept: CI_PERF_DATA_DIR (a mount, say), else the user's cache."""
    return os.environ.get("CI_PERF_DATA_DIR") or str(files.cache_folder() / "data")
