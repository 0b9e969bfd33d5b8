"""The phases after the timed region: memory, counters, teardown. Each can only lose itself."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from ci_perf.measure import compiles, counters, distributed, foreign_code, knobs, peaks
from ci_perf.measure.device import Device
from ci_perf.measure.distributed import Group
from ci_perf.measure.instruments import Instruments
from ci_perf.measure.step_phases import Watcher
from ci_perf.measure.stopwatch import Stopwatch
from ci_perf.model.base import Scalar
from ci_perf.model.process import Phase, Process, WorkerResult
from ci_perf.model.task import Task
from ci_perf.workload import Workload

Keep = Callable[[WorkerResult], object]

_ENDED = "the process ended before"


@dataclass(frozen=True, slots=True)
class AfterTiming:
    """A process that has its times."""

    todo: Task
    workload: Workload
    here: Device
    group: Group
    instruments: Instruments

    def go_through(
        self,
        process: Process,
        stopwatch: Stopwatch,
        watcher: Watcher,
        cache: Literal["empty", "filled"],
        keep: Keep,
    ) -> None:
        """Add to `process` what the phases show, and keep it after each of them.

        Raises ForeignCodeError and, where there are several ranks, what a step raises.
        """
        held = self.instruments.take("knobs", knobs.held, steps=0) or {}
        compiled = self.instruments.take("compiles", lambda: compiles.counts(cache), steps=0)
        process = msgspec.structs.replace(process, compiles=compiled)
        first_step_s = process.phases.first_step_s

        def keep_so_far(*to_come: str) -> None:
            if self.group.rank == 0:
                absent = self.instruments.absent | dict.fromkeys(to_come, _ENDED)
                times = stopwatch.times(first_step_s)
                measured = msgspec.structs.replace(process, phases=times, absent=absent)
                keep(self._result(measured, held))

        with contextlib.suppress(foreign_code.ForeignCodeError):  # raised at the end
            self._check_code()
            keep_so_far("memory", "counters")
        with stopwatch.phase(Phase.MEMORY):
            process = self._with_memory(process)
        keep_so_far("counters")
        with stopwatch.phase(Phase.COUNTERS):
            process = self._with_counters(process, watcher)
        keep_so_far()
        with stopwatch.phase(Phase.TEARDOWN):
            self.instruments.take("teardown", self._tear_down, steps=0)
            self._check_code()
        keep_so_far()

    def _with_memory(self, process: Process) -> Process:
        steps = self.todo.workload.protocol.memory_steps
        memory = self.instruments.take(
            "memory",
            lambda: peaks.take(self.here, self.workload.step, steps, self.group),
            steps=steps,
        )
        return process if memory is None else msgspec.structs.replace(process, memory=memory)

    def _with_counters(self, process: Process, watcher: Watcher) -> Process:
        here, workload, group, take = self.here, self.workload, self.group, self.instruments.take
        steps = self.todo.workload.protocol.phase_steps
        parts = take(
            "step_phases",
            lambda: watcher.watch(here, workload.step, steps),
            steps=steps + 1,  # the first one may compile
        )
        skew_s = take(
            "arrival_skew",
            lambda: distributed.arrival_skew(group, here, workload.local_step, steps),
            steps=steps + 1 if workload.local_step and group.world_size > 1 else 0,
        )
        work = take(
            "work",
            lambda: counters.count(workload.step, here, workload.parameter_count),
            steps=1,
        )
        return msgspec.structs.replace(
            process,
            step_phases=parts,
            ranks=group.describe(skew_s),
            work=work or process.work,
        )

    def _tear_down(self) -> None:
        if self.workload.teardown is not None:
            self.workload.teardown()
        self.group.leave()

    def _check_code(self) -> None:
        todo = self.todo
        foreign_code.check(todo.foreign_root, root=todo.root, file=todo.workload.file)

    def _result(self, process: Process, held: dict[str, Scalar]) -> WorkerResult:
        epoch = self.workload.items_per_epoch
        return WorkerResult(
            items_per_step=float(self.workload.items_per_step),
            items_per_epoch=None if epoch is None else float(epoch),
            item_unit=self.workload.item_unit,
            precision=self.workload.precision,
            knobs=held,
            process=process,
        )
