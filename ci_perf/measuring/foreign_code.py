"""Refuse a launch that has imported code of the other side, or a copy that both sides share."""

import contextlib
import functools
import itertools
import os
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ci_perf.model.task import Task

# Modules of the other side that a message names.
_SHOWN = 3
# The tool measures both sides, also where its own repository is under measure.
OURS = Path(os.path.realpath(__file__)).parents[1]
INSTALLED = {"dist-packages", "site-packages"}
# Where a project has its packages; those at the top of the root are imported from there.
_SOURCE_FOLDERS = ("", "src", "lib", "python")
# A byte in the address of a file.
_QUOTED = re.compile(rb"%([0-9A-Fa-f]{2})")
# Builds write the version that they find into such a file.
_GENERATED = re.compile(r"version")
_NO_NAMES = {"", ".", ".."}


class ForeignCodeError(Exception):
    """The process has imported code of the other side."""


@dataclass(frozen=True, slots=True)
class InstalledCopy:
    """An imported module of an installed package, and the file of the checkout it is a copy of."""

    name: str
    path: Path
    source: Path

    def is_another(self) -> bool:
        """Whether it is not the code of the checkout; what only a build writes does not count."""
        are_files = self.source.is_file() and self.path.is_file()
        if not are_files or _GENERATED.search(self.source.name):
            return False
        return self.path.read_bytes() != self.source.read_bytes()


def check(todo: Task) -> None:
    """Look at what a task has imported so far: it must be the code of its own side.

    Raises ForeignCodeError.
    """
    # A recording would take for the program's what we look at. It finds copies at its end.
    if not todo.record:
        check_copies(todo.root, todo.foreign_root)
    check_imports(todo.foreign_root, root=todo.root, file=todo.workload.file)


def check_copies(root: str, foreign_root: str = "") -> None:
    """Refuse installed copies of other code than that in `root`. Raises ForeignCodeError.

    All launches of an environment import them: base and head would be the same, or neither would
    be its commit. See `installed_copies`.
    """
    others = [copy for copy in installed_copies(root, foreign_root) if copy.is_another()]
    if others:
        copies = _named([(copy.name, copy.path) for copy in others])
        raise ForeignCodeError(
            f"expected the code of {root}, found an installed copy of other code: {copies}; "
            f"{others[0].source} differs. Name its source folder in `python_path` of suite.toml "
            '(`python_path = ["src"]`), or install each side with `--target` in `setup`'
        )


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
        for name, path in _imported(sys.modules)
        if path.startswith(real_root) and foreign.holds(Path(path))
    ]
    if modules:
        raise ForeignCodeError(_refusal(modules, foreign_root, root))


def installed_copies(root: str, foreign_root: str = "") -> list[InstalledCopy]:
    """Return the modules that were imported from installed copies of packages of this repository.

    A package is one if the checkout has it in a source folder, or in one that pip has installed
    from, on either side. No module is imported to find out: what only one side of a pair imports
    would show in its memory.
    """
    roots = [Path(real_path(each)) for each in (root, foreign_root) if each]
    folders = [Path(folder) for folder in sys.path if os.path.basename(folder) in INSTALLED]  # noqa: PTH119
    built = {
        origin.relative_to(each)
        for origin in itertools.chain.from_iterable(map(_origins, folders))
        for each in roots
        if origin.is_relative_to(each)
    }
    sources = [
        Path(roots[0], origin, name) for origin in {Path(), *built} for name in _SOURCE_FOLDERS
    ]
    packages = {name: source for source in sources for name in _packages(source)}
    packages.pop(OURS.name, None)
    modules = {
        name: module for name, module in sys.modules.items() if name.partition(".")[0] in packages
    }
    real_folders = [Path(real_path(str(folder))) for folder in folders]
    return [
        InstalledCopy(
            name, Path(path), packages[name.partition(".")[0]] / Path(path).relative_to(folder)
        )
        for name, path in _imported(modules)
        for folder in real_folders
        if Path(path).is_relative_to(folder)
    ]


def _origins(installed: Path) -> Iterable[Path]:
    """Yield the folders that pip has copied packages of this folder from."""
    for note in installed.glob("*.dist-info/direct_url.json"):
        with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):
            origin = msgspec.json.decode(note.read_bytes(), type=_Origin)
            if not origin.dir_info.editable:
                quoted = origin.url.removeprefix("file://").encode()
                yield Path(real_path(os.fsdecode(_QUOTED.sub(_unquoted, quoted))))


def _unquoted(byte: re.Match[bytes]) -> bytes:
    return bytes.fromhex(byte[1].decode())


def _packages(folder: Path) -> Iterable[str]:
    """Yield the names of what can be imported from a folder: packages, and modules of their own."""
    with contextlib.suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.endswith(".py"):
                yield entry.name.removesuffix(".py")
            elif os.path.isfile(os.path.join(entry.path, "__init__.py")):  # noqa: PTH113, PTH118
                yield entry.name


class _Origin(msgspec.Struct):
    """What PEP 610 says of where a package was installed from, as far as it is used here."""

    class Folder(msgspec.Struct):
        editable: bool = False

    url: str
    dir_info: Folder = msgspec.field(default_factory=Folder)


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


def _imported(modules: Mapping[str, object]) -> Iterable[tuple[str, str]]:
    """Yield every module with its file, a namespace with its first folder."""
    for name, module in sorted(modules.items()):
        # Not getattr: a lazy module would import the attribute that is read.
        said = getattr(module, "__dict__", {})
        file = said.get("__file__")
        if isinstance(file, str):
            yield name, real_path(file)
        elif file is None and "__path__" in said:
            yield from _namespace(name, said["__path__"])


def _namespace(name: str, folders: object) -> Iterable[tuple[str, str]]:
    """Yield the first folder of a namespace: it is searched before the others."""
    try:
        first = next(iter(folders), None)  # type: ignore[call-overload]  # whatever stands there
    except Exception:  # noqa: BLE001  a module of the user's own making
        return
    if isinstance(first, str):
        yield name, real_path(first)


def real_path(path: str) -> str:
    """Return `os.path.realpath(path)`, without looking at a folder that was looked at before."""
    folder, name = os.path.split(path)
    if name in _NO_NAMES or not folder.startswith(os.sep):
        return os.path.realpath(path)
    # A Path takes longer to make than to ask.
    real = os.path.join(_real_folder(folder), name)  # noqa: PTH118
    return os.path.realpath(path) if os.path.islink(real) else real  # noqa: PTH114


# A process imports thousands of modules, from some hundred folders.
_real_folder = functools.cache(os.path.realpath)


def _named(modules: list[tuple[str, Path]]) -> str:
    shown = ", ".join(f"{name} ({path})" for name, path in modules[:_SHOWN])
    return shown + (f" and {len(modules) - _SHOWN} more" if len(modules) > _SHOWN else "")


def _refusal(modules: list[tuple[str, Path]], foreign_root: str, root: str) -> str:
    return (
        f"expected imports from {root} alone, found code of the other side, {foreign_root}: "
        f"{_named(modules)}; an editable install? Name the source folder in `python_path` of "
        "suite.toml, or install each side in `setup`"
    )
