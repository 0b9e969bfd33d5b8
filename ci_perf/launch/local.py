"""Launch workers as child processes of this machine."""

import contextlib
import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from ci_perf import files
from ci_perf.errors import CannotWriteError, CiPerfError, InvalidFileError
from ci_perf.launch import child, endings, monitoring, never, scratch, turns
from ci_perf.launch import environment as environments
from ci_perf.launch.endings import KillCount
from ci_perf.launch.scratch import Scratch
from ci_perf.launch.turns import Seat
from ci_perf.measure import canaries
from ci_perf.measure import task as tasks
from ci_perf.measure.task import Surroundings, Task, Trouble
from ci_perf.measure.validity.gpu_preflight import GpuStates
from ci_perf.model.evidence import Evidence, HostEvidence
from ci_perf.model.process import Phase, WorkerResult

# Importing torch from a cold disk can take a minute.
_TORCH_TIMEOUT_S = 300.0
# A driver that has lost a GPU may never answer.
_DRIVER_TIMEOUT_S = 60.0

# A sentence; what does not fit would only be refused by the run file.
_REASON_CHARS = 2000

T = TypeVar("T", bound=msgspec.Struct)


class LocalLauncher:
    """Each task is a fresh Python process in a session of its own."""

    def __init__(
        self,
        root: Path,
        environment: Mapping[str, str] | None = None,
        *,
        caches: Path | None = None,
        kill_count: Callable[[], KillCount | None] = endings.kill_count,
    ) -> None:
        """Launch tasks in the root that each of them names; `root` is the repository under measure.

        Below `caches`, a workload finds the code that its earlier processes have compiled; without
        it every process has to compile all of it. `kill_count` says whom the kernel has killed.
        """
        self._root = root
        self._environment = dict(os.environ if environment is None else environment)
        self._caches = caches
        self._kill_count = kill_count

    def describe(
        self, device: str, threads: int, devices: int, interrupted: Callable[[], bool] = never
    ) -> Surroundings | Trouble:
        """See Launcher."""
        try:
            scratch.sweep()
        except OSError as error:
            return _not_started(error)
        return _aside(
            "ci_perf.measure.surroundings",
            [device, str(threads), str(devices)],
            Surroundings,
            what="describing the machine",
            timeout_s=_TORCH_TIMEOUT_S,
            cwd=self._root,
            environment=environments.of_child(self._environment, threads),
            interrupted=interrupted,
        )

    def look(
        self, gpus: Sequence[str], interrupted: Callable[[], bool] = never
    ) -> GpuStates | Trouble:
        """See Launcher."""
        return _aside(
            "ci_perf.measure.validity.gpu_preflight",
            gpus,
            GpuStates,
            what="looking at the GPUs",
            timeout_s=_DRIVER_TIMEOUT_S,
            cwd=None,
            environment=environments.apart_from(self._root, self._environment, threads=1),
            interrupted=interrupted,
        )

    def canaries(
        self, device: str, threads: int, interrupted: Callable[[], bool] = never
    ) -> Mapping[str, float] | Trouble:
        """See Launcher."""
        found = _aside(
            "ci_perf.measure.canaries",
            [device, str(threads)],
            canaries.Times,
            what="the canaries",
            timeout_s=_TORCH_TIMEOUT_S,
            cwd=None,
            environment=environments.apart_from(self._root, self._environment, threads),
            interrupted=interrupted,
        )
        return found if isinstance(found, Trouble) else found.median_s

    def launch(self, task: Task, interrupted: Callable[[], bool] = never) -> WorkerResult | Trouble:
        """See Launcher."""
        return self._launch(task, interrupted)

    def launch_pair(
        self, first: Task, second: Task, interrupted: Callable[[], bool] = never
    ) -> tuple[WorkerResult | Trouble, WorkerResult | Trouble]:
        """See Launcher."""
        if "torchrun" in {first.workload.launch, second.workload.launch}:
            trouble = _not_started(ValueError("ranks cannot take turns with those of another task"))
            return trouble, trouble
        launches = [self._launch_of_pair(task) for task in (first, second)]
        try:
            with child.ending_orphans():
                of_first, of_second = turns.conduct(launches, interrupted)
        except OSError as error:
            trouble = _not_started(error)
            return trouble, trouble
        return of_first, of_second

    def _launch_of_pair(
        self, task: Task
    ) -> Callable[[Seat, Callable[[], bool]], WorkerResult | Trouble]:
        def launch(seat: Seat, interrupted: Callable[[], bool]) -> WorkerResult | Trouble:
            return self._launch(
                msgspec.structs.replace(task, turns=str(seat.folder)), interrupted, seat
            )

        return launch

    def _launch(
        self, task: Task, interrupted: Callable[[], bool], seat: Seat | None = None
    ) -> WorkerResult | Trouble:
        protocol = task.workload.protocol
        kills = self._kill_count()
        try:
            with scratch.folder() as folder:
                files.write(folder.path / tasks.TASK, task)
                ended, evidence = self._run(task, folder, interrupted, seat)
                limit = f"{protocol.timeout_s:g} s (`timeout_s` in suite.toml)"
                result = _collect(folder, ended, WorkerResult, limit, kills)
        except (OSError, CiPerfError) as error:
            return _not_started(error)
        if isinstance(result, Trouble):
            return endings.explained(result, ended, kills, evidence)
        if evidence is not None and seat is not None:
            evidence = monitoring.without_partner(evidence)
        process = msgspec.structs.replace(result.process, evidence=evidence)
        return msgspec.structs.replace(result, process=process)

    def _run(
        self, task: Task, folder: Scratch, interrupted: Callable[[], bool], seat: Seat | None
    ) -> tuple[child.Ended, Evidence | None]:
        """Run the child of one task, with the monitor beside it."""
        protocol = task.workload.protocol
        in_ranks = task.workload.launch == "torchrun"
        module = "ci_perf.measure.ranks" if in_ranks else "ci_perf.measure.worker"
        environment = environments.of_task(self._environment, protocol, self._cache(task, folder))
        with monitoring.beside(
            folder.path,
            task.gpus,
            protocol.monitor_hz,
            [sys.executable, "-P"],
            environments.apart_from(self._root, self._environment, protocol.threads),
        ) as watch:
            ended = child.run(
                _python(module, folder),
                cwd=task.root,
                environment=environment,
                cookie=_cookie(folder),
                timeout_s=protocol.timeout_s,
                interrupted=interrupted,
                seat=seat,
            )
        return ended, _evidence(watch) if protocol.monitor_hz else None

    def _cache(self, task: Task, folder: Scratch) -> Path:
        """Return the folder of compiled code; a short name, as compilers get it in commands.

        Each root has its own: what base has compiled must not be there for head.
        """
        if self._caches is None:
            return folder.path / "cache"
        whose = f"{task.workload.id}\n{task.root}"
        return self._caches / hashlib.sha256(whose.encode()).hexdigest()[:12]


