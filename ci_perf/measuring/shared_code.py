"""Find code that should have come from the checkout, and has come from a copy elsewhere.

All launches of an environment import such a copy, installed or not: base and head would be the
same, or neither would be its commit.
"""

import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ci_perf.measuring import module_files
from ci_perf.measuring.installed_packages import LocalPackage, local_packages, package_of_index
from ci_perf.measuring.module_files import INSTALLED, OURS, real_path
from ci_perf.measuring.source_folders import SourceFolders
from ci_perf.model.task import Task

# Builds write what they find of the version into such a file.
_GENERATED = re.compile(r"_*(about|build_info|git_version|version|version_info)_*\.py")
_CODE = {".dll", ".py", ".pyc", ".pyd", ".pyi", ".so"}


@dataclass(frozen=True, slots=True)
class SharedFile:
    """An imported module, or a data file beside it, of a copy that lies beyond the checkouts.

    ``source`` is the file of the checkout that it should be a copy of, in ``source_folder``.
    `None` for what only the other side has (``is_of_other_side``), and for what neither has: a
    build has made it, of the own checkout if ``is_own``.
    """

    name: str
    path: Path
    source: Path | None
    source_folder: str = ""
    is_of_other_side: bool = False
    is_own: bool = False

    @property
    def is_build_of_others(self) -> bool:
        """Whether no checkout has it, and it was built for the other side or elsewhere."""
        return self.source is None and not self.is_of_other_side and not self.is_own

    def is_another(self) -> bool:
        """Whether it is not what the checkout has; what only a build writes does not count."""
        if _GENERATED.fullmatch(self.path.name):
            return False
        if self.source is None:
            return self.is_of_other_side
        if not self.path.is_file():  # in an archive
            return True
        return self.path.read_bytes() != self.source.read_bytes()


def refusal(todo: Task) -> str:
    """Say which copies are not what the checkout of a task has; empty where there is none."""
    shared = shared_files(todo)
    others = [each for each in shared if each.is_another()]
    if others:
        source, folder = others[0].source, others[0].source_folder
        expected = source.relative_to(real_path(todo.root)) if source else "no such module"
        return (
            f"expected {expected} of {todo.root}, found a copy of other code: {in_words(others)}. "
            f'Name its source folder (`python_path = ["{folder or "src"}"]` in suite.toml), or '
            "install each side with `--target` in `setup`"
        )
    built = [each for each in shared if each.is_build_of_others]
    if built and todo.native_source:
        return (
            f"expected modules that were built from {todo.root}, found some that both sides share: "
            f"{in_words(built)}; {todo.native_source} differs between the sides. Build each side "
            "in `setup` of suite.toml (`python -m pip install --target .deps .`), and name that "
            "folder in `python_path`"
        )
    return ""


def in_words(files: Sequence[SharedFile]) -> str:
    """Name the first of some files."""
    return module_files.in_words([(each.name, each.path) for each in files])


def shared_files(todo: Task) -> list[SharedFile]:
    """Return what was imported of packages of this repository that lie beyond both checkouts.

    No module is imported to find out: what only one side of a pair imports would show in its
    memory.
    """
    roots = [Path(real_path(each)) for each in (todo.root, todo.foreign_root) if each]
    # Programs put there what they like.
    anything: list[object] = list(sys.path)
    entries = {Path(entry) for entry in anything if isinstance(entry, str)}
    installed = {entry: list(local_packages(entry)) for entry in entries}
    sources = SourceFolders(roots[0], todo.source_folders)
    copies = [
        _copy(package, installed.get(package.folder, []), sources, roots)
        for package in _imported_packages(todo, roots)
    ]
    # Of a package that is ours for one of its names the others are, too.
    ours = {copy.local for copy in copies if copy.local and copy.is_ours}
    return [
        file for copy in copies if copy.is_ours or copy.local in ours for file in copy.files(roots)
    ]


