"""Leave out the workloads that use the same files on both sides, and keep records of the others."""

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

import msgspec

from ci_perf.launch import Outcome
from ci_perf.model.process import WorkerResult
from ci_perf.model.program import Program, SameProgram, Touched
from ci_perf.model.run import Paired
from ci_perf.model.suite import PlannedWorkload
from ci_perf.model.task import MachineDescription, Task, TaskFailure
from ci_perf.same_program import records
from ci_perf.same_program.records import Answer, Records, touch

# A record that says "the same" has missed something then.
_MOVED = "pairs of an earlier run of the same commit have proven a change"


class SessionPrograms:
    """What is known of the programs of one session."""

    def __init__(
        self,
        workloads: Sequence[PlannedWorkload],
        machine: MachineDescription,
        records: Records,
        *,
        moved: Collection[str] = (),
    ) -> None:
        """Ask what is known; pairs of this very commit have proven a change of those in `moved`."""
        self._machine = machine
        self._records = records
        self._answers: dict[str, Answer] = {}
        for workload in workloads:
            self._answers[workload.id] = (
                touch(workload, "obstacle", _MOVED)
                if workload.id in moved
                else records.find_answer(workload, machine)
            )
        # Of the head, where it was measured.
        self.programs: list[Program] = []

    @property
    def same(self) -> tuple[SameProgram, ...]:
        """The workloads that need no launch."""
        return tuple(same for same in self._answers.values() if isinstance(same, SameProgram))

    @property
    def touched(self) -> tuple[Touched, ...]:
        """Why the others are measured."""
        return tuple(answer for answer in self._answers.values() if isinstance(answer, Touched))

    def select_to_measure(
        self, workloads: Iterable[PlannedWorkload]
    ) -> tuple[PlannedWorkload, ...]:
        """Return the workloads that are not proven to be the same program, in their order."""
        same = {each.workload for each in self.same}
        return tuple(workload for workload in workloads if workload.id not in same)

    def find_unknown(self) -> set[str]:
        """Name the workloads of which only a launch of the base could tell."""
        return {answer.workload for answer in self.touched if answer.code == "not_recorded"}

    def note_base(
        self, workload: PlannedWorkload, base: Task | None, outcome: Outcome | None
    ) -> None:
        """Answer by a launch of the base; there is none where the base has no such workload."""
        if base is None:
            detail = f"{workload.file}: the base has no such file"
            self._answers[workload.id] = touch(workload, "differs", detail)
        elif isinstance(outcome, WorkerResult) and outcome.program is not None:
            program = self._complete(base.workload, [outcome], Path(base.root))
            self._answers[workload.id] = self._records.compare(workload, program)
        else:
            why = outcome.reason if isinstance(outcome, TaskFailure) else "it left no record"
            detail = f"the launch of the base that records failed: {why}"
            self._answers[workload.id] = touch(workload, "not_recorded", detail)

    def keep(
        self,
        run: str,
        workloads: Iterable[PlannedWorkload],
        results: Callable[[str], Sequence[WorkerResult]],
        root: Path,
    ) -> None:
        """Keep what the launches of the head have recorded, of every workload that was measured."""
        for workload in workloads:
            if launches := [each for each in results(workload.id) if each.program is not None]:
                program = self._complete(workload, launches, root)
                self.programs.append(msgspec.structs.replace(program, run=run))

    def note_variation(
        self, results: Callable[[str], Sequence[WorkerResult]], paired: Iterable[Paired]
    ) -> None:
        """Distrust a program of which the head's launches in pairs compute other numbers."""
        heads = {each.workload: [pair.head for pair in each.pairs] for each in paired}
        for number, program in enumerate(self.programs):
            launches = [each.process for each in results(program.workload)]
            why = records.find_variation([*launches, *heads.get(program.workload, ())])
            if why and why not in program.obstacles:
                obstacles = (*program.obstacles, why)
                self.programs[number] = msgspec.structs.replace(program, obstacles=obstacles)

    def _complete(
        self, workload: PlannedWorkload, launches: Sequence[WorkerResult], root: Path
    ) -> Program:
        taken = [each.program for each in launches if each.program is not None]
        if why := records.find_variation([each.process for each in launches]):
            taken.append(msgspec.structs.replace(taken[0], obstacles=(why,)))
        return self._records.complete(workload, self._machine, taken, root)
