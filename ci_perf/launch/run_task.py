"""Run one task, or two in turns: a folder, the process that a launcher runs, and what it left."""

import contextlib
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from ci_perf import hooks
from ci_perf.errors import CiPerfError, InvalidFileError
from ci_perf.launch import (
    Interrupted,
    Outcome,
    exit_status,
    monitoring,
    never,
    turn_scheduler,
)
from ci_perf.launch.exit_status import MemoryKills
from ci_perf.launch.side_python import Installed
from ci_perf.launch.turn_scheduler import Slot
from ci_perf.model.base import MAX_ERROR_CHARS
from ci_perf.model.explanation import StepProfile
from ci_perf.model.process import NO_RESULT_IN_TIME, Phase, WorkerResult
from ci_perf.model.program import Program, join_programs, record_nothing
from ci_perf.model.task import (
    CANARIES,
    FAILURE,
    MACHINE,
    MOST_TRACE_BYTES,
    PHASE,
    PROGRAM,
    RESULT,
    TASK,
    TRACE,
    CanaryTimes,
    GpuStates,
    MachineDescription,
    Task,
    TaskFailure,
    name_rank_file,
)
from ci_perf.model.validity import Evidence, HostEvidence
from ci_perf.system import child, files, scratch
from ci_perf.system.child import Ended
from ci_perf.system.scratch import Scratch

# Importing torch from a cold disk can take a minute.
TORCH_TIMEOUT_S = 300.0

_NONE_LEFT = "the launch left none"

# An error in one of these phases loses only what that phase measures.
_AFTER_TIMING = {Phase.MEMORY, Phase.COUNTERS, Phase.TEARDOWN}

