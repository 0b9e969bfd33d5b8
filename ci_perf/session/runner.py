"""Launch every process of every workload, in rounds, with the canaries between the rounds."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ci_perf import hooks
from ci_perf.launch import Outcome
from ci_perf.measuring import distrust
from ci_perf.model.process import Phase, WorkerResult
from ci_perf.model.run import Failed, Measured
from ci_perf.model.suite import Plan, PlannedWorkload
from ci_perf.model.task import TaskFailure
from ci_perf.model.validity import Canary, Doubt
from ci_perf.session import schedule
from ci_perf.session.lab import Lab, threads

_INTERRUPTED = "interrupted before it was measured"
Position = Literal["before", "between", "after"]


@dataclass
class WorkloadProgress:
    """What is known of one workload so far."""

    workload: PlannedWorkload
    results: list[WorkerResult] = field(default_factory=list)
    launches_s: list[float] = field(default_factory=list)
    failed: Failed | None = None

    def left(self, index: int) -> int:
        """Return how many processes are to be launched, from number `index` (from 0) on."""
        is_over = self.failed or len(self.results) > index
        return 0 if is_over else max(self.workload.protocol.processes - index, 0)

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


@dataclass(slots=True, eq=False)
class SessionRunner:
    """Measures a plan in an open session, and keeps what came of it."""

    plan: Plan
    lab: Lab
    canaries: list[Canary] = field(default_factory=list, init=False)
    _progress: list[WorkloadProgress] = field(init=False)
    # Canaries that failed once, or that are not there, are not asked again.
    _asks_canaries: bool = field(init=False)
    _asked_s: float = field(default=-math.inf, init=False)
    _begun_s: float = field(default=-math.inf, init=False)

    def __post_init__(self) -> None:
        self._progress = [WorkloadProgress(workload) for workload in self.plan.workloads]
        self._asks_canaries = self.plan.canaries

    def begin(self, pairs_s: float = 0.0) -> None:
        """Ask the canaries before any launch. Pairs may follow the rounds for `pairs_s`."""
        self.lab.reasons += distrust.distrust_image(self.lab.machine.environment.image)
        processes = {p.workload.id: p.workload.protocol.processes for p in self._progress}
        self.lab.listener.planned(processes, pairs_s)
        self._ask_canaries("before")
        self._begun_s = self._asked_s

    def launch_first(self, workload: str) -> None:
        """Launch process 1 of a workload. Raises as `launch_rounds` does."""
        self._launch([(self._of(workload), 0)])

    def launch_rounds(self) -> None:
        """Launch process 1 of every workload, then process 2 of every workload, and so on.

        In turns, because a machine drifts over minutes: the processes of one workload, spread over
        the whole session, then disagree by as much as the machine does. The canaries, which say
        whether it drifted, stand before the rounds and, where these take long enough, between and
        after them. Raises KeyboardInterrupt, and GpuLostError.
        """
        index = 0
        while index < max((p.workload.protocol.processes for p in self._progress), default=0):
            index = self._go_round(index)
        # The end is compared with the beginning, so those between do not stand for it.
        if self.lab.clock() - self._begun_s >= self.lab.checks.canaries_every_s:
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
        most, last = self.lab.checks.at_once(), index
        going = [each for each in self._progress if each.left(index) or each.left(index + 1)]
        if len(going) == 1:
            left = [due[0].workload] * due[0].left(index)
            end = index + next(end for _, end in schedule.batches(left, most))
            last = self._launch([(due[0], number) for number in range(index, end)])
        else:
            for first, end in schedule.batches([progress.workload for progress in due], most):
                self._launch([(progress, index) for progress in due[first:end]])
        self._end_round(last)
        return last + 1

    def _begin_round(self) -> None:
        if self.lab.clock() - self._asked_s >= self.lab.checks.canaries_every_s:
            self._ask_canaries("between")

    def _end_round(self, index: int) -> None:
        going = (p.workload.protocol.processes for p in self._progress if not p.failed)
        self.lab.listener.round_finished(index + 1, max([index + 1, *going]))

    def measured(self) -> tuple[Measured, ...]:
        """Return the workloads that have numbers."""
        whole = (progress for progress in self._progress if not progress.failed)
        return tuple(progress.measured() for progress in whole if progress.results)

    def list_unlaunched(self) -> tuple[str, ...]:
        """Name the workloads that had no launch, and were not kept from it."""
        if self.lab.is_lost or self.lab.interrupts.came:
            return ()
        return tuple(p.workload.id for p in self._progress if not (p.failed or p.results))

    def failed(self) -> tuple[Failed, ...]:
        """Return those that have none, though they were launched or were to be."""
        unlaunched = self.list_unlaunched()
        why = "not launched: a GPU was lost" if self.lab.is_lost else _INTERRUPTED
        return tuple(
            progress.failed or progress.failed_by(TaskFailure(phase=Phase.LAUNCH, reason=why))
            for progress in self._progress
            if progress.failed or not (progress.results or progress.workload.id in unlaunched)
        )

    def _ask_canaries(self, position: Position) -> None:
        lab = self.lab
        if lab.is_lost or not self._asks_canaries:
            return
        lab.interrupts.check()
        lab.listener.canary_started()
        device, most = lab.machine.device, threads(self.plan)
        medians_s = lab.launcher.canaries(device, most, lab.interrupts.have_come)
        if isinstance(medians_s, TaskFailure):
            told = [medians_s.reason, *medians_s.output.strip().splitlines()[-1:]]
            detail = f"no canaries {position} measuring, nor later: {': '.join(told)}"
            lab.reasons.append(Doubt.CANARY_FAILED.reason(detail))
            lab.is_suspect, medians_s = True, {}
        self._asks_canaries = bool(medians_s)
        self.canaries += [
            Canary(name=name, position=position, median_s=median_s)
            for name, median_s in sorted(medians_s.items())
        ]
        self._asked_s = lab.clock()

    def _launch(self, row: Sequence[tuple[WorkloadProgress, int]]) -> int:
        """Launch processes of workloads, by number (from 0); return the number of the last one.

        A row of one workload goes through several rounds. It ends where the workload fails.
        """
        lab = self.lab
        start, last = lab.clock(), row[0][1]
        with lab.ready([lab.task(progress.workload, index) for progress, index in row]) as ready:
            import_s = (lab.clock() - start) / len(row) if len(row) > 1 else 0.0
            for (progress, index), launch in zip(row, ready, strict=True):
                if index > last:
                    if progress.failed:
                        break
                    self._end_round(last)
                    self._begin_round()
                    last = index
                workload, began = progress.workload, lab.clock()
                lab.listener.started(workload.id, index + 1, workload.protocol.processes)
                self._keep(progress, index, launch(), import_s + lab.clock() - began)
        return last

    def _keep(
        self, progress: WorkloadProgress, index: int, outcome: Outcome, seconds: float
    ) -> None:
        workload = progress.workload
        outcome = outcome if index else self._confirm(workload, outcome)
        if isinstance(outcome, TaskFailure):
            self.fail(workload.id, outcome, skipped=workload.protocol.processes - index - 1)
            return
        progress.results.append(outcome)
        progress.launches_s.append(seconds)
        self.lab.listener.finished(workload.id, seconds)

    def _confirm(self, workload: PlannedWorkload, outcome: Outcome) -> Outcome:
        """Return why a workload fails by itself, where its first launch could not end it."""
        if isinstance(outcome, TaskFailure) or Phase.TEARDOWN.value not in outcome.process.absent:
            return outcome
        lab = self.lab
        for find in map(hooks.load, hooks.find_targets("find_failure")):
            why = find(workload, Path(lab.root), lab.python_path, lab.interrupts.have_come)
            if why:
                return TaskFailure(phase=Phase.TEARDOWN, reason=why)
        return outcome

    def fail(self, workload: str, failure: TaskFailure, *, skipped: int = 0) -> None:
        """Take a workload out: it is launched no more, and the run says why."""
        progress = self._of(workload)
        progress.failed = progress.failed_by(failure)
        self.lab.listener.failed(progress.failed, skipped)

    def results(self, workload: str) -> Sequence[WorkerResult]:
        """Return what each process of a workload delivered that has not failed."""
        return self._of(workload).results

    def launch_s(self, workload: str) -> float:
        """Return how long a launch of a workload takes, start to end: if none has, as any other."""
        every = [seconds for progress in self._progress for seconds in progress.launches_s]
        return statistics.median(self._of(workload).launches_s or every)

    def _of(self, workload: str) -> WorkloadProgress:
        return next(p for p in self._progress if p.workload.id == workload)
