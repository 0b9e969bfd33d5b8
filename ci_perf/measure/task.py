"""What a parent tells a child process, and what it hears back when things go wrong."""

from ci_perf.model.base import Count, Name, Struct, Text
from ci_perf.model.environment import Environment
from ci_perf.model.run import Phase
from ci_perf.model.suite import PlannedWorkload

# The files of one launch, in a folder of its own.
TASK = "task.json"
RESULT = "result.json"
TROUBLE = "trouble.json"
PHASE = "phase"


class Task(Struct, frozen=True, kw_only=True):
    """One launch of one workload. ``root`` is the repository, where imports are resolved."""

    workload: PlannedWorkload
    index: Count
    device: Text
    root: Text
    data_dir: Text


class Trouble(Struct, frozen=True, kw_only=True):
    """Why a process has no result."""

    phase: Phase
    reason: Text
    output: Text = ""


class Surroundings(Struct, frozen=True, kw_only=True):
    """The device that "auto" came to, what must be locked to use it alone, and the machine."""

    device: Text
    locks: tuple[Name, ...]
    environment: Environment
