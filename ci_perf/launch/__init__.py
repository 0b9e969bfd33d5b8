"""Launch tasks, each in a fresh process: what a launch gives, and what ends it early.

`run_task.Launcher` is the base of all launchers. `local` starts child processes on this machine;
features start them elsewhere, in containers.
"""

from collections.abc import Callable

from ci_perf.model.process import WorkerResult
from ci_perf.model.task import TaskFailure

# What one launch gives.
Outcome = WorkerResult | TaskFailure

# Whether a signal has asked us to end.
Interrupted = Callable[[], bool]


def never() -> bool:
    """Be interrupted by nothing. See Interrupted."""
    return False
