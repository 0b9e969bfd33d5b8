"""Do in each step what a plant asks for: a fixed number of iterations, not a time."""

import dataclasses
import os
import sys
from collections.abc import Callable
from typing import Any

from ci_perf.errors import UsageError
from ci_perf.model.plant import PLANT_VARIABLE, Plant, burn
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
    step, reported_s = workload.step, workload.reported_s
    is_command = todo.workload.launch == "command"
    if reported_s is not None and not is_command:
        raise UsageError(
            "a plant: expected a step that ci-perf times, found one that times a part of itself "
            "(`benchmark.pedantic` with setup); name another test"
        )
    is_gpu = todo.device != "cpu" and not is_command
    do_more = _prepare(todo.plant, synchronize, "cuda" if is_gpu else "cpu")

    def step_and_more() -> None:
        step()
        if reported_s is None or not reported_s():
            do_more()

    return dataclasses.replace(workload, step=step_and_more)


def _prepare(plant: Plant, synchronize: Callable[[], object], device: str) -> Callable[[], object]:
    """Return what is done in each step. A kernel of a GPU is queued on the stream of the step."""
    torch: Any = sys.modules.get("torch")
    if plant.kind == "work" and device == "cpu":

        def work() -> None:
            synchronize()
            burn(plant.iterations)

        return work
    if plant.kind == "memory" and device == "cpu":
        held = b"\1" * plant.held_bytes  # every page is written
        return lambda: held
    if torch is None:
        raise UsageError(
            f"--plant {plant.kind}: expected a workload that uses torch, found one without; name "
            "another workload"
        )
    if plant.kind == "work":
        spin = torch.cuda._sleep  # noqa: SLF001  the kernel of torch's own tests: it counts cycles
        return lambda: spin(plant.iterations)
    if plant.kind == "memory":
        on_gpu = torch.ones(plant.held_bytes, dtype=torch.uint8, device=device)
        return lambda: on_gpu
    number = torch.ones((), device=device)
    item: Callable[[], object] = number.item
    return item if plant.kind == "wait" else lambda: number + 1
