"""One launch, wherever its process runs: a folder, the process, and what it left there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from ci_perf.errors import CiPerfError, InvalidFileError
from ci_perf.launch import endings, monitoring, turns
from ci_perf.launch.endings import Kills
from ci_perf.launch.turns import Interrupted, Seat
from ci_perf.model import task as tasks
from ci_perf.model.process import NO_RESULT_IN_TIME, Phase, WorkerResult
from ci_perf.model.task import Task, TaskFailure
from ci_perf.model.validity import Evidence, HostEvidence
from ci_perf.system import child, files, scratch
from ci_perf.system.child import Ended
from ci_perf.system.scratch import Scratch

# Importing torch from a cold disk can take a minute.
TORCH_TIMEOUT_S = 300.0

# A sentence; what does not fit would only be refused by the run file.
_REASON_CHARS = 2000

# Whatever goes wrong here can only lose what is measured here.
_AFTER_TIMING = {Phase.MEMORY, Phase.COUNTERS, Phase.TEARDOWN}

T = TypeVar("T", bound=msgspec.Struct)

Outcome = WorkerResult | TaskFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a process ended, what was seen meanwhile, and whom the kernel killed for memory."""

    ended: Ended
    evidence: Evidence | None = None
    kills: Kills | None = None


Run = Callable[[Scratch], Finished]


def task(spelled: Task, run: Run, *, is_paired: bool = False) -> Outcome:
    """Launch one task: `run` runs the process that finds `spelled` in the folder it is given.

    What it raises as OSError or CiPerfError becomes a TaskFailure.
    """
    limit = f"{spelled.workload.protocol.timeout_s:g} s (`timeout_s` in suite.toml)"
    try:
        with scratch.folder() as folder:
            files.write(folder.path / tasks.TASK, spelled)
            finished = run(folder)
            result = _collect(folder, finished, WorkerResult, limit)
            evidence = finished.evidence
            if isinstance(result, TaskFailure):
                ended, kills = finished.ended, finished.kills
                result = _timed_before(folder, endings.explained(result, ended, kills, evidence))
    except (OSError, CiPerfError) as error:
        return not_started(error)
    if isinstance(result, TaskFailure):
        return result
    if evidence is not None and is_paired:
        evidence = monitoring.without_partner(evidence)
    process = msgspec.structs.replace(result.process, evidence=evidence)
    return msgspec.structs.replace(result, process=process)


def pair(
    tasks_of_pair: Sequence[Task],
    launch: Callable[[Task, Interrupted, Seat], Outcome],
    interrupted: Interrupted,
) -> tuple[Outcome, Outcome]:
    """Launch two tasks that take turns. See Launcher."""
    if "torchrun" in {one.workload.launch for one in tasks_of_pair}:
        trouble = not_started(ValueError("ranks cannot take turns with those of another task"))
        return trouble, trouble
    launches = [_seated(one, launch) for one in tasks_of_pair]
    try:
        with child.ending_orphans():
            of_first, of_second = turns.conduct(launches, interrupted)
    except OSError as error:
        trouble = not_started(error)
        return trouble, trouble
    return of_first, of_second


def module(run: Run, kind: type[T], *, what: str, timeout_s: float) -> T | TaskFailure:
    """Run one of our modules that measures no workload, and return what it left."""
    try:
        with scratch.folder() as folder:
            return _collect(folder, run(folder), kind, f"{timeout_s:g} s for {what}")
    except (OSError, CiPerfError) as error:
        return not_started(error)


def not_started(error: Exception) -> TaskFailure:
    """Say why there was no process at all."""
    output = error.output if isinstance(error, CiPerfError) else ""
    return TaskFailure(
        phase=Phase.LAUNCH,
        reason=f"cannot start a process: {error}"[:_REASON_CHARS],
        output=output,
    )


def evidence(watch: monitoring.Watch) -> Evidence:
    """Return what the monitor saw; where it left nothing, only why."""
    nothing = HostEvidence(
        wall_s=0.0,
        cpu_s=None,
        cpu_pressure=None,
        memory_pressure=None,
        involuntary_switches=None,
        throttled_s=None,
    )
    return watch.evidence() or Evidence(
        host=nothing, gpus=(), host_rss_peak_bytes=None, overhead_cpu_s=0.0, trouble=watch.trouble
    )


def _seated(
    one: Task, launch: Callable[[Task, Interrupted, Seat], Outcome]
) -> Callable[[Seat, Interrupted], Outcome]:
    def seated(seat: Seat, interrupted: Interrupted) -> Outcome:
        return launch(one, interrupted, seat)

    return seated


def _collect(folder: Scratch, finished: Finished, kind: type[T], limit: str) -> T | TaskFailure:
    """Read what the process left; a result counts only when it ended well."""
    ended = finished.ended
    tail = ended.tail[-10_000:]
    phase = _last_phase(folder)
    if ended.timed_out:
        return TaskFailure(phase=phase, reason=f"{NO_RESULT_IN_TIME} of {limit}", output=tail)
    try:
        if trouble := folder.read(tasks.FAILURE, TaskFailure):
            return msgspec.structs.replace(trouble, output=trouble.output or tail)
        result = folder.read(tasks.RESULT, kind)
    except InvalidFileError as error:
        reason = f"invalid result: {error}"[:_REASON_CHARS]
        return TaskFailure(phase=phase, reason=reason, output=tail)
    if result is not None and ended.code == 0:
        return result
    gone = "" if folder.path.exists() else f"; its folder {folder.path} has been removed meanwhile"
    reason = endings.in_words(ended, phase, finished.kills) + gone
    return TaskFailure(phase=phase, reason=reason, output=tail)


def _timed_before(folder: Scratch, trouble: TaskFailure) -> Outcome:
    """Return what was measured until a process failed that had been timed; else its trouble."""
    try:
        # At the very end the worker looks whether it ran the code that it should have run.
        is_told = folder.read(tasks.FAILURE, TaskFailure) is not None
        if trouble.phase not in _AFTER_TIMING or (is_told and trouble.phase is Phase.TEARDOWN):
            return trouble
        kept = folder.read(tasks.RESULT, WorkerResult)
    except InvalidFileError:
        return trouble
    if kept is None:
        return trouble
    absent = kept.process.absent | {trouble.phase.value: trouble.reason}
    process = msgspec.structs.replace(kept.process, absent=absent)
    return msgspec.structs.replace(kept, process=process)


def _last_phase(folder: Scratch) -> Phase:
    try:
        return Phase((folder.read_bytes(tasks.PHASE, limit=100) or b"").decode())
    except (InvalidFileError, ValueError):
        return Phase.LAUNCH
