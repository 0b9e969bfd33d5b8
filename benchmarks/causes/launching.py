"""Launch both sides of a planted cause as `check` would profile them.

Every launch is a fresh process of a repository of its own, written for it: the base without the
cause, or the head with the cause and two decoys.
"""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from ci_perf.launch.local import LocalLauncher
from ci_perf.model.explanation import ProfiledPair, StepProfile
from ci_perf.model.suite import PlannedWorkload, Protocol
from ci_perf.model.task import Task

ROOT: Final = Path(__file__).parents[2]
_PROTOCOL: Final = Protocol(timeout_s=300, monitor_hz=0)


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


def rounds_s(*sides: Repository) -> list[list[float]]:
    """Time steps of several sides in turns, round by round. Raises CalledProcessError."""
    files = [str(side.folder / "model.py") for side in sides]
    command = [sys.executable, "-m", "benchmarks.causes.turns", *files]
    answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
    # torch's own lines come first.
    rounds: list[list[float]] = json.loads(answer.stdout.splitlines()[-1])
    return rounds


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
