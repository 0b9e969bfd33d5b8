"""An open session: launches on GPUs that are clean, and what speaks against the machine.

What grows while it is open has its home here, and is never copied.
"""

import contextlib
import functools
import getpass
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ci_perf.errors import CiPerfError
from ci_perf.launch import Outcome, memory_check
from ci_perf.launch.run_task import Launcher
from ci_perf.measuring import distrust
from ci_perf.model.explanation import StepProfile
from ci_perf.model.plant import Plant
from ci_perf.model.process import Memory
from ci_perf.model.suite import OWN, Plan, PlannedWorkload
from ci_perf.model.task import MachineDescription, Task, TaskFailure
from ci_perf.model.validity import Doubt, Reason
from ci_perf.session.listener import Listener
from ci_perf.system import files, git, lock
from ci_perf.system.signals import Interrupts
from ci_perf.worktree import Checkout, sources

# A machine drifts over minutes: canaries that follow each other sooner tell nothing new.
CANARIES_EVERY_S = 30.0
# How long to wait where no option says it: longer than the 10 s over which Linux averages pressure,
# shorter than measuring takes.
QUIET_WAIT_S = 60.0
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
    every_s: float = 2.0
    canaries_every_s: float = CANARIES_EVERY_S
    at_once: Callable[[], int] = memory_check.processes_at_once


class GpuLostError(Exception):
    """A GPU is lost: whatever was launched on it would fail, or hang."""


def describe(
    plan: Plan,
    launcher: Launcher,
    device: str,
    interrupts: Interrupts,
) -> MachineDescription:
    """Describe the machine on which a plan would run. Raises CiPerfError: no such device."""
    widest = max((*plan.workloads, *plan.tests), key=lambda workload: workload.world_size)
    devices = widest.world_size
    answer = launcher.describe(
        device, threads(plan), devices, interrupts.have_come, commands=plan.commands
    )
    if isinstance(answer, TaskFailure):
        whose = f" ({widest.id} needs {devices})" if devices > 1 else ""
        raise CiPerfError(answer.reason + whose, output=answer.output)
    return answer


def threads(plan: Plan) -> int:
    """Return the most threads that any workload is given; canaries get as many.

    One with those of its environment counts as one thread.
    """
    given = (workload.protocol.threads for workload in (*plan.workloads, *plan.tests))
    return max((count for count in given if count != OWN), default=1)


def new_identity() -> str:
    """Return the id of a run that is about to begin."""
    return uuid.uuid4().hex[:12]


