"""Leave out the workloads that run the same program on both sides, and record those that run."""

from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from ci_perf.judging import comparability
from ci_perf.launch import Outcome
from ci_perf.model.process import Process
from ci_perf.model.program import Program, SameProgram, Touched, TouchedCode
from ci_perf.model.run import Measured
from ci_perf.model.suite import PlannedWorkload
from ci_perf.model.task import MachineDescription, Task, TaskFailure
from ci_perf.session.listener import Listener
from ci_perf.worktree import Checkout

# How many steps a launch times differs from day to day; a record of fewer than this share of them
# is made anew.
_ENOUGH_STEPS = 0.5
# A sentence; the run file would refuse a longer one.
_DETAIL_CHARS = 2000

Answer = SameProgram | Touched
Launch = Callable[[Task], Outcome]


class SamenessProver(Protocol):
    """Says whether both sides run the same program, by records of what a program takes."""

    @property
    def may_record(self) -> bool:
        """Whether launches may be spent on records."""

    def known(self, workload: PlannedWorkload, machine: MachineDescription) -> Answer | None:
        """Answer by the records that there are; `None` if only a new one of the base could tell."""

    def by_record(self, workload: PlannedWorkload, program: Program) -> Answer:
        """Answer by a record that holds for the base."""

    def of_head(self, workload: PlannedWorkload, machine: MachineDescription) -> Program | None:
        """Return a record that holds for the head as it is; `None` if there is none."""

    def keep(
        self, workload: PlannedWorkload, machine: MachineDescription, program: Program, root: Path
    ) -> Program:
        """Complete the record of a launch in `root`, and keep it for later checks."""


# A record that says "the same" has missed something then.
_MOVED = "pairs of an earlier run of the same commit have proven a change"


class SessionPrograms:
    """What is known of the programs of one session."""

    def __init__(
        self,
        workloads: Sequence[PlannedWorkload],
        machine: MachineDescription,
        prover: SamenessProver,
        listener: Listener,
        *,
        moved: Collection[str] = (),
    ) -> None:
        """Ask what is known; pairs of this very commit have proven a change of those in `moved`."""
        self._machine = machine
        self._prover = prover
        self._listener = listener
        self._answers = {
            workload.id: _touched(workload, "obstacle", _MOVED)
            if workload.id in moved
            else prover.known(workload, machine)
            for workload in workloads
        }
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

    def to_measure(self, workloads: Iterable[PlannedWorkload]) -> tuple[PlannedWorkload, ...]:
        """Return the workloads that are not proven to be the same program, in their order."""
        return tuple(
            workload
            for workload in workloads
            if not isinstance(self._answers[workload.id], SameProgram)
        )

    def ask_base(self, base: Checkout, tasks: Iterable[Task], launch: Launch) -> None:
        """Record the base where nothing else could tell; `tasks` are those of the head.

        Raises KeyboardInterrupt.
        """
        if not self._prover.may_record:
            return
        for task in tasks:
            workload = task.workload
            if self._answers[workload.id] is not None:
                continue
            of_base = of_other_side(task, base)
            if of_base is None:
                detail = f"{workload.file}: the base has no such file"
                self._answers[workload.id] = _touched(workload, "differs", detail)
                continue
            outcome = self._record(of_base, launch)
            self._answers[workload.id] = (
                self._prover.by_record(workload, outcome)
                if isinstance(outcome, Program)
                else outcome
            )

    def record(
        self, run: str, measured: Iterable[Measured], tasks: Iterable[Task], launch: Launch
    ) -> None:
        """Record the head of every workload that `run` has measured. Raises KeyboardInterrupt.

        Where an earlier record holds for the head, and ran enough steps, no launch is spent on
        another one. A record that fails is no loss: the next check finds none, and measures.
        """
        if not self._prover.may_record:
            return
        launched = {workload.workload: workload for workload in measured}
        for task in tasks:
            workload = launched.get(task.workload.id)
            if workload is None:
                continue
            steps = _most_steps(workload)
            outcome: Program | Touched | None = self._known_of_head(task.workload, workload, steps)
            if outcome is None:
                longer = msgspec.structs.replace(task, record_steps=steps)
                outcome = self._record(longer, launch, workload.processes)
            if isinstance(outcome, Program):
                self.programs.append(msgspec.structs.replace(outcome, run=run))

    def _known_of_head(
        self, workload: PlannedWorkload, measured: Measured, steps: int
    ) -> Program | None:
        """Return the record that holds for the head, unless what was measured speaks against it."""
        program = self._prover.of_head(workload, self._machine)
        if program is None or program.steps < _ENOUGH_STEPS * steps:
            return None
        return None if _variation(measured.processes) and not program.obstacles else program

    def _record(
        self, task: Task, launch: Launch, others: Sequence[Process] = ()
    ) -> Program | Touched:
        """Record one launch; `others` are launches of the same code."""
        workload = task.workload
        self._listener.recording(workload.id)
        outcome = launch(msgspec.structs.replace(task, record=True))
        if isinstance(outcome, TaskFailure) or outcome.program is None:
            why = outcome.reason if isinstance(outcome, TaskFailure) else "it left no record"
            return _touched(workload, "not_recorded", f"the launch that records failed: {why}")
        program = outcome.program
        if obstacle := _variation([outcome.process, *others]):
            program = msgspec.structs.replace(program, obstacles=(*program.obstacles, obstacle))
        return self._prover.keep(workload, self._machine, program, Path(task.root))


def of_other_side(task: Task, base: Checkout) -> Task | None:
    """Return a task of the head as one of the base; `None` where that has no such workload."""
    workload = workload_of_base(task.workload, Path(task.root), base)
    if workload is None:
        return None
    return in_base(msgspec.structs.replace(task, workload=workload), base)


def workload_of_base(
    workload: PlannedWorkload, root: Path, base: Checkout
) -> PlannedWorkload | None:
    """Return a workload of the head, which lies below `root`, as the base's own suite has it.

    One that its suite lacks is launched as the head says, by the base's file of the same name;
    `None` where there is none. A file that lies outside is the same on both sides.
    """
    for own in base.plan.workloads if base.plan else ():
        if own.id == workload.id:
            return own
    if not Path(workload.file).is_relative_to(root):
        return workload
    file = base.root / Path(workload.file).relative_to(root)
    return msgspec.structs.replace(workload, file=str(file)) if file.is_file() else None


def in_base(task: Task, base: Checkout) -> Task:
    """Return a task as one that imports from the base, whosever workload file it is."""
    return msgspec.structs.replace(
        task,
        root=str(base.root),
        python_path=base.plan.python_path if base.plan else task.python_path,
        foreign_root=str(base.head_top),
        top=str(base.top),
        source_folders=base.source_folders,
    )


def _variation(processes: Sequence[Process]) -> str:
    """Say that launches of one code compute different numbers: it may take different paths, too."""
    fingerprints = [process.fingerprint for process in processes]
    if reason := next((taken.varies for taken in fingerprints if taken.varies), ""):
        return f"its author says that its numerics vary: {reason}"
    different = {
        values for taken in fingerprints if (values := comparability.numeric_values(taken))
    }
    return "its numerics vary from launch to launch" if len(different) > 1 else ""


def _most_steps(workload: Measured) -> int:
    """Return how many steps the longest launch of a workload did before its timing ended."""
    return max(
        process.warmup.steps + process.timed.steps_per_block * len(process.timed.block_s)
        for process in workload.processes
    )


def _touched(workload: PlannedWorkload, code: TouchedCode, detail: str) -> Touched:
    return Touched(workload=workload.id, code=code, detail=detail[:_DETAIL_CHARS])
