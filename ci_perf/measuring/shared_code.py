"""Find code that should have come from the checkout, and has come from a copy elsewhere.

All launches of an environment import such a copy, installed or not: base and head would be the
same, or neither would be its commit.
"""

import importlib.machinery
import re
import resource
import sys
import sysconfig
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from ci_perf.measuring import module_files
from ci_perf.measuring.installed_packages import LocalPackage, local_packages, owners
from ci_perf.measuring.module_files import INSTALLED, OURS, real_path
from ci_perf.measuring.source_folders import SourceFolders
from ci_perf.model.task import Task

# Builds write what they find of the version into such a file.
_GENERATED = re.compile(r"_*(about|build_info|git_version|version|version_info)_*\.py")
_COMPILED = (".pyc", ".dll", *importlib.machinery.EXTENSION_SUFFIXES)
_TRANSLATED = (".py", ".pyx")  # into a module of C


@dataclass(frozen=True, slots=True)
class SharedFile:
    """A module that is imported, or another file of its package, from beyond the checkouts.

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

    def is_build_of_others(self) -> bool:
        """Whether no checkout has it, and it was built for the other side or elsewhere."""
        is_built = self.source is None and not self.is_of_other_side
        return is_built and not self.is_own and not self._says_version

    @property
    def _says_version(self) -> bool:
        return _GENERATED.fullmatch(self.path.name) is not None

    def is_another(self) -> bool:
        """Whether it is not what the checkout has; what only a build writes does not count."""
        if self._says_version:
            return False
        if self.source is None:
            return self.is_of_other_side
        return not _are_equal(self.path, self.source)


def refusal(todo: Task) -> str:
    """Say which copies are not what the checkout of a task has; empty where there is none."""
    shared = shared_files(todo)
    others = [each for each in shared if each.is_another()]
    if others:
        source, folder = others[0].source, others[0].source_folder
        root = real_path(todo.root)
        expected = str(source).removeprefix(f"{root}/") if source else "only what is in"
        place = f'`python_path = ["{folder}"]`' if folder else "`python_path`"
        return (
            f"expected {expected} {'of ' if source else ''}{todo.root}, found a copy of other "
            f"code: {in_words(others)}. Name its source folder in suite.toml ({place}), or install "
            "each side with `pip install --upgrade --target` in `setup`"
        )
    built = [each for each in shared if each.is_build_of_others()]
    if built and todo.native_source:
        return (
            f"expected modules that were built from {todo.root}, found some that both sides share: "
            f"{in_words(built)}; {todo.native_source} differs between the sides. Build each side "
            "in `setup` of suite.toml (`python -m pip install --upgrade --target .deps .`), and "
            "name that folder in `python_path`"
        )
    return ""


def in_words(files: Sequence[SharedFile]) -> str:
    """Name the first of some files."""
    return module_files.in_words([(each.name, each.path) for each in files])


def shared_files(todo: Task) -> list[SharedFile]:
    """Return what is used of packages of this repository that lie beyond both checkouts.

    Of an imported package all files count that the checkout has, too: a module may have gone
    from `sys.modules`. No module is imported to find out: what only one side of a pair imports
    would show in its memory.
    """
    search = _Search(todo)
    copies = [search.copy(package) for package in search.packages()]
    # Of a package that is ours for one of its names the others are, too.
    ours = {copy.local for copy in copies if copy.local and copy.is_ours}
    return [
        file for copy in copies if copy.is_ours or copy.local in ours for file in search.files(copy)
    ]


@dataclass(frozen=True, slots=True)
class _Package:
    """What lies in ``folder`` under one top-level name: modules by their paths below the folder."""

    folder: Path
    top: str
    modules: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Copy:
    """A package, and the folders of the own checkout that have it: most of it in the first one."""

    package: _Package
    local: LocalPackage | None
    source_folders: Sequence[str]
    is_ours: bool


class _Search:
    """Looks for copies of what the checkout of a task has."""

    def __init__(self, todo: Task) -> None:
        self._todo = todo
        self._roots = [Path(real_path(each)) for each in (todo.root, todo.foreign_root) if each]
        self._own, *self._others = (
            SourceFolders(root, todo.source_folders) for root in self._roots
        )
        # Programs put there what they like.
        anything: list[object] = list(sys.path)
        entries = [entry for entry in anything if isinstance(entry, str)]
        self._installed = {Path(entry): list(local_packages(Path(entry))) for entry in entries}
        python = [real_path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
        self._theirs = [*map(Path, python), OURS]

    def packages(self) -> Iterator[_Package]:
        """Yield what was imported from elsewhere than Python itself, us and the checkouts.

        And what the programs that it has started may have imported.
        """
        imported: dict[tuple[str, str], dict[str, str]] = {}
        for name, file in module_files.files(sys.modules):
            if path := _path_of(name, file):
                key = (file.removesuffix(f"/{path}"), name.partition(".")[0])
                imported.setdefault(key, {})[path] = name
        workload_folder = str(Path(self._todo.workload.file).parent)
        for (folder, top), modules in imported.items():
            # Code of the other side is refused by itself.
            first, others = next(iter(modules)), self._roots[1:]
            if folder != workload_folder and not self._is_known(folder, first, others=others):
                yield _Package(Path(folder), top, modules)
        if _has_started_programs():
            yield from self._importable(imported)

    def copy(self, package: _Package) -> _Copy:
        """Find the source of a package.

        The checkout has it where pip has installed it from this machine, or under the name of the
        project, or where nobody has noted whose it is. A project may hold an index's package, too.
        """
        own, paths = self._own, list(package.modules)
        installed = self._installed.get(package.folder, [])
        local = next((each for each in installed if not each.files.isdisjoint(paths)), None)
        below = [
            str(local.origin.relative_to(root))
            for root in self._roots
            if local and local.origin.is_relative_to(root)
        ]
        ranked = own.ranked(package.top, paths, below)
        if local is not None:
            is_known = bool(below) or any(map(own.has_project, ranked))
            return _Copy(package, local, ranked, is_known or own.is_alike(paths, ranked))
        owned = owners(package.folder, paths) if ranked else {}
        named = {
            path
            for path, name in owned.items()
            if any(own.is_named(folder, name) for folder in ranked)
        }
        kept = {
            path: name for path, name in package.modules.items() if path not in owned.keys() - named
        }
        is_ours = bool(named) or (bool(kept) and own.is_alike(list(kept), ranked))
        return _Copy(_Package(package.folder, package.top, kept), None, ranked, is_ours)

    def files(self, copy: _Copy) -> Iterator[SharedFile]:
        """Yield the modules of a copy, and the other files that the checkout has of it."""
        package = copy.package
        for path, name in package.modules.items():
            yield self._module(copy, path, name)
        seen = set(package.modules)
        for folder in copy.source_folders:
            for path, source in self._own.files(folder, package.top):
                file = package.folder / path
                if path not in seen and not path.endswith(_COMPILED) and file.is_file():
                    seen.add(path)
                    yield SharedFile(path, file, source, folder)

    def _module(self, copy: _Copy, path: str, name: str) -> SharedFile:
        file = copy.package.folder / path
        is_own = copy.local is not None and copy.local.origin.is_relative_to(self._roots[0])
        for folder in copy.source_folders:
            if source := self._own.file(folder, path):
                return SharedFile(name, file, source, folder)
        folder = next(iter(copy.source_folders), "")
        if path.endswith(_COMPILED):
            is_theirs = not is_own and self._is_translated_from_another(copy, path)
            return SharedFile(name, file, None, folder, is_theirs, is_own)
        # A package may lie in a folder of another name, and a build may copy any file.
        if source := next(
            (each for each in self._own.copies(file.name) if _are_equal(each, file)), None
        ):
            return SharedFile(name, file, source)
        is_theirs = any(
            other.ranked(copy.package.top, [path])
            or any(_are_equal(each, file) for each in other.copies(file.name))
            for other in self._others
        )
        return SharedFile(name, file, None, folder, is_theirs, is_own)

    def _is_translated_from_another(self, copy: _Copy, path: str) -> bool:
        """Whether the sides differ in the Python source of a compiled module."""
        stem = str(PurePath(path).with_name(PurePath(path).name.partition(".")[0]))
        for folder in copy.source_folders:
            for suffix in _TRANSLATED:
                source = self._own.file(folder, stem + suffix)
                others = [other.file(folder, stem + suffix) for other in self._others]
                if source and any(other and not _are_equal(source, other) for other in others):
                    return True
        return False

    def _is_known(self, folder: str, path: str, *, others: Sequence[Path] = ()) -> bool:
        """Whether a folder of modules is Python's, ours, of `others` or the checkout's own."""
        file = real_path(f"{folder}/{path}")
        if _is_below(Path(file), [*self._theirs, *others]):
            return True
        places = (Path(real_path(folder)), Path(file.removesuffix(f"/{path}")))
        return any(map(self._own.hold, places))

    def _importable(self, imported: Collection[tuple[str, str]]) -> Iterator[_Package]:
        """Yield the packages that another Python would find where this one searches."""
        for entry, installed in self._installed.items():
            paths = [path for package in installed for path in package.files]
            if INSTALLED.isdisjoint(entry.parts) and not self._is_known(str(entry), ""):
                tops = (each.name for each in _listed(entry))
                paths += [
                    str(file.relative_to(entry))
                    for top in tops
                    if self._own.has_top(top) and not self._comes_first(top)
                    for file in (entry / top).rglob("*.py")
                ]
            by_top: dict[str, dict[str, str]] = {}
            for path in filter(_is_module, paths):
                by_top.setdefault(path.partition("/")[0].partition(".")[0], {})[path] = path
            for top, modules in by_top.items():
                if (str(entry), top) not in imported and not self._comes_first(top):
                    yield _Package(entry, top, modules)

    def _comes_first(self, top: str) -> bool:
        """Whether Python finds a name in the checkout before it looks elsewhere."""
        return self._own.has_top(top, ("", *self._todo.python_path))


def _has_started_programs() -> bool:
    """Whether this process has or had children: of what they import nobody tells."""
    if resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss:
        return True
    tasks = Path("/proc/self/task").glob("*/children")
    return any(_text(each) for each in tasks)


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # the thread has ended
        return ""


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _is_module(path: str) -> bool:
    is_python = path.endswith((".py", *importlib.machinery.EXTENSION_SUFFIXES))
    return is_python and not path.startswith(("..", "/")) and ".dist-info/" not in path


def _are_equal(first: Path, second: Path) -> bool:
    try:
        return first.read_bytes() == second.read_bytes()
    except OSError:  # in an archive
        return False


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
