"""Do in each step the work that a plant asks for: a fixed number of iterations, not a time."""

import dataclasses
import os
from collections.abc import Callable

from ci_perf.errors import UsageError
from ci_perf.model.plant import PLANT_VARIABLE, burn
from ci_perf.model.task import Task
from ci_perf.workload import Workload


def announce(todo: Task) -> None:
    """Tell a command, which a worker is about to start, of its plant; or of none."""
    os.environ.pop(PLANT_VARIABLE, None)
    if todo.plant is not None and todo.workload.launch == "command":
        os.environ[PLANT_VARIABLE] = str(todo.plant.iterations)


def plant(workload: Workload, todo: Task, synchronize: Callable[[], object]) -> Workload:
    """Return a workload with the plant of its task at the end of each step.

    A loop of a command does it itself. Raises UsageError: the workload times itself, without it.
    """
    if todo.plant is None:
        return workload
    step, reported_s, iterations = workload.step, workload.reported_s, todo.plant.iterations
    is_command = todo.workload.launch == "command"
    if reported_s is not None and not is_command:
        raise UsageError(
            "try: expected a step that ci-perf times, found one that times a part of itself "
            "(`benchmark.pedantic` with setup); name another test"
        )

    def step_and_work() -> None:
        step()
        if reported_s is None or not reported_s():
            synchronize()
            burn(iterations)

    return dataclasses.replace(workload, step=step_and_work)
