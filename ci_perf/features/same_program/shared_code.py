"""Refuse a launch that runs code of this repository from elsewhere than from its own checkout.

An editable install leads every process of an environment to one checkout, and an installed copy is
the same on both sides: base and head would run the same code, and nothing would ever differ.
"""

import functools
import importlib.machinery
import json
import re
import resource
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from urllib.parse import unquote

from ci_perf.measuring import module_files
from ci_perf.measuring.module_files import INSTALLED, OURS, real_path
from ci_perf.model.task import Task

# Where a project has its packages, besides the folders in which git has modules.
_USUAL = ("", "src", "lib", "python")
# What a project keeps of others.
_VENDORED = {
    *("_vendor", "extern", "external", "third-party", "third_party", "thirdparty", "vendor"),
    *("vendored", "vendors"),
}
_PROJECT_FILES = ("pyproject.toml", "setup.cfg", "setup.py")
_NAME = re.compile(r"""\bname\s*=\s*["']?([\w.-]+)""")
_COMPILED = (".pyc", *importlib.machinery.EXTENSION_SUFFIXES)
# Builds write what they find of the version into such a file.
_GENERATED = re.compile(r"_*(about|build_info|git_version|version|version_info)_*\.py")


class ForeignCodeError(Exception):
    """The process has imported code of the other side, or a copy of it."""


# What was imported when it was last found to be right: a forked process inherits it.
_CHECKED: list[object] = []