@contextlib.contextmanager
def launcher(root: Path) -> Iterator[LocalLauncher]:
    """Provide a launcher that keeps compiled code until the end. Raises CannotWriteError."""
    with contextlib.ExitStack() as stack:
        try:
            caches = stack.enter_context(scratch.folder())
        except OSError as error:
            raise CannotWriteError(
                f"{error.filename}: cannot be made: {error.strerror}; TMPDIR names another place "
                "for temporary files"
            ) from None
        yield LocalLauncher(root, caches=caches.path)


def _aside(
    module: str,
    arguments: Sequence[str],
    kind: type[T],
    *,
    what: str,
    timeout_s: float,
    cwd: Path | None,
    environment: Mapping[str, str],
    interrupted: Callable[[], bool],
) -> T | Trouble:
    """Run one of our modules that measures no workload; in its own folder when `cwd` is `None`."""
    try:
        with scratch.folder() as folder:
            ended = child.run(
                [*_python(module, folder), *arguments],
                cwd=str(cwd or folder.path),
                environment=environment,
                cookie=_cookie(folder),
                timeout_s=timeout_s,
                interrupted=interrupted,
            )
            return _collect(folder, ended, kind, f"{timeout_s:g} s for {what}", None)
    except (OSError, CiPerfError) as error:
        return _not_started(error)


def _evidence(watch: monitoring.Watch) -> Evidence:
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


def _python(module: str, folder: Scratch) -> list[str]:
    """Spell the command of one of our modules; it is told its folder, and who its parent is."""
    # -P: a file of the user's repository must not stand in for one of our imports.
    return [sys.executable, "-P", "-m", module, str(folder.path), str(os.getpid())]


def _cookie(folder: Scratch) -> child.Cookie:
    return child.Cookie(variable=scratch.COOKIE, value=folder.path.name)


def _not_started(error: Exception) -> Trouble:
    return Trouble(phase=Phase.LAUNCH, reason=f"cannot start a process: {error}"[:_REASON_CHARS])


def _collect(
    folder: Scratch,
    ended: child.Ended,
    kind: type[T],
    limit: str,
    kills: KillCount | None,
) -> T | Trouble:
    """Read what the child left; a result counts only when the process ended well."""
    tail = ended.tail[-10_000:]
    phase = _last_phase(folder)
    if ended.timed_out:
        return Trouble(
            phase=phase, reason=f"no result within the time limit of {limit}", output=tail
        )
    try:
        if trouble := folder.read(tasks.TROUBLE, Trouble):
            return msgspec.structs.replace(trouble, output=trouble.output or tail)
        result = folder.read(tasks.RESULT, kind)
    except InvalidFileError as error:
        reason = f"invalid result: {error}"[:_REASON_CHARS]
        return Trouble(phase=phase, reason=reason, output=tail)
    if result is not None and ended.code == 0:
        return result
    gone = "" if folder.path.exists() else f"; its folder {folder.path} has been removed meanwhile"
    return Trouble(phase=phase, reason=endings.in_words(ended, phase, kills) + gone, output=tail)


def _last_phase(folder: Scratch) -> Phase:
    try:
        return Phase((folder.read_bytes(tasks.PHASE, limit=100) or b"").decode())
    except (InvalidFileError, ValueError):
        return Phase.LAUNCH
