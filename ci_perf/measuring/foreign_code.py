"""Refuse a launch that has imported code of the other side, or a copy that both sides share."""

import sys
from pathlib import Path

from ci_perf.measuring import module_files, shared_code
from ci_perf.measuring.module_files import INSTALLED, OURS, real_path
from ci_perf.model.task import Task


class ForeignCodeError(Exception):
    """The process has imported code of the other side, or a copy of it."""


def check(todo: Task) -> None:
    """Look at what a task has imported so far: it must be the code of its own side.

    Raises ForeignCodeError.
    """
    # A recording would take for the program's what we look at. It finds copies at its end.
    if not todo.record and (why := shared_code.refusal(todo)):
        raise ForeignCodeError(why)
    check_imports(todo.foreign_root, root=todo.root, file=todo.workload.file)


def check_imports(foreign_root: str, *, root: str, file: str) -> None:
    """Refuse code of the other side; without a `foreign_root` there is no other side.

    An editable install names one folder for every process of an environment: base and head would
    then run the same code, and nothing would ever differ.

    `root` is the side that is measured. The workload in `file` may be the other side's, and may
    import its neighbours. Raises ForeignCodeError.
    """
    if not foreign_root:
        return
    real_root = real_path(foreign_root)
    foreign = _Foreign(Path(real_root), Path(real_path(root)), Path(real_path(file)).parent)
    modules = [
        (name, Path(path))
        for name, path in module_files.imported(sys.modules)
        if path.startswith(real_root) and foreign.holds(Path(path))
    ]
    if modules:
        raise ForeignCodeError(_refusal(modules, foreign_root, root))


class _Foreign:
    """What belongs to the other side."""

    def __init__(self, foreign: Path, root: Path, workloads: Path) -> None:
        self._foreign = foreign
        self._workloads = workloads
        # Where one lies in the other, the inner one is the more precise.
        inside = [root, OURS, Path(real_path(sys.prefix)), Path(real_path(sys.base_prefix))]
        self._exempt = [
            folder for folder in inside if folder != foreign and folder.is_relative_to(foreign)
        ]

    def holds(self, path: Path) -> bool:
        """Whether a module in this file, or this folder, is code of the other side."""
        if not path.is_relative_to(self._foreign) or self._is_neighbour(path):
            return False
        if any(path.is_relative_to(folder) for folder in self._exempt):
            return False
        return not INSTALLED & set(path.relative_to(self._foreign).parts)

    def _is_neighbour(self, path: Path) -> bool:
        """Whether a module lies with the workload; at the top of a repository only beside it."""
        if self._foreign.is_relative_to(self._workloads):
            return path.parent == self._workloads
        return path.is_relative_to(self._workloads)


def _refusal(modules: list[tuple[str, Path]], foreign_root: str, root: str) -> str:
    return (
        f"expected imports from {root} alone, found code of the other side, {foreign_root}: "
        f"{module_files.in_words(modules)}; an editable install? Name the source folder in "
        "`python_path` of suite.toml; if it is there, the finder of the install comes first: "
        "install each side in `setup`"
    )