T = TypeVar("T", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a process ended, what was seen meanwhile, and whom the kernel killed for memory."""

    ended: Ended
    evidence: Evidence | None = None
    kills: MemoryKills | None = None
    forked: bool = False


# Runs the process that finds its task in the given folder.
RunProcess = Callable[[Scratch], Finished]


def run(task: Task, run_process: RunProcess) -> Outcome:
    """Run one task, which `run_process` finds in its folder.

    If `run_process` raises OSError or CiPerfError, that becomes a TaskFailure.
    """
    try:
        with scratch.folder() as folder:
            finished, result = _run(task, folder, run_process, WorkerResult)
            if isinstance(result, TaskFailure):
                if result.exhausted is None:
                    result = _find_measured_before(folder, result)
            elif task.workload.launch != "fork" and not finished.forked:
                program = _read_program(folder, task)
                result = msgspec.structs.replace(result, program=program)
    except (OSError, CiPerfError) as error:
        return not_started(error)
    if isinstance(result, TaskFailure):
        return result
    evidence = finished.evidence
    if evidence is not None and task.turns and not task.imports_ahead:
        evidence = monitoring.without_partner(evidence)
    memory = result.process.memory
    if memory.below_bytes is None and evidence is not None:
        below_bytes = evidence.below_bytes
        if below_bytes is not None and task.workload.launch == "command":
            # One of the processes below is the largest one of the command, which `Memory` has.
            below_bytes = max(0, below_bytes - memory.host_rss_peak_bytes)
        memory = msgspec.structs.replace(
            memory,
            below_bytes=below_bytes,
            below_by=evidence.below_by,
            below_count=evidence.below_count,
            below_largest_bytes=evidence.below_largest_bytes,
        )
    process = msgspec.structs.replace(result.process, evidence=evidence, memory=memory)
    return msgspec.structs.replace(result, process=process, forked=finished.forked)


def profile(task: Task, run_process: RunProcess) -> StepProfile | TaskFailure:
    """Profile the workload of a task, as `run` runs one; what was found before a failure counts."""
    task = msgspec.structs.replace(task, profiler=hooks.find_targets("profiler")[0])
    try:
        with scratch.folder() as folder:
            _, outcome = _run(task, folder, run_process, StepProfile)
            if isinstance(outcome, TaskFailure):
                outcome = _left_before(folder, outcome, StepProfile) or outcome
            if isinstance(outcome, TaskFailure):
                return outcome
            return _with_trace(folder, task, outcome)
    except (OSError, CiPerfError) as error:
        return not_started(error)


def _run(
    task: Task, folder: Scratch, run_process: RunProcess, kind: type[T]
) -> tuple[Finished, T | TaskFailure]:
    """Give a process its task, and read what it left; of a failure, whose memory ran out."""
    # A path of this machine is not the business of the process.
    told = msgspec.structs.replace(task, trace_to=TRACE if task.trace_to else "")
    files.write(folder.path / TASK, told)
    finished = run_process(folder)
    limit = f"{task.workload.protocol.timeout_s:g} s (`timeout_s` in suite.toml)"
    result = _collect(folder, finished, kind, limit)
    if isinstance(result, TaskFailure):
        evidence = finished.evidence
        result = exit_status.with_memory(result, finished.ended, finished.kills, evidence)
        result = msgspec.structs.replace(result, evidence=evidence)
    return finished, result


class Launcher(ABC):
    """Starts one fresh process per task, and leaves none behind.

    Only KeyboardInterrupt is raised: soon after `interrupted` says so, and after cleaning up.
    """

    @abstractmethod
    def notes(self, root: Path) -> tuple[str, ...]:
        """Return what a reader has to know of launches of the base, which lies in `root`."""

    def describe(
        self,
        device: str,
        threads: int,
        devices: int,
        interrupted: Interrupted = never,
        *,
        commands: bool = False,
    ) -> MachineDescription | TaskFailure:
        """Describe the machine on which tasks will run; "auto" picks the device.

        `devices` is the largest number of devices that any task will need; `commands` may use any.
        """
        more = (str(devices), "commands" if commands else "")
        machine = run_module(
            lambda folder: self._run_ours(MACHINE, device, threads, more, folder, interrupted),
            MachineDescription,
            what="describing the machine",
            timeout_s=TORCH_TIMEOUT_S,
        )
        return machine if isinstance(machine, TaskFailure) else self._add_host(machine)

    @abstractmethod
    def for_side(self, root: Path) -> "Launcher":
        """Return what describes the machine as the side in `root` sees it."""

    @abstractmethod
    def list_installed(self) -> Installed:
        """Return what its Python has installed. Raises CiPerfError."""

    def _add_host(self, machine: MachineDescription) -> MachineDescription:
        """Return a description with what only the host of a launcher knows."""
        return machine

    def canaries(
        self, device: str, threads: int, interrupted: Interrupted = never
    ) -> Mapping[str, float] | TaskFailure:
        """Run the fixed programs; return seconds by name, none where there is no torch."""
        times = run_module(
            lambda folder: self._run_ours(CANARIES, device, threads, (), folder, interrupted),
            CanaryTimes,
            what="the canaries",
            timeout_s=TORCH_TIMEOUT_S,
        )
        return times if isinstance(times, TaskFailure) else times.median_s

    @abstractmethod
    def look(
        self, gpus: Sequence[str], interrupted: Interrupted = never
    ) -> GpuStates | TaskFailure:
        """Return the state of these GPUs, by UUID, without using them."""

    @abstractmethod
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

    @abstractmethod
    def _run_ours(
        self,
        module: str,
        device: str,
        threads: int,
        more: Sequence[str],
        folder: Scratch,
        interrupted: Interrupted,
    ) -> Finished:
        """Run a module of ours that uses torch, for `TORCH_TIMEOUT_S` at most.

        Its words are the device, the threads and `more`; it leaves its result in the folder.
        """

    def _spell(self, task: Task) -> Task:
        """Return a task with its paths as its process sees them."""
        return task

    def _prepare(self, tasks: Sequence[Task], interrupted: Interrupted) -> None:
        """Do what these launches have in common, before any of them. Raises KeyboardInterrupt."""
        del tasks, interrupted  # mostly nothing

    def free_memory(self) -> bool:
        """Free the memory that no present launch needs; say whether there was any."""
        return False

    @abstractmethod
    def _run_process(
        self, task: Task, folder: Scratch, interrupted: Interrupted, slot: Slot | None
    ) -> Finished:
        """Run the process of a task to its end, with the monitor beside it."""

    def launch(self, task: Task, interrupted: Interrupted = never) -> Outcome:
        """Run one task to its end or its time limit."""
        self._prepare([task], interrupted)
        return self._launch_in_slot(task, None, interrupted)

    def profile(self, task: Task, interrupted: Interrupted = never) -> StepProfile | TaskFailure:
        """Profile the workload of one task, to its end or its time limit; nothing is timed."""
        return profile(
            self._spell(task),
            lambda folder: self._run_process(task, folder, interrupted, None),
        )

    def _launch_in_slot(self, task: Task, slot: Slot | None, interrupted: Interrupted) -> Outcome:
        if slot is not None:
            task = msgspec.structs.replace(task, turns=str(slot.folder))
        return run(
            self._spell(task),
            lambda folder: self._run_process(task, folder, interrupted, slot),
        )

    def launch_pair(
        self, first: Task, second: Task, interrupted: Interrupted = never
    ) -> tuple[Outcome, Outcome]:
        """Run two tasks as a resident pair: both processes exist, one at a time runs.

        They take turns phase by phase, `first` first, and block by block in an order that is drawn
        each time; both time equally many blocks. If one task fails, the other's result stands.
        `memory_check.has_room` says whether a pair may be resident.
        """
        tasks = (first, second)
        self._prepare(tasks, interrupted)
        try:
            with child.end_orphans():
                of_first, of_second = turn_scheduler.schedule(
                    [functools.partial(self._launch_in_slot, task) for task in tasks], interrupted
                )
        except OSError as error:
            failure = not_started(error)
            return failure, failure
        return of_first, of_second

    @contextlib.contextmanager
    def ready(
        self, tasks: Sequence[Task], interrupted: Interrupted = never
    ) -> Iterator[Sequence[Callable[[], Outcome]]]:
        """Provide launches that stand ready: a call runs the process of one task to its end.

        The processes of several tasks have imported code at once. Then each has the machine for
        itself: those that wait are stopped. Tasks of one workload file, or of one workload on two
        sides, import all their code ahead; other tasks, and several processes of one workload, only
        installed libraries: what a file does while it is imported must not reach others.
        `memory_check.processes_at_once` says how many the machine can hold.
        """
        if len(tasks) == 1:
            yield [functools.partial(self.launch, tasks[0], interrupted)]
            return
        workloads = [task.workload for task in tasks]
        is_one = 1 in (len({each.id for each in workloads}), len({each.file for each in workloads}))
        # Of several processes of one workload, the first may prepare what the others then find.
        only_libraries = not is_one or len({task.index for task in tasks}) > 1
        ahead = [
            msgspec.structs.replace(task, imports_ahead=len(tasks), only_libraries=only_libraries)
            for task in tasks
        ]
        self._prepare(tasks, interrupted)
        in_slots = [functools.partial(self._launch_in_slot, task) for task in ahead]
        with contextlib.ExitStack() as stack:
            launches: Sequence[Callable[[], Outcome]]
            try:
                stack.enter_context(child.end_orphans())
                made_ready = turn_scheduler.make_ready(in_slots, interrupted)
                launches = stack.enter_context(made_ready)
            except OSError as error:
                launches = [functools.partial(not_started, error)] * len(tasks)
            yield launches


def run_module(
    run_process: RunProcess, kind: type[T], *, what: str, timeout_s: float
) -> T | TaskFailure:
    """Run one of our modules that measures no workload, and return what it left."""
    try:
        with scratch.folder() as folder:
            return _collect(folder, run_process(folder), kind, f"{timeout_s:g} s for {what}")
    except (OSError, CiPerfError) as error:
        return not_started(error)


def not_started(error: Exception) -> TaskFailure:
    """Say why there was no process at all."""
    output = error.output if isinstance(error, CiPerfError) else ""
    return TaskFailure(
        phase=Phase.LAUNCH,
        reason=f"cannot start a process: {error}"[:MAX_ERROR_CHARS],
        output=output,
    )


def evidence_from(report: monitoring.MonitorReport) -> Evidence:
    """Return what the monitor saw; where it left nothing, only why."""
    nothing = HostEvidence(
        wall_s=0.0,
        cpu_s=None,
        cpu_pressure=None,
        memory_pressure=None,
        throttled_s=None,
    )
    return report.evidence() or Evidence(
        host=nothing, gpus=(), host_rss_peak_bytes=None, overhead_cpu_s=0.0, trouble=report.problem
    )


def _collect(folder: Scratch, finished: Finished, kind: type[T], limit: str) -> T | TaskFailure:
    """Read what the process left; a result counts only when it ended well."""
    ended = finished.ended
    tail = ended.tail[-10_000:]
    phase = _last_phase(folder)
    if ended.timed_out:
        return TaskFailure(phase=phase, reason=f"{NO_RESULT_IN_TIME} of {limit}", output=tail)
    try:
        if failure := folder.read(FAILURE, TaskFailure):
            return msgspec.structs.replace(failure, output=failure.output or tail)
        result = folder.read(RESULT, kind)
    except InvalidFileError as error:
        reason = f"invalid result: {error}"[:MAX_ERROR_CHARS]
        return TaskFailure(phase=phase, reason=reason, output=tail)
    if result is not None and ended.code == 0:
        return result
    gone = "" if folder.path.exists() else f"; its folder {folder.path} has been removed meanwhile"
    reason = exit_status.describe(ended, phase, finished.kills) + gone
    return TaskFailure(phase=phase, reason=reason, output=tail)


def _find_measured_before(folder: Scratch, failure: TaskFailure) -> Outcome:
    """Return what a process measured before it failed, if its timing was complete; else why."""
    kept = _left_before(folder, failure, WorkerResult)
    if kept is None:
        return failure
    absent = kept.process.absent | {failure.phase.value: failure.reason}
    process = msgspec.structs.replace(kept.process, absent=absent)
    return msgspec.structs.replace(kept, process=process)


def _left_before(folder: Scratch, failure: TaskFailure, kind: type[T]) -> T | None:
    """Return what a process left before it failed in a phase that cannot spoil it."""
    try:
        # At the very end the worker looks whether it ran the code that it should have run.
        is_told = folder.read(FAILURE, TaskFailure) is not None
        if failure.phase not in _AFTER_TIMING or (is_told and failure.phase is Phase.TEARDOWN):
            return None
        return folder.read(RESULT, kind)
    except InvalidFileError:
        return None


def _read_program(folder: Scratch, task: Task) -> Program:
    """Return what a launch has recorded, or why that proves nothing."""
    workload = task.workload
    ranks = range(workload.world_size) if workload.launch == "torchrun" else ()
    names = [name_rank_file(PROGRAM, rank) for rank in ranks] or [PROGRAM]
    try:
        programs = [program for name in names if (program := folder.read(name, Program))]
    except InvalidFileError as error:
        return record_nothing(workload.id, str(error))
    if len(programs) < len(names):
        return record_nothing(workload.id, "a process left none")
    return join_programs(programs)


def _with_trace(folder: Scratch, task: Task, profile: StepProfile) -> StepProfile:
    """Put the trace that a launch left at its place, or say in the profile why it is not there."""
    missing = dict(profile.missing)
    name, why = _kept(folder, TRACE, task.trace_to, MOST_TRACE_BYTES)
    if why == _NONE_LEFT:
        why = missing.get("trace_file") or profile.absent or missing.get("trace", why)
    if why:
        missing["trace_file"] = why
    return msgspec.structs.replace(profile, missing=missing, trace_file=name)


def _kept(folder: Scratch, left: str, place: str, limit: int) -> tuple[str, str]:
    """Copy a file that a launch left, as it is; it is never read. Returns its name, or why none."""
    if not place:
        return "", ""
    try:
        Path(place).unlink(missing_ok=True)  # an older one, or a link that measured code has laid
        data = folder.read_bytes(left, limit=limit)
        if data is None:
            return "", _NONE_LEFT
        files.write_bytes(Path(place), data)
    except (OSError, CiPerfError) as error:
        return "", str(error)[:MAX_ERROR_CHARS]
    return Path(place).name, ""


def _last_phase(folder: Scratch) -> Phase:
    try:
        return Phase((folder.read_bytes(PHASE, limit=100) or b"").decode())
    except (InvalidFileError, ValueError):
        return Phase.LAUNCH
