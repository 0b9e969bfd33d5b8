"""Launch workers as child processes of this machine."""

import os
import signal
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ci_perf import files
from ci_perf.errors import InvalidFileError
from ci_perf.launch import child
from ci_perf.measure import task as tasks
from ci_perf.measure.task import Surroundings, Task, Trouble
from ci_perf.model.run import Phase, WorkerResult

# Importing torch from a cold disk can take a minute.
_DESCRIBE_TIMEOUT_S = 300.0

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

    def describe(self, device: str, threads: int) -> Surroundings | Trouble:
        """See Launcher."""
        with tempfile.TemporaryDirectory(prefix="ci-perf-") as folder:
            output = Path(folder, tasks.RESULT)
            ended = self._python(
                "ci_perf.measure.surroundings",
                [device, str(threads), str(output)],
                threads=threads,
                timeout_s=_DESCRIBE_TIMEOUT_S,
            )
            if not output.exists():
                return Trouble(
                    phase=Phase.LAUNCH, reason=_ending(ended, None), output=ended.tail[-10_000:]
                )
            try:
                return files.read(output, Surroundings)
            except InvalidFileError:
                return files.read(output, Trouble)

    def launch(self, task: Task) -> WorkerResult | Trouble:
        """See Launcher."""
        protocol = task.workload.protocol
        with tempfile.TemporaryDirectory(prefix="ci-perf-") as folder:
            files.write(Path(folder, tasks.TASK), task)
            try:
                ended = self._python(
                    "ci_perf.measure.worker",
                    [folder],
                    threads=protocol.threads,
                    timeout_s=protocol.timeout_s,
                )
            except OSError as error:
                return Trouble(phase=Phase.LAUNCH, reason=f"cannot start a process: {error}")
            return _collect(Path(folder), ended, protocol.timeout_s)

    def _python(
        self, module: str, arguments: list[str], *, threads: int, timeout_s: float
    ) -> child.Ended:
        # -P: a file of the user's repository must not stand in for one of our imports.
        return child.run(
            [sys.executable, "-P", "-m", module, *arguments],
            cwd=self._root,
            environment=self._knobs(threads),
            timeout_s=timeout_s,
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


def _collect(folder: Path, ended: child.Ended, timeout_s: float) -> WorkerResult | Trouble:
    """Read what the worker left; a result counts only when the process ended well."""
    tail = ended.tail[-10_000:]
    phase = _last_phase(folder)
    if ended.timed_out:
        reason = f"no result within the time limit of {timeout_s:g} s (`timeout_s` in suite.toml)"
        return Trouble(phase=phase, reason=reason, output=tail)
    try:
        if (folder / tasks.TROUBLE).exists():
            trouble = files.read(folder / tasks.TROUBLE, Trouble)
            return Trouble(phase=trouble.phase, reason=trouble.reason, output=tail)
        if ended.code == 0 and (folder / tasks.RESULT).exists():
            return files.read(folder / tasks.RESULT, WorkerResult)
    except InvalidFileError as error:
        return Trouble(phase=phase, reason=f"invalid result: {error}", output=tail)
    return Trouble(phase=phase, reason=_ending(ended, phase), output=tail)


def _last_phase(folder: Path) -> Phase:
    try:
        return Phase((folder / tasks.PHASE).read_text())
    except (OSError, ValueError):
        return Phase.LAUNCH


def _ending(ended: child.Ended, phase: Phase | None) -> str:
    """Say in words how a process ended that left no result."""
    where = f" in phase {phase.value}" if phase else ""
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
