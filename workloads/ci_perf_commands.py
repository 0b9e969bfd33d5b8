"""What users wait for in ci_perf itself: whole commands, from start to exit.

The commands run in processes of their own, with the ci_perf that lies in the current folder: a
pull request of ci_perf is measured with the code of that pull request, and its base with the
base's. torch cannot be imported there, because importing it takes longer than all of ci_perf.
"""

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import _parameters
from ci_perf.workload import Context, Workload

Command = tuple[str, ...]
Task = Literal["help", "judge", "history", "launch", "pair"]

WORKLOADS_JUDGED = 1000
WORKLOADS_IN_HISTORY = 20
SESSIONS_IN_HISTORY = 20
_TIMEOUT_S = 100
_WITHOUT_TORCH = "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n"
_WORKLOAD = '''"""Sleep for 20 milliseconds."""
import time
from ci_perf.workload import Workload
build = lambda context: Workload(step=lambda: time.sleep(0.02))
'''
# The limits are so wide that a busy machine, on which sleeping takes longer, changes no verdict.
_SUITE = """schema_version = 1
[suites.tiny]
device = "cpu"
canaries = false
[suites.tiny.limits]
step_time_s = { limit = 1.0 }
host_rss_peak_bytes = { limit = 1.0 }
[suites.tiny.protocol]
processes = 1
warmup_min_steps = 1
warmup_min_s = 0.0
warmup_window = 1
timed_min_blocks = 3
timed_min_s = 0.0
launch_spread = 1.0
monitor_hz = 0.0
[[suites.tiny.workloads]]
workload = "sleep"
"""


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """`task` names the command; each has a function of that name below."""

    task: Task = "help"


def build(context: Context) -> Workload:
    parameters = _parameters.read(context.parameters, Parameters)
    scratch = Path(tempfile.mkdtemp(prefix="ci-perf-self-"))
    program = _Runner(scratch)
    command = _TASKS[parameters.task](program, scratch / "repository")
    return Workload(
        step=lambda: program(*command),
        item_unit="command",
        teardown=lambda: shutil.rmtree(scratch, ignore_errors=True),
    )


class _Runner:
    """Runs ci-perf of the current folder in a small repository, without torch."""

    def __init__(self, scratch: Path) -> None:
        self._repository = scratch / "repository"
        self._repository.mkdir()
        hidden = scratch / "without_torch"
        hidden.mkdir()
        (hidden / "torch.py").write_text(_WITHOUT_TORCH)
        self._environment = {
            name: value for name, value in os.environ.items() if not name.startswith("CI_PERF")
        } | {
            "CI_PERF_LOCK_DIR": str(scratch / "locks"),
            # A busy machine is neither waited for nor refused: only the commands are timed.
            "CI_PERF_ACCEPT_FORCE": "1",
            "CI_PERF_CHECK_WAIT": "0s",
            "CI_PERF_RUN_WAIT": "0s",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "PYTHONPATH": os.pathsep.join([str(hidden), str(Path.cwd())]),
        }

    def __call__(self, *arguments: str) -> None:
        """Run one command of ci-perf. Raises RuntimeError unless it ends with exit code 0."""
        self._run(sys.executable, "-m", "ci_perf", *arguments)

    def git(self, *arguments: str) -> None:
        who = ("-c", "user.name=ci_perf", "-c", "user.email=ci_perf@example.invalid")
        self._run("git", *who, *arguments)

    def _run(self, *command: str) -> None:
        ended = subprocess.run(
            command,
            cwd=self._repository,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        if ended.returncode:
            raise RuntimeError(
                f"{' '.join(command)}: expected exit code 0, found {ended.returncode}: "
                f"{ended.stderr[-2000:]}"
            )


def _help(_program: _Runner, _repository: Path) -> Command:
    """Start and say what there is."""
    return ("--help",)


def _judge(_program: _Runner, repository: Path) -> Command:
    """Judge 1,000 unchanged workloads of five sessions, and render the report."""
    times = _times(random.Random(0))  # noqa: S311  not a secret
    workloads = [
        {
            "workload": f"w{number:04}",
            "metric": {"unit": "s", "kind": "time"},
            "history": [_launches(times, 5) for _ in range(5)],
            "head": _launches(times, 3),
        }
        for number in range(WORKLOADS_JUDGED)
    ]
    (repository / "samples.json").write_text(json.dumps({"workloads": workloads}))
    return ("judge", "samples.json", "-o", "report.md")


def _history(program: _Runner, repository: Path) -> Command:
    """Show the history of 20 workloads, each with 20 sessions."""
    _write_suite(repository)
    program("run", "--suite", "tiny", "-o", "run.json")
    program("accept", "run.json")
    (file,) = repository.glob("baselines/*/tiny/sleep.json")
    baseline = json.loads(file.read_text())
    (session,) = baseline["sessions"]
    days = range(1, SESSIONS_IN_HISTORY + 1)
    sessions = [session | {"recorded_at": f"2026-01-{day:02}T00:00:00Z"} for day in days]
    for number in range(WORKLOADS_IN_HISTORY):
        copy = baseline | {"workload": f"w{number:02}", "sessions": sessions}
        (file.parent / f"w{number:02}.json").write_text(json.dumps(copy))
    file.unlink()
    program.git("init", "--quiet", "--initial-branch=main")
    program.git("add", "workloads", "baselines")
    program.git("commit", "--quiet", "--message=One")
    return ("history",)


def _launch(_program: _Runner, repository: Path) -> Command:
    """Launch one process of a workload that only sleeps, and write run.json."""
    _write_suite(repository)
    return ("run", "--suite", "tiny", "-o", "run.json")


def _pair(program: _Runner, repository: Path) -> Command:
    """Check a workload without a baseline against the commit before: two pairs decide it."""
    _write_suite(repository)
    program.git("init", "--quiet", "--initial-branch=main")
    program.git("add", "workloads")
    program.git("commit", "--quiet", "--message=One")
    program.git("commit", "--quiet", "--message=Two", "--allow-empty")
    return ("check", "--suite", "tiny", "--against", "HEAD~", "--budget", "1m")


def _write_suite(repository: Path) -> None:
    workloads = repository / "workloads"
    workloads.mkdir()
    (workloads / "suite.toml").write_text(_SUITE)
    (workloads / "sleep.py").write_text(_WORKLOAD)


def _times(generator: random.Random) -> Iterator[float]:
    """Yield step times around 10 ms that differ by 1 %."""
    while True:
        yield 0.01 * generator.lognormvariate(0, 0.01)


def _launches(times: Iterator[float], count: int) -> list[float]:
    return [next(times) for _ in range(count)]


_TASKS: dict[Task, Callable[[_Runner, Path], Command]] = {
    "help": _help,
    "judge": _judge,
    "history": _history,
    "launch": _launch,
    "pair": _pair,
}