def check(todo: Task) -> None:
    """Look at what a task has imported so far: it must be the code of its own side.

    Raises ForeignCodeError.
    """
    imported = [*sys.modules, *sys.path, _has_started_programs()]
    if imported == _CHECKED:
        return
    if other := _find_code_of_other_side(todo):
        raise ForeignCodeError(
            f"expected imports from {todo.root} alone, found code of the other side, "
            f"{todo.foreign_root}: {module_files.in_words(other)}; an editable install? Name the "
            "source folder in `python_path` of suite.toml; if it is there, the finder of the "
            "install comes first: install each side in `setup`"
        )
    copies = find_copies(todo)
    others = [each for each in copies if each.is_another]
    if others:
        folder, source = others[0].source_folder, others[0].source
        place = f'`python_path = ["{folder}"]`' if folder else "`python_path`"
        raise ForeignCodeError(
            f"expected {f'{source} of' if source else 'only what is in'} {todo.root}, found a copy "
            f"of other code: {name_copies(others)}. Name its source folder in suite.toml ({place}),"
            " or install each side with `pip install --upgrade --target` in `setup`"
        )
    builds = [each for each in copies if each.is_build]
    if builds and todo.native_source:
        raise ForeignCodeError(
            f"expected modules that were built from {todo.root}, found some that both sides share: "
            f"{name_copies(builds)}; {todo.native_source} differs between the sides. Build each "
            "side in `setup` of suite.toml (`python -m pip install --upgrade --target .deps .`), "
            "and name that folder in `python_path`"
        )
    _CHECKED[:] = imported


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A file of a package of this repository that lies elsewhere; ``source_folder`` should be used.

    ``source`` is the file of the checkout, "" where it has none. ``is_another`` says that the
    checkout has other code, ``is_build`` that a build for others has made it.
    """

    name: str
    path: Path
    source_folder: str
    source: str = ""
    is_another: bool = False
    is_build: bool = False


def name_copies(copies: list[CopiedFile]) -> str:
    """Name the first of some copies."""
    return module_files.in_words([(each.name, each.path) for each in copies])


def find_copies(todo: Task) -> list[CopiedFile]:
    """Return what is used of packages of this repository that lie beyond its checkout.

    All files of such a package count: a module may have gone from `sys.modules`. Nothing is
    imported to find out: what only one side of a pair imports would show in its memory.
    """
    search = _Search(todo)
    return [each for package in search.find_packages() for each in search.compare(package)]


@dataclass(frozen=True, slots=True)
class _Package:
    """Files below a folder, with the names of their modules; pip has them from ``origin``."""

    folder: Path
    files: dict[str, str]
    origin: Path | None = None

    @property
    def tops(self) -> set[str]:
        """The first parts of the paths."""
        return {path.partition("/")[0] for path in self.files}


class _Search:
    """Looks for copies of what the checkout of a task has."""

    def __init__(self, todo: Task) -> None:
        self._todo = todo
        sides = (todo.root, todo.foreign_root)
        self._own, *self._others = (Path(real_path(each)) for each in sides if each)
        committed = [
            each
            for each in todo.source_folders
            if each != "."
            and _VENDORED.isdisjoint(PurePath(each).parts)
            and not (self._own / each / "__init__.py").exists()
        ]
        self._folders = [*dict.fromkeys([*_USUAL, *committed])]
        anything: list[object] = [*sys.path]  # programs put there what they like
        entries = [Path(entry) for entry in anything if isinstance(entry, str)]
        self._installed = {folder: list(_read_local_packages(folder)) for folder in entries}

    def find_packages(self) -> Iterator[_Package]:
        """Yield the packages that are copies of what the checkout has, or has had."""
        for folder, modules in self._find_modules().items():
            left = dict(modules)
            for origin, listed in self._installed.get(folder, ()):
                taken = {path: left.pop(path) for path in [*left] if path in listed}
                package = _Package(folder, taken, origin)
                is_from_here = any(map(origin.is_relative_to, (self._own, *self._others)))
                if taken and (is_from_here or self._has_most(package)):
                    yield package
            for top in sorted(_Package(folder, left).tops):
                taken = {path: name for path, name in left.items() if path.split("/")[0] == top}
                package = _Package(folder, taken)
                if self._is_known(package) or not self._find_source_folders(package):
                    continue
                owners, names = _find_owners(package), self._read_project_names(package)
                kept = {
                    path: name
                    for path, name in taken.items()
                    if path not in owners or _normalize(owners[path]) in names
                }
                if kept and self._has_most(_Package(folder, kept)):
                    yield _Package(folder, kept)

    def compare(self, package: _Package) -> Iterator[CopiedFile]:
        """Yield the files of a copy, each compared with that of the checkout."""
        folders = self._find_source_folders(package)
        files = dict(package.files)
        for place in (self._own / folder for folder in folders):
            for source in (each for top in package.tops for each in (place / top).rglob("*")):
                path = str(source.relative_to(place))
                is_there = source.is_file() and (package.folder / path).is_file()
                if is_there and not path.endswith(_COMPILED):
                    files.setdefault(path, path)
        for path, name in sorted(files.items()):
            file = package.folder / path
            if path.startswith("__editable__") or _GENERATED.fullmatch(file.name):
                continue
            own = self._find_file(self._own, path, folders)
            is_own = package.origin is not None and package.origin.is_relative_to(self._own)
            if path.endswith(_COMPILED):
                is_another = not (own or is_own) and self._is_translated_from_another(path)
            elif own:
                is_another = not _are_equal(file, own)
            else:
                is_another = not self._has_equal(self._own, file) and any(
                    self._find_file(side, path) or self._has_equal(side, file)
                    for side in self._others
                )
            yield CopiedFile(
                name,
                file,
                next(iter(folders), ""),
                source=str(own.relative_to(self._own)) if own else "",
                is_another=is_another,
                is_build=path.endswith(_COMPILED) and not is_own,
            )

    def _find_modules(self) -> dict[Path, dict[str, str]]:
        """Return what is imported, and what programs that were started may have imported."""
        modules: dict[Path, dict[str, str]] = {}
        for name, file in module_files.files(sys.modules):
            if path := _find_path(name, file):
                modules.setdefault(Path(file.removesuffix(f"/{path}")), {})[path] = name
        for folder, packages in self._installed.items() if _has_started_programs() else ():
            paths = {path for _, files in packages for path in files if path.endswith(".py")}
            if INSTALLED.isdisjoint(folder.parts):
                tops = {each.name for name in self._folders for each in _list(self._own / name)}
                files = (each for top in tops for each in (folder / top).rglob("*.py"))
                paths |= {str(each.relative_to(folder)) for each in files}
            for path in paths:
                firsts = (self._own / each for each in ("", *self._todo.python_path))
                if not any((first / path.partition("/")[0]).exists() for first in firsts):
                    modules.setdefault(folder, {}).setdefault(path, path)
        return modules

    def _is_known(self, package: _Package) -> bool:
        """Whether modules are Python's, ours, a checkout's or lie beside the workload.

        What a program that was started may import of the other side is not known elsewhere.
        """
        file = Path(real_path(str(package.folder / next(iter(package.files)))))
        is_imported = all(name != path for path, name in package.files.items())
        homes = [*_find_python(), OURS, self._own]
        homes += self._others if is_imported else ()
        committed = [Path(real_path(str(self._own / each))) for each in self._todo.source_folders]
        is_at_home = any(
            file.is_relative_to(home) and INSTALLED.isdisjoint(file.relative_to(home).parts)
            for home in homes
        )
        is_neighbour = package.folder == Path(self._todo.workload.file).parent
        return is_at_home or is_neighbour or Path(real_path(str(package.folder))) in committed

    def _has_most(self, package: _Package) -> bool:
        """Whether the checkout has more than half; a single module, where projects have theirs."""
        folders = self._find_source_folders(package)
        paths = [path for path in package.files if not path.endswith(_COMPILED)]
        held = [path for path in paths if self._find_file(self._own, path, folders)]
        is_single = not any("/" in path for path in paths)
        return 2 * len(held) > len(paths) and not (is_single and folders[0] not in _USUAL)

    def _find_source_folders(self, package: _Package) -> list[str]:
        """Return the folders of the checkout that have a package, the one with most of it first."""
        folders = [*self._folders]
        for side in (self._own, *self._others):
            if package.origin and package.origin.is_relative_to(side):
                below = package.origin.relative_to(side)
                folders += [str(below / each) for each in _USUAL]
        names = dict.fromkeys("" if folder == "." else folder for folder in folders)
        counts = {
            folder: sum((self._own / folder / path).is_file() for path in package.files)
            for folder in names
        }
        return sorted(filter(counts.get, counts), key=lambda folder: -counts[folder])

    def _find_file(self, side: Path, path: str, folders: list[str] | None = None) -> Path | None:
        files = (side / folder / path for folder in folders or self._folders)
        return next((file for file in files if file.is_file()), None)

    def _has_equal(self, side: Path, file: Path) -> bool:
        """Whether a side has such a file in whatever folder: a build may copy any."""
        folders = ("", *self._todo.source_folders)
        return any(_are_equal(side / folder / file.name, file) for folder in folders)

    def _is_translated_from_another(self, path: str) -> bool:
        """Whether the sides differ in the Python source of a compiled module."""
        source = str(PurePath(path).with_name(f"{PurePath(path).name.partition('.')[0]}.py"))
        own = self._find_file(self._own, source)
        others = [self._find_file(side, source) for side in self._others]
        return own is not None and any(each and not _are_equal(own, each) for each in others)

    def _read_project_names(self, package: _Package) -> set[str]:
        """Return what the project of a package may call itself."""
        folders = [self._own / each for each in ("", *self._find_source_folders(package))]
        files = [each / name for each in folders for name in _PROJECT_FILES]
        texts = (file.read_text(errors="replace") for file in files if file.is_file())
        return {_normalize(name) for text in texts for name in _NAME.findall(text)}


@functools.cache
def _find_python() -> list[Path]:
    """Return the folders of Python's own modules."""
    return [Path(real_path(sysconfig.get_path(name))) for name in ("stdlib", "platstdlib")]


