"""Refuse a process that has imported code of the side that it is compared with.

An editable install names one folder for every process of an environment: base and head would then
run the same code, and nothing would ever differ.
"""

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

_SHOWN = 3

# The tool measures both sides, also where its own repository is under measure.
OURS = Path(os.path.realpath(__file__)).parents[1]
_INSTALLED = {"dist-packages", "site-packages"}


class ForeignCodeError(Exception):
    """The process has imported code of the other side."""


def check(foreign_root: str, *, root: str, file: str) -> None:
    """Look at what has been imported so far; without a `foreign_root` there is no other side.

    `root` is the side that is measured. The workload in `file` may be the other side's, and may
    import its neighbours. Raises ForeignCodeError.
    """
    if not foreign_root:
        return
    foreign = _Foreign(_real(foreign_root), _real(root), _real(file).parent)
    modules = [(name, path) for name, path in _imported(sys.modules) if foreign.holds(path)]
    if modules:
        raise ForeignCodeError(_message(modules, foreign_root, root))


class _Foreign:
    """What belongs to the other side."""

    def __init__(self, foreign: Path, root: Path, workloads: Path) -> None:
        self._foreign = foreign
        self._workloads = workloads
        # Where one lies in the other, the inner one is the more precise.
        inside = [root, OURS, _real(sys.prefix), _real(sys.base_prefix)]
        self._exempt = [
            folder for folder in inside if folder != foreign and folder.is_relative_to(foreign)
        ]

    def holds(self, path: Path) -> bool:
        """Whether a module in this file, or this folder, is code of the other side."""
        if not path.is_relative_to(self._foreign) or self._is_neighbour(path):
            return False
        if any(path.is_relative_to(folder) for folder in self._exempt):
            return False
        return not _INSTALLED & set(path.relative_to(self._foreign).parts)

    def _is_neighbour(self, path: Path) -> bool:
        """Whether a module lies with the workload; at the top of a repository only beside it."""
        if self._foreign.is_relative_to(self._workloads):
            return path.parent == self._workloads
        return path.is_relative_to(self._workloads)


def _imported(modules: Mapping[str, object]) -> Iterable[tuple[str, Path]]:
    """Yield every module with its file, a namespace with its first folder."""
    for name, module in sorted(modules.items()):
        # Not getattr: a lazy module would import the attribute that is read.
        said = getattr(module, "__dict__", {})
        file = said.get("__file__")
        if isinstance(file, str):
            yield name, _real(file)
        elif file is None and "__path__" in said:
            yield from _namespace(name, said["__path__"])


def _namespace(name: str, folders: object) -> Iterable[tuple[str, Path]]:
    """Yield the first folder of a namespace: it is searched before the others."""
    try:
        first = next(iter(folders), None)  # type: ignore[call-overload]  # whatever stands there
    except Exception:  # noqa: BLE001  a module of the user's own making
        return
    if isinstance(first, str):
        yield name, _real(first)


def _real(path: str) -> Path:
    return Path(os.path.realpath(path))


def _message(modules: list[tuple[str, Path]], foreign_root: str, root: str) -> str:
    shown = ", ".join(f"{name} ({path})" for name, path in modules[:_SHOWN])
    more = f" and {len(modules) - _SHOWN} more" if len(modules) > _SHOWN else ""
    return (
        f"expected imports from {root} alone, found code of the other side, {foreign_root}: "
        f"{shown}{more}; an editable install? Name the source folder in `python_path` of "
        "suite.toml, or install each side in `setup`"
    )