@dataclass(frozen=True, slots=True)
class _Package:
    """What was imported from ``folder`` under one top-level name: modules with their files below.

    ``modules`` are names with paths that are relative to ``folder``.
    """

    folder: Path
    top: str
    modules: tuple[tuple[str, str], ...]

    @property
    def paths(self) -> list[str]:
        return [path for _, path in self.modules]


@dataclass(frozen=True, slots=True)
class _Copy:
    """A package beyond the checkouts, and the folders of a checkout that may be its source."""

    package: _Package
    local: LocalPackage | None
    folders: tuple[str, ...]
    source_folder: str | None
    is_installed_from_checkout: bool

    @property
    def is_ours(self) -> bool:
        return self.source_folder is not None or self.is_installed_from_checkout

    def files(self, roots: Sequence[Path]) -> Iterator[SharedFile]:
        """Yield its modules, and the data files that the checkout has, too."""
        root, *others = roots
        folder = self.source_folder
        for name, path in self.package.modules:
            copy = self.package.folder / path
            if folder is not None and (root / folder / path).is_file():
                yield SharedFile(name, copy, root / folder / path, folder)
            else:
                theirs = (other / each / path for other in others for each in self.folders)
                is_theirs = any(file.is_file() for file in theirs)
                is_own = self.local is not None and self.local.origin.is_relative_to(root)
                yield SharedFile(name, copy, None, folder or "", is_theirs, is_own)
        if folder is not None:
            yield from self._data(root / folder, folder)

    def _data(self, sources: Path, folder: str) -> Iterator[SharedFile]:
        for source in sorted((sources / self.package.top).rglob("*")):
            path = source.relative_to(sources)
            copy = self.package.folder / path
            if source.suffix not in _CODE and source.is_file() and copy.is_file():
                yield SharedFile(str(path), copy, source, folder)


def _copy(
    package: _Package,
    installed: Sequence[LocalPackage],
    sources: SourceFolders,
    roots: Sequence[Path],
) -> _Copy:
    """Find the source of a package.

    The checkout has it where pip has installed it from this machine, or under the name of the
    project, or where nobody has noted whose it is. A project may hold an index's package, too.
    """
    local = next((each for each in installed if not each.files.isdisjoint(package.paths)), None)
    below = [
        str(local.origin.relative_to(root))
        for root in roots
        if local and local.origin.is_relative_to(root)
    ]
    folders = sources.folders(below)
    source_folder = sources.find(package.top, package.paths, folders)
    if source_folder is not None and local is None:
        index_name = package_of_index(package.folder, package.paths[0])
        if index_name and not sources.is_named(source_folder, index_name):
            source_folder = None
    return _Copy(package, local, folders, source_folder, bool(below))


def _imported_packages(todo: Task, roots: Sequence[Path]) -> Iterable[_Package]:
    """Yield what was imported from elsewhere than Python itself, us and the checkouts."""
    of_workload = str(Path(todo.workload.file).parent)
    own = [*roots, OURS]
    own += [Path(real_path(sysconfig.get_path(name))) for name in ("stdlib", "platstdlib")]
    modules: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name, file in module_files.files(sys.modules):
        path = _path_of(name, file)
        if path:
            key = (file.removesuffix(f"/{path}"), name.partition(".")[0])
            modules.setdefault(key, []).append((name, path))
    for (folder, top), named in modules.items():
        first = Path(real_path(f"{folder}/{named[0][1]}"))
        if folder != of_workload and not _is_below(first, own):
            yield _Package(Path(folder), top, tuple(named))


def _path_of(name: str, file: str) -> str:
    """Return the end of a module's file that its name spells; empty where it spells another one."""
    file_name = file.rpartition("/")[2]
    parts = name.split(".")
    if file_name.partition(".")[0] != "__init__":
        *parts, last = parts
        if file_name.partition(".")[0] != last:
            return ""
    path = "/".join((*parts, file_name))
    return path if file.startswith("/") and file.endswith(f"/{path}") else ""


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    """Whether a file lies in one of the folders, and in no environment that is in there."""
    return any(
        path.is_relative_to(folder) and INSTALLED.isdisjoint(path.relative_to(folder).parts)
        for folder in folders
    )
