"""Refuse a launch that has imported code of the other side, or a copy that both sides share."""

import contextlib
import functools
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
# Builds write what they find of the version into such a file.
_GENERATED = re.compile(r"_*(about|build_info|git_version|version|version_info)_*\.py")
_NO_NAMES = {"", ".", ".."}


class ForeignCodeError(Exception):
    """The process has imported code of the other side."""


@dataclass(frozen=True, slots=True)
class InstalledCopy:
    """An imported module that pip has installed from a folder or an archive of this machine.

    ``source`` is the file of the checkout that it should be a copy of; `None` where none is found.
    ``is_of_other_side``: the other side has such a file, or it was installed from there.
    """

    name: str
    path: Path
    source: Path | None
    is_of_other_side: bool = False

    def is_another(self) -> bool:
        """Whether it is not the code of the checkout; what only a build writes does not count."""
        if _GENERATED.fullmatch(self.path.name):
            return False
        if self.source is None:
            return self.is_of_other_side
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
        source = others[0].source or "the checkout has no such file, which"
        raise ForeignCodeError(
            f"expected the code of {root}, found an installed copy of other code: {copies}; "
            f"{source} differs. Name its source folder in `python_path` of suite.toml "
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

    Pip notes where a package comes from, if not from an index. One that comes from below either
    side is such a copy; so is one from elsewhere (an image was built there) whose file the checkout
    has in a source folder. No module is imported to find out: what only one side of a pair imports
    would show in its memory.
    """
    roots = [Path(real_path(each)) for each in (root, foreign_root) if each]
    folders = [folder for folder in map(Path, sys.path) if folder.name in INSTALLED]
    return [
        copy
        for folder in folders
        for package in _local_packages(folder)
        for copy in _copies(package, roots)
    ]


def _copies(package: "_LocalPackage", roots: list[Path]) -> Iterable[InstalledCopy]:
    """Yield what was imported of a package, if it is one of the repository; its own side first."""
    origin = package.origin
    below = [origin.relative_to(root) for root in roots if origin.is_relative_to(root)]
    for name, path in _files(sys.modules):
        file = path.removeprefix(f"{package.folder}/")
        if file not in package.files:
            continue
        source, *others = (_source(root, below, file) for root in roots)
        if below or source:
            is_of_other_side = any(others) or not origin.is_relative_to(roots[0])
            yield InstalledCopy(name, Path(path), source, is_of_other_side)


def _files(modules: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return modules with their files as Python found them, links not followed; not our own."""
    files = (
        (name, getattr(module, "__dict__", {}).get("__file__"))
        for name, module in sorted(modules.items())
        if name.partition(".")[0] != OURS.name
    )
    return [(name, file) for name, file in files if isinstance(file, str)]


def _source(root: Path, below: list[Path], file: str) -> Path | None:
    """Return the file of a checkout that is installed as `file`, if it is where such files are."""
    places = [Path(root, origin, name) for origin in (*below, Path()) for name in _SOURCE_FOLDERS]
    return next((place / file for place in places if (place / file).is_file()), None)


@dataclass(frozen=True, slots=True)
class _LocalPackage:
    """A package in ``folder`` that pip has installed from ``origin``, a folder or an archive here.

    ``files`` are below ``folder``, as its RECORD names them.
    """

    folder: Path
    origin: Path
    files: frozenset[str]


def _local_packages(folder: Path) -> Iterable[_LocalPackage]:
    for note in folder.glob("*.dist-info/direct_url.json"):
        with contextlib.suppress(OSError, ValueError, msgspec.MsgspecError):
            noted = msgspec.json.decode(note.read_bytes(), type=_Origin)
            if noted.dir_info.editable or not noted.url.startswith("file://"):
                continue
            quoted = noted.url.removeprefix("file://").encode()
            origin = Path(real_path(os.fsdecode(_QUOTED.sub(_unquoted, quoted))))
            lines = note.with_name("RECORD").read_text().splitlines()
            yield _LocalPackage(folder, origin, frozenset(line.partition(",")[0] for line in lines))


def is_editable(direct_url: str) -> bool:
    """Whether a package was installed editable, by the text of its direct_url.json."""
    try:
        return msgspec.json.decode(direct_url, type=_Origin).dir_info.editable
    except msgspec.MsgspecError:
        return False


def _unquoted(byte: re.Match[bytes]) -> bytes:
    return bytes.fromhex(byte[1].decode())


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
