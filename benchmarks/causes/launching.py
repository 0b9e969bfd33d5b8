"""Launch both sides of a planted cause as `check` would profile them, and as torch.profiler would.

Every launch is a fresh process of a repository of its own, written for it: the base without the
cause, or the head with the cause and two decoys.
"""

import contextlib
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from benchmarks.causes.averages import TRACE
from ci_perf.launch.local import LocalLauncher
from ci_perf.model.step_profile import ProfiledPair, StepProfile
from ci_perf.model.suite import PlannedWorkload, Protocol
from ci_perf.model.task import Task

ROOT: Final = Path(__file__).parents[2]
_PROTOCOL: Final = Protocol(timeout_s=300, monitor_hz=0)
_STEPS: Final = 20

Averages = dict[str, tuple[float, float]]
"""Of each operator: its mean self time per step, and its calls times the p25 of one call."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A folder with one workload file."""

    folder: Path

    @classmethod
    def holding(cls, folder: Path, text: str) -> "Repository":
        """Write the only file."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.py").write_text(text, encoding="utf-8")
        return cls(folder)

    def profile(self) -> StepProfile:
        """Launch the workload to profile it. Raises RuntimeError."""
        task = Task(
            workload=PlannedWorkload(
                id="model",
                file=str(self.folder / "model.py"),
                description="",
                parameters={},
                protocol=_PROTOCOL,
            ),
            index=0,
            device="cpu",
            root=str(self.folder),
            data_dir=str(self.folder),
        )
        outcome = LocalLauncher(self.folder).profile(task)
        if isinstance(outcome, StepProfile) and not outcome.absent:
            return outcome
        raise RuntimeError(str(outcome)[:2_000])


def averages(*sides: Repository) -> list[Averages]:
    """Run steps of each side below torch.profiler. Raises CalledProcessError."""
    return [
        {name: (mean, quartile) for name, mean, quartile in of_side}
        for of_side in _answer("averages", str(_STEPS), *sides)
    ]


def rounds_s(*sides: Repository) -> list[list[float]]:
    """Time steps of several sides in turns, round by round. Raises CalledProcessError."""
    rounds: list[list[float]] = _answer("turns", *sides)
    return rounds


def trace_diff(python: str, *sides: Repository) -> dict[str, float]:
    """Ask HolisticTraceAnalysis, in an environment that has it, for the difference of the traces.

    The traces are those of `averages`. Returns microseconds by name. Raises CalledProcessError.
    """
    files = [str((side.folder / "model.py").with_suffix(TRACE)) for side in sides]
    command = [python, str(Path(__file__).with_name("trace_diff.py")), *files]
    answer = subprocess.run(command, capture_output=True, check=True, text=True)
    by_name: dict[str, float] = defaultdict(float)
    for name, difference_us in json.loads(answer.stdout.splitlines()[-1]).items():
        by_name[re.sub(r"\bplanted_(base|head)::", "planted::", name)] += difference_us
    return by_name


def _answer(module: str, *arguments: str | Repository) -> Any:  # noqa: ANN401  JSON
    words = [each if isinstance(each, str) else str(each.folder / "model.py") for each in arguments]
    command = [sys.executable, "-m", f"benchmarks.causes.{module}", *words]
    answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(answer.stdout.splitlines()[-1])  # torch's own lines stand above ours


def pairs(base: Repository, head: Repository, count: int) -> Iterator[ProfiledPair]:
    """Profile both sides in turns, in a changing order."""
    for index in range(count):
        profiles: dict[str, StepProfile] = {}
        sides = (("base", base), ("head", head))
        for name, side in sides[::-1] if index % 2 else sides:
            profiles[name] = side.profile()
        yield ProfiledPair(**profiles)


def kept(path: Path) -> list[ProfiledPair]:
    """Return the pairs of an earlier run of this command; none where there was none."""
    with contextlib.suppress(OSError):
        return msgspec.json.decode(path.read_bytes(), type=list[ProfiledPair])
    return []
