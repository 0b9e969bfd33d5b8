"""Where a worker runs: siblings behind one interface. `local` is a child process here."""

from typing import Protocol

from ci_perf.measure.task import Surroundings, Task, Trouble
from ci_perf.model.run import WorkerResult


class Launcher(Protocol):
    """Starts one fresh process per task, and leaves none behind."""

    def describe(self, device: str, threads: int) -> Surroundings | Trouble:
        """Say what the machine is on which tasks will run; "auto" picks the device."""

    def launch(self, task: Task) -> WorkerResult | Trouble:
        """Run one task to its end or its time limit. Only KeyboardInterrupt is raised."""
