"""What a parent tells a child process, and what it hears back when things go wrong."""

import os

from ci_perf.model.base import Count, Name, Struct, Text
from ci_perf.model.environment import Environment
from ci_perf.model.process import Exhausted, Phase
from ci_perf.model.suite import PlannedWorkload

# The files of one launch, in a folder of its own.
TASK = "task.json"
RESULT = "result.json"
TROUBLE = "trouble.json"
PHASE = "phase"
# The last act of a process that ended as it should.
DONE = "done"


def of_rank(name: str, rank: int) -> str:
    """Name the file of one rank: "trouble.1.json" beside "trouble.json", "phase.1"."""
    stem, dot, suffix = name.partition(".")
    return f"{stem}.{rank}{dot}{suffix}"


def mine(name: str) -> str:
    """Name the file of this process: its rank's own, where torchrun has given it a rank."""
    rank = os.environ.get("RANK", "")
    torchrun = "TORCHELASTIC_RUN_ID" in os.environ
    return of_rank(name, int(rank)) if torchrun and rank.isdecimal() else name


class Task(Struct, frozen=True, kw_only=True):
    """One launch of one workload. ``root`` is the repository, where imports are resolved.

    ``gpus`` are the UUIDs of the devices that it may use, none on a CPU. ``turns`` is the folder
    by which a resident process takes turns with its partner; empty for one without a partner.
    ``python_path`` are folders below the root that are searched right after it; nothing may be
    imported from ``foreign_root``, the other side of a comparison.
    """

    workload: PlannedWorkload
    index: Count
    device: Text
    root: Text
    data_dir: Text
    gpus: tuple[Name, ...] = ()
    turns: Text = ""
    python_path: tuple[Text, ...] = ()
    foreign_root: Text = ""


class Trouble(Struct, frozen=True, kw_only=True):
    """Why a process has no result."""

    phase: Phase
    reason: Text
    output: Text = ""
    exhausted: Exhausted | None = None


class Surroundings(Struct, frozen=True, kw_only=True):
    """The device that "auto" came to, what must be locked to use it alone, and the machine.

    ``gpus`` are the UUIDs of the GPUs that will be used, none on a CPU.
    """

    device: Text
    locks: tuple[Name, ...]
    gpus: tuple[Name, ...]
    environment: Environment