@dataclass(slots=True, eq=False, kw_only=True)
class Lab:
    """An open session, of which no other has the devices while they are held.

    Sides are launched from the checkout at ``root`` and from ``base``. ``wait_s`` is how long to
    wait for a machine that others use, before it is measured all the same; `None` is what suits
    the device. A ``plant`` makes the head's launches worse: `ci-perf try` and `rehearse` set it.
    """

    root: str
    python_path: tuple[str, ...]
    launcher: Launcher
    listener: Listener
    interrupts: Interrupts
    machine: MachineDescription
    lock_timeout_s: float
    base: Checkout | None = None
    wait_s: float | None = 0.0
    plant: Plant | None = None
    checks: MachineChecks = MachineChecks()
    clock: Callable[[], float] = time.monotonic
    identity: str = field(default_factory=new_identity)
    reasons: list[Reason] = field(default_factory=list, init=False)
    # Whether a process has ended badly, which may have left something on its GPUs.
    is_suspect: bool = field(default=False, init=False)
    is_lost: bool = field(default=False, init=False)
    waited_s: float = field(default=0.0, init=False)
    _top: str = field(init=False)
    _source_folders: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        root = Path(self.root)
        self._top, self._source_folders = str(git.find_top(root)), sources.folders(root)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Have the devices of the machine to ourselves. Raises BusyError and KeyboardInterrupt."""
        with lock.hold_devices(
            self.machine.locks,
            f"run {self.identity} of {_user()}, process {os.getpid()} in {self.root}",
            where=lock.folder_of_devices(),
            timeout_s=self.lock_timeout_s,
            waiting=self._wait_for_lock,
            sleep=self.interrupts.sleep,
        ):
            self.interrupts.check()
            yield

    def _wait_for_lock(self, device: str, owner: str, waited_s: float, most_s: float) -> None:
        self.waited_s = waited_s
        self.listener.waiting(device, owner, waited_s, most_s)

    def await_quiet(self) -> None:
        """Let others finish, for a while; what still speaks against the machine then is noted.

        A step on a GPU hardly feels what other programs do to the CPUs: that is awaited where a
        person asks. Raises KeyboardInterrupt.
        """
        start, most_s = self.clock(), QUIET_WAIT_S if self.wait_s is None else self.wait_s
        own = "cpu" if self.machine.device == "cpu" else "gpu"
        awaited = {own} if self.wait_s is None else {"cpu", "gpu"}
        has_waited = False
        while True:
            reasons = (*self.checks.host(), *self._against_gpus())
            why = "; ".join(
                each.detail for each in reasons if each.doubt and each.doubt.ends_on in awaited
            )
            left_s = start + most_s - self.clock()
            if not why or left_s <= 0:
                break
            has_waited = True
            self.listener.machine_busy(why, self.clock() - start, most_s)
            self.interrupts.sleep(min(self.checks.every_s, left_s))
        if has_waited:
            waited_s = self.clock() - start
            self.waited_s += waited_s
            self.listener.machine_awaited(why, waited_s)
        self._note(reasons)

    def _against_gpus(self) -> tuple[Reason, ...]:
        """Return what speaks against the GPUs, before a worker uses them."""
        if self.machine.device == "cpu":
            return ()
        if not self.machine.gpus:
            detail = "torch names no UUID of the GPU, by which NVML could be asked about it"
            return (Doubt.UNWATCHED.reason(detail),)
        states = self.launcher.look(self.machine.gpus, self.interrupts.have_come)
        if isinstance(states, TaskFailure):
            return (Doubt.UNWATCHED.reason(f"before the run: {states.reason}"),)
        return distrust.distrust_gpus(states)

    def _await_clean_gpus(self, workload: PlannedWorkload) -> None:
        """Wait until the memory is free that a failed process had; for a few seconds only.

        Raises KeyboardInterrupt, and GpuLostError.
        """
        self.interrupts.check()
        if self.is_lost:
            raise GpuLostError
        if not (self.is_suspect and self.machine.gpus):
            return
        details: list[str] = []
        for _ in range(_LOOKS):
            states = self.launcher.look(self.machine.gpus, self.interrupts.have_come)
            if isinstance(states, TaskFailure):
                self.reasons.append(Doubt.UNWATCHED.reason(states.reason, workload.id))
                return
            if lost := distrust.find_lost_gpus(states):
                self._note(lost)
                raise GpuLostError
            used = [(gpu.uuid, distrust.foreign_memory(gpu.used_bytes)) for gpu in states.gpus]
            details = [
                f"{uuid}: after a failed process: {detail}" for uuid, detail in used if detail
            ]
            if not details:
                self.is_suspect = False
                return
        self.reasons.append(Doubt.FOREIGN_MEMORY.reason("; ".join(details), workload.id))

    def task(self, workload: PlannedWorkload, index: int) -> Task:
        """Spell out one launch of the head."""
        return Task(
            workload=workload,
            index=index,
            device=self.machine.device,
            root=self.root,
            python_path=self.python_path,
            foreign_root=str(self.base.top) if self.base else "",
            top=self._top,
            source_folders=self._source_folders,
            native_source=self.base.native_source if self.base else "",
            data_dir=data_folder(),
            gpus=self.machine.gpus[: workload.world_size],
            plant=self.plant,
        )

    def profile(self, task: Task) -> StepProfile | TaskFailure:
        """Launch one process that profiles; it says nothing against the machine.

        Raises KeyboardInterrupt, GpuLostError.
        """
        self._await_clean_gpus(task.workload)
        outcome = self.launcher.profile(task, self.interrupts.have_come)
        self.is_suspect = self.is_suspect or isinstance(outcome, TaskFailure)
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
        workload = task.workload
        if isinstance(outcome, TaskFailure):
            self.is_suspect = True
            self._note(distrust.distrust_failure(workload.id, outcome, workload.world_size))
            return outcome
        evidence = outcome.process.evidence
        if evidence is not None:  # the monitor may be turned off
            self._note(distrust.distrust_process(workload.id, evidence, workload.world_size))
            if self.machine.gpus and not evidence.gpus:
                self.reasons.append(distrust.report_unwatched(workload.id, evidence.trouble))
        lost = distrust.report_incomplete(workload.id, outcome.process)
        self.reasons += lost
        self.is_suspect = self.is_suspect or bool(lost)
        return outcome

    def _note(self, reasons: Sequence[Reason]) -> None:
        self.reasons += reasons
        self.is_lost |= any(each.doubt is Doubt.GPU_LOST for each in reasons)


def _user() -> str:
    """Return the name of who measures; in a container the number of a user may have none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def data_folder() -> str:
    """Return where data sets are kept: CI_PERF_DATA_DIR (a mount, say), else the user's cache."""
    return os.environ.get("CI_PERF_DATA_DIR") or str(files.cache_folder() / "data")
