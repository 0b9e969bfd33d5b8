"""A launch of the head as one of the base."""

from pathlib import Path

import msgspec

from ci_perf.model.suite import PlannedWorkload
from ci_perf.model.task import Task
from ci_perf.worktree import Checkout


def find_base_task(task: Task, base: Checkout) -> Task | None:
    """Return a task of the head as one of the base; `None` where that has no such workload."""
    workload = find_base_workload(task.workload, Path(task.root), base)
    if workload is None:
        return None
    return spell_in_base(msgspec.structs.replace(task, workload=workload), base)


def find_base_workload(
    workload: PlannedWorkload, root: Path, base: Checkout
) -> PlannedWorkload | None:
    """Return a workload of the head, which lies below `root`, as the base's own suite has it.

    One that its suite lacks is launched as the head says, by the base's file of the same name;
    `None` where there is none. A file that lies outside is the same on both sides.
    """
    for own in base.plan.workloads if base.plan else ():
        if own.id == workload.id:
            return own
    if not Path(workload.file).is_relative_to(root):
        return workload
    file = base.root / Path(workload.file).relative_to(root)
    return msgspec.structs.replace(workload, file=str(file)) if file.is_file() else None


def spell_in_base(task: Task, base: Checkout) -> Task:
    """Return a task as one that imports from the base, whosever workload file it is."""
    return msgspec.structs.replace(
        task,
        root=str(base.root),
        python_path=base.plan.python_path if base.plan else task.python_path,
        foreign_root=str(base.head_top),
        top=str(base.top),
        source_folders=base.source_folders,
    )
