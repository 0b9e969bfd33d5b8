"""The rounds of one sitting: every process of every workload, in turns, and the canaries."""

import statistics
from collections.abc import Callable
from typing import Literal

from ci_perf.launch import Launcher
from ci_perf.measure.validity import distrust, during, preflight
from ci_perf.model import run as runs
from ci_perf.model.evidence import Evidence
from ci_perf.model.process import WorkerResult
from ci_perf.model.suite import Plan, PlannedWorkload
from ci_perf.model.task import MachineDescription, Task, TaskFailure
from ci_perf.model.validity import Canary, Reason
from ci_perf.session import data, quiet, results
from ci_perf.session.listener import Listener
from ci_perf.session.results import Progress
from ci_perf.system.signals import Interrupts

Position = Literal["before", "between", "after"]

# The driver frees what a killed process held within a second; each look takes some two.
_LOOKS = 4


class Sitting:
    """What happens while the device is ours, and what came of it."""

    def __init__(
        self,
        plan: Plan,
        launcher: Launcher,
        listener: Listener,
        ending: Interrupts,
        surroundings: MachineDescription,
        *,
        wait_s: float | None,
        clock: Callable[[], float],
    ) -> None:
        self._wait_s = wait_s
        self._clock = clock
        self._plan = plan
        self._launcher = launcher
        self._listener = listener
        self._ending = ending
        self._surroundings = surroundings
        self._progress = [Progress(workload) for workload in plan.workloads]
        # Canaries that failed once, or that are not there, are not asked again.
        self._asks_canaries = plan.canaries
        # Whether a process has ended badly, which may have left something on its GPUs.
        self._is_suspect = False
        self.canaries: list[Canary] = []
        self.reasons: list[Reason] = []

    @property
    def device(self) -> str:
        """The device that "auto" came to."""
        return self._surroundings.device

    def measure(self, then: Callable[[], None]) -> None:
        """Launch process 1 of every workload, then process 2 of every workload, and so on.

        In turns, because a machine drifts over minutes: the processes of one workload, spread over
        the whole session, then disagree by as much as the machine does. The canaries, which say
        whether it drifted, stand before, between and after the rounds. `then` is done when all of
        them have answered: what decides who is a suspect must not change while pairs are launched.
        An interrupt ends it all.
        """
        self.reasons += preflight.image(self._surroundings.environment.image)
        processes = {one.workload.id: one.workload.protocol.processes for one in self._progress}
        rounds = max(processes.values(), default=0)
        try:
            self._await_quiet()
            self._listener.planned(processes, rounds + 1 if self._plan.canaries else 0)
            self._ask_canaries("before", rounds)
            for index in range(rounds):
                self._go_round(index)
            self._ask_canaries("after", 0)
            then()
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
            self._launch(one, index)
        self._listener.round_finished(index + 1, max(index + 1, self._rounds()))

    def _rounds(self) -> int:
        """Return how many rounds there will be, as far as workloads have not failed yet."""
        going = [one.workload.protocol.processes for one in self._progress if not one.failed]
        return max(going, default=0)

    def measured(self) -> tuple[runs.Measured, ...]:
        """Return the workloads that have numbers."""
        whole = (one for one in self._progress if one.results and not one.failed)
        return tuple(results.measured(one) for one in whole)

    def failed(self) -> tuple[runs.Failed, ...]:
        """Return those that have none."""
        return tuple(
            one.failed or results.never_started(one)
            for one in self._progress
            if one.failed or not one.results
        )

    def _ask_canaries(self, position: Position, left: int) -> None:
        if not self._asks_canaries:
            return
        self._ending.check()
        self._listener.canary_started()
        device, most = self._surroundings.device, threads(self._plan)
        found = self._launcher.canaries(device, most, self._ending.have_come)
        if isinstance(found, TaskFailure):
            detail = f"no canaries {position} measuring, nor later: {found.reason}"
            self.reasons.append(distrust.reason("canary_failed", detail))
            found = {}
        self._asks_canaries = bool(found)
        self.canaries += [
            Canary(name=name, position=position, median_s=median_s)
            for name, median_s in sorted(found.items())
        ]
        self._listener.canary_finished(left if found else 0)

    def _await_quiet(self) -> None:
        """Let others finish, for a while; what still speaks against the machine then is noted."""
        is_asked = self._wait_s is not None
        self.reasons += quiet.wait(
            lambda: (*preflight.check(), *self._against_gpus()),
            quiet.awaited(self.device, is_asked=is_asked),
            most_s=quiet.DEFAULT_S if self._wait_s is None else self._wait_s,
            listener=self._listener,
            clock=self._clock,
            sleep=self._ending.sleep,
        )

    def _against_gpus(self) -> tuple[Reason, ...]:
        """Return what speaks against the GPUs, before anything of ours is on them."""
        if self._surroundings.device == "cpu":
            return ()
        if not self._surroundings.gpus:
            detail = "torch names no UUID of the GPU, by which NVML could be asked about it"
            return (distrust.reason("unwatched", detail),)
        states = self._launcher.look(self._surroundings.gpus, self._ending.have_come)
        if isinstance(states, TaskFailure):
            return (distrust.reason("unwatched", f"before the run: {states.reason}"),)
        return preflight.gpus(states)

    def _await_clean_gpus(self, workload: PlannedWorkload) -> None:
        """Wait until the memory is free that a failed process had; for a few seconds only."""
        if not (self._is_suspect and self._surroundings.gpus):
            return
        details: list[str] = []
        for _ in range(_LOOKS):
            states = self._launcher.look(self._surroundings.gpus, self._ending.have_come)
            if isinstance(states, TaskFailure):
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

    def _launch(self, one: Progress, index: int) -> None:
        workload, total = one.workload, one.workload.protocol.processes
        self._listener.started(workload.id, index + 1, total)
        start = self._clock()
        outcome = self.outcome(self.task(workload, index))
        if isinstance(outcome, TaskFailure):
            self.fail(workload.id, outcome, skipped=total - index - 1)
            return
        one.results.append(outcome)
        one.launches_s.append(self._clock() - start)
        self._listener.finished(workload.id, one.launches_s[-1])

    def fail(self, workload: str, trouble: TaskFailure, *, skipped: int = 0) -> None:
        """Take a workload out: it is launched no more, and the run says why."""
        one = self._of(workload)
        one.failed = results.failed(one, trouble)
        self._listener.failed(one.failed, skipped)

    def task(self, workload: PlannedWorkload, index: int) -> Task:
        """Spell out one launch of the head."""
        return Task(
            workload=workload,
            index=index,
            device=self._surroundings.device,
            root=self._plan.root,
            python_path=self._plan.python_path,
            data_dir=data.folder(),
            gpus=self._surroundings.gpus[: workload.world_size],
        )

    def outcome(self, task: Task) -> WorkerResult | TaskFailure:
        """Launch one process alone, on GPUs that are clean. Raises KeyboardInterrupt."""
        self._ending.check()
        self._await_clean_gpus(task.workload)
        return self._heard(task, self._launcher.launch(task, self._ending.have_come))

    def outcome_of_pair(self, first: Task, second: Task) -> tuple[WorkerResult | TaskFailure, ...]:
        """Launch two processes that take turns. Raises KeyboardInterrupt."""
        self._ending.check()
        self._await_clean_gpus(first.workload)
        found = self._launcher.launch_pair(first, second, self._ending.have_come)
        return tuple(
            self._heard(task, outcome) for task, outcome in zip((first, second), found, strict=True)
        )

    def _heard(self, task: Task, outcome: WorkerResult | TaskFailure) -> WorkerResult | TaskFailure:
        """Note what an outcome says against the machine."""
        if isinstance(outcome, TaskFailure):
            self._is_suspect = True
            return outcome
        self.reasons += self._against(task.workload, outcome.process.evidence)
        lost = during.incomplete(task.workload.id, outcome.process)
        self.reasons += lost
        self._is_suspect = self._is_suspect or bool(lost)
        return outcome

    def result(self, workload: str) -> WorkerResult:
        """Return what the first process of a workload delivered that has not failed."""
        return self._of(workload).results[0]

    def launch_s(self, workload: str) -> float:
        """Return how long a launch of a workload takes that has not failed, start to end."""
        return statistics.median(self._of(workload).launches_s)

    def _of(self, workload: str) -> Progress:
        return next(one for one in self._progress if one.workload.id == workload)

    def _against(self, workload: PlannedWorkload, evidence: Evidence | None) -> tuple[Reason, ...]:
        """Return what the monitor has against a process; nothing when it was turned off."""
        if evidence is None:
            return ()
        found = during.reasons(workload.id, evidence, workload.world_size)
        if self._surroundings.gpus and not evidence.gpus:
            return (*found, during.unwatched(workload.id, evidence.trouble))
        return found


def threads(plan: Plan) -> int:
    """Return the most threads that any workload uses."""
    return max((workload.protocol.threads for workload in plan.workloads), default=1)