def _read_local_packages(folder: Path) -> Iterator[tuple[Path, set[str]]]:
    """Yield what pip has installed in a folder from this machine: from where, and the files."""
    for note in folder.glob("*.dist-info/direct_url.json"):
        with suppress(OSError, ValueError, AttributeError):
            url = str(json.loads(note.read_text()).get("url"))
            if url.startswith("file://"):
                lines = (note.parent / "RECORD").read_text().splitlines()
                origin = Path(real_path(unquote(url.removeprefix("file://"))))
                yield origin, {line.partition(",")[0] for line in lines}


def _find_owners(package: _Package) -> dict[str, str]:
    """Return the names of the installed packages that have some of these files, by file."""
    owners: dict[str, str] = {}
    for metadata in package.folder.glob("*.dist-info"):
        with suppress(OSError, ValueError):
            text = f"\n{(metadata / 'RECORD').read_text()}"
            name = metadata.name.partition("-")[0]
            owners |= {file: name for file in package.files if f"\n{file}," in text}
    return owners


def _find_code_of_other_side(todo: Task) -> list[tuple[str, Path]]:
    """Return the modules that are imported from the other side, with their files.

    Its workload file may be launched here, with what lies beside it.
    """
    if not todo.foreign_root:
        return []
    foreign, root = Path(real_path(todo.foreign_root)), Path(real_path(todo.root))
    workloads = Path(real_path(todo.workload.file)).parent
    # Where one lies in the other, the inner one is the more precise.
    inside = [root, OURS, Path(real_path(sys.prefix)), Path(real_path(sys.base_prefix))]
    exempt = [each for each in inside if each != foreign and each.is_relative_to(foreign)]
    if not foreign.is_relative_to(workloads):
        exempt.append(workloads)
    return [
        (name, Path(file))
        for name, file in module_files.imported(sys.modules)
        if Path(file).is_relative_to(foreign)
        and not any(map(Path(file).is_relative_to, exempt))
        and Path(file).parent != workloads
        and INSTALLED.isdisjoint(Path(file).relative_to(foreign).parts)
    ]


def _has_started_programs() -> bool:
    """Whether this process has or had children: of what they import nobody tells."""
    if resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss:
        return True
    with suppress(OSError):  # a thread has ended
        return any(file.read_text() for file in Path("/proc/self/task").glob("*/children"))
    return False


def _find_path(name: str, file: str) -> str:
    """Return the end of a module's file that its name spells; empty where it spells another one."""
    parts, last = name.split("."), PurePath(file).name
    if last.partition(".")[0] != "__init__":
        *parts, stem = parts
        if last.partition(".")[0] != stem:
            return ""
    path = "/".join((*parts, last))
    return path if file.startswith("/") and file.endswith(f"/{path}") else ""


def _list(folder: Path) -> list[Path]:
    return [*folder.iterdir()] if folder.is_dir() else []


def _are_equal(first: Path, second: Path) -> bool:
    try:
        return first.read_bytes() == second.read_bytes()
    except OSError:  # in an archive
        return False


def _normalize(name: str) -> str:
    """Spell the name of a package as PEP 503 does."""
    return re.sub(r"[-_.]+", "-", name).lower()
