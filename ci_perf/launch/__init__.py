"""Launch tasks, each in a fresh process: the interface of all launchers.

`local` starts child processes on this machine; features start them elsewhere, in containers.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from ci_perf.model.process import WorkerResult
from ci_perf.model.step_profile import StepProfile
from ci_perf.model.task import GpuStates, MachineDescription, Task, TaskFailure
from ci_perf.system.child import Ended

# What one launch gives.
Outcome = WorkerResult | TaskFailure

# Whether a signal has asked us to end.
Interrupted = Callable[[], bool]


def never() -> bool:
    """Be interrupted by nothing. See Interrupted."""
    return False


def ignore(*_: object) -> None:
    """Do nothing with what is told."""


class Launcher(Protocol):
    """Starts one fresh process per task, and leaves none behind.

    Only KeyboardInterrupt is raised: soon after `interrupted` says so, and after cleaning up.
    """

    def notes(self) -> tuple[str, ...]:
        """Return what a reader has to know of where the two sides are launched."""

    def describe(
        self, device: str, threads: int, devices: int, interrupted: Interrupted = never
    ) -> MachineDescription | TaskFailure:
        """Describe the machine on which tasks will run; "auto" picks the device.

        `devices` is the largest number of devices that any task will need.
        """

    def look(
        self, gpus: Sequence[str], interrupted: Interrupted = never
    ) -> GpuStates | TaskFailure:
        """Return the state of these GPUs, by UUID, without using them."""

    def canaries(
        self, device: str, threads: int, interrupted: Interrupted = never
    ) -> Mapping[str, float] | TaskFailure:
        """Run the fixed programs; return seconds by name, none where there is no torch."""

    def launch(self, task: Task, interrupted: Interrupted = never) -> Outcome:
        """Run one task to its end or its time limit."""

    def profile(self, task: Task, interrupted: Interrupted = never) -> StepProfile | TaskFailure:
        """Profile the workload of one task, to its end or its time limit; nothing is timed."""

    def launch_pair(
        self, first: Task, second: Task, interrupted: Interrupted = never
    ) -> tuple[Outcome, Outcome]:
        """Run two tasks as a resident pair: both processes exist, one at a time runs.

        They take turns phase by phase, `first` first, and block by block in an order that is drawn
        each time; both time equally many blocks. If one task fails, the other's result stands.
        `memory_check.reason_against` says whether a pair may be resident.
        """

    def launch_in_a_row(
        self,
        tasks: Sequence[Task],
        interrupted: Interrupted = never,
        *,
        begin: Callable[[int], object] = ignore,
        end: Callable[[int, Outcome], object] = ignore,
    ) -> tuple[Outcome, ...]:
        """Run tasks one after the other, after their processes have imported code all at once.

        Each has the machine for itself from then on: those that wait are stopped. Tasks of one
        workload file, or of one workload on two sides, import all their code ahead; other tasks,
        and several processes of one workload, only installed libraries: what a file does while it
        is imported must not reach others. `begin` gets the number (from 0) of the task that runs
        next, `end` its outcome.
        `memory_check.processes_at_once` says how many the machine can hold.
        """

    def shell(
        self,
        command: str,
        *,
        root: Path,
        variables: Mapping[str, str],
        timeout_s: float,
        interrupted: Interrupted = never,
    ) -> Ended:
        """Run a line of shell in the checkout at `root`, which it may change.

        It gets the environment of the measured code, and `variables`. What it starts ends with it.
        Raises OSError and CiPerfError when it cannot be started.
        """
