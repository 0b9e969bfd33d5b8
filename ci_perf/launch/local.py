"""Launch workers as child processes of this machine."""

import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from ci_perf import files
from ci_perf.errors import CiPerfError, InvalidFileError
from ci_perf.launch import child, never, scratch
from ci_perf.launch.scratch import Scratch
from ci_perf.measure import task as tasks
from ci_perf.measure.task import Surroundings, Task, Trouble
from ci_perf.model.run import Phase, WorkerResult

# Importing torch from a cold disk can take a minute.
_DESCRIBE_TIMEOUT_S = 300.0
_DESCRIBE_LIMIT = f"{_DESCRIBE_TIMEOUT_S:g} s for describing the machine"

# A sentence; what does not fit would only be refused by the run file.
_REASON_CHARS = 2000

T = TypeVar("T", bound=msgspec.Struct)

# Credentials and files by which a step speaks to its CI: the measured code gets none of them.
_WITHHELD = (
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "ACTIONS_RUNTIME_TOKEN",
    "GH_TOKEN",
    "GITHUB_ENV",
    "GITHUB_OUTPUT",
    "GITHUB_PATH",
    "GITHUB_STATE",
    "GITHUB_STEP_SUMMARY",
    "GITHUB_TOKEN",
)


class LocalLauncher:
    """Each task is a fresh Python process in a session of its own."""

    def __init__(self, root: Path, environment: Mapping[str, str] | None = None) -> None:
        """Launch in `root`, the repository under measure."""
        self._root = str(root)
        self._environment = dict(os.environ if environment is None else environment)

    def describe(
        self, device: str, threads: int, interrupted: Callable[[], bool] = never
    ) -> Surroundings | Trouble:
        """See Launcher."""
        try:
            scratch.sweep()
            with scratch.folder() as folder:
                ended = self._python(
                    "ci_perf.measure.surroundings",
                    [device, str(threads)],
                    folder,
                    threads=threads,
                    timeout_s=_DESCRIBE_TIMEOUT_S,
                    interrupted=interrupted,
                )
                return _collect(folder, ended, Surroundings, _DESCRIBE_LIMIT)
        except (OSError, CiPerfError) as error:
            return _not_started(error)

    def launch(self, task: Task, interrupted: Callable[[], bool] = never) -> WorkerResult | Trouble:
        """See Launcher."""
        protocol = task.workload.protocol
        try:
            with scratch.folder() as folder:
                files.write(folder.path / tasks.TASK, task)
                ended = self._python(
                    "ci_perf.measure.worker",
                    [],
                    folder,
                    threads=protocol.threads,
                    timeout_s=protocol.timeout_s,
                    interrupted=interrupted,
                )
                limit = f"{protocol.timeout_s:g} s (`timeout_s` in suite.toml)"
                return _collect(folder, ended, WorkerResult, limit)
        except (OSError, CiPerfError) as error:
            return _not_started(error)

    def _python(
        self,
        module: str,
        arguments: list[str],
        folder: Scratch,
        *,
        threads: int,
        timeout_s: float,
        interrupted: Callable[[], bool],
    ) -> child.Ended:
        """Run one of our modules; it is told its folder, and who its parent is."""
        # -P: a file of the user's repository must not stand in for one of our imports.
        command = [sys.executable, "-P", "-m", module, str(folder.path), str(os.getpid())]
        return child.run(
            [*command, *arguments],
            cwd=self._root,
            environment=self._knobs(threads),
            cookie=child.Cookie(variable=scratch.COOKIE, value=folder.path.name),
            timeout_s=timeout_s,
            interrupted=interrupted,
        )

    def _knobs(self, threads: int) -> dict[str, str]:
        """Return a worker's environment: ours, less what it must not have, with fixed knobs."""
        kept = {k: v for k, v in self._environment.items() if k not in _WITHHELD}
        return {
            **kept,
            "HF_HUB_OFFLINE": "1",
            "MKL_NUM_THREADS": str(threads),
            "OMP_NUM_THREADS": str(threads),
            "PYTHONHASHSEED": "0",
            "PYTHONUNBUFFERED": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }


def _not_started(error: Exception) -> Trouble:
    return Trouble(phase=Phase.LAUNCH, reason=f"cannot start a process: {error}"[:_REASON_CHARS])


def _collect(folder: Scratch, ended: child.Ended, kind: type[T], limit: str) -> T | Trouble:
    """Read what the child left; a result counts only when the process ended well."""
    tail = ended.tail[-10_000:]
    phase = _last_phase(folder)
    if ended.timed_out:
        return Trouble(
            phase=phase, reason=f"no result within the time limit of {limit}", output=tail
        )
    try:
        if trouble := folder.read(tasks.TROUBLE, Trouble):
            return Trouble(phase=trouble.phase, reason=trouble.reason, output=tail)
        result = folder.read(tasks.RESULT, kind)
    except InvalidFileError as error:
        reason = f"invalid result: {error}"[:_REASON_CHARS]
        return Trouble(phase=phase, reason=reason, output=tail)
    if result is not None and ended.code == 0:
        return result
    gone = "" if folder.path.exists() else f"; its folder {folder.path} has been removed meanwhile"
    return Trouble(phase=phase, reason=_ending(ended, phase) + gone, output=tail)


def _last_phase(folder: Scratch) -> Phase:
    try:
        return Phase((folder.read_bytes(tasks.PHASE, limit=100) or b"").decode())
    except (InvalidFileError, ValueError):
        return Phase.LAUNCH


def _ending(ended: child.Ended, phase: Phase) -> str:
    """Say in words how a process ended that left no result."""
    where = f" in phase {phase.value}"
    if ended.code >= 0:
        return f"the process ended with exit code {ended.code}{where}, without a result"
    try:
        name = signal.Signals(-ended.code).name
    except ValueError:
        name = f"signal {-ended.code}"
    hint = {
        "SIGKILL": "; the kernel's out-of-memory killer does this",
        "SIGSEGV": "; the stack is in the output",
    }.get(name, "")
    return f"the process was ended by {name}{where}{hint}"
