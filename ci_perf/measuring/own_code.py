"""Refuse a launch that runs code of this repository from elsewhere than from its own checkout.

An editable install leads every process of an environment to one checkout, and an installed copy is
the same on both sides: base and head would run the same code, and nothing would ever differ.
"""

import functools
import importlib.machinery
import json
import os
import re
import resource
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from os.path import exists, isfile
from pathlib import Path
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


# The process that last found its imports to be right, and these: one forked of it inherits both.
_CHECKED: list[object] = []


def check(todo: Task) -> None:
    """Look at what a task has imported so far: it must be the code of its own side.

    Raises ForeignCodeError.
    """
    if _list_imports() == _CHECKED[1:] and os.getpid() != _CHECKED[0]:
        return
    # What to do stands before the list of modules: a report cuts a long reason off.
    if other := _find_code_of_other_side(todo):
        raise ForeignCodeError(
            f"expected imports from {todo.root} alone, found code of the other side, "
            f"{todo.foreign_root}: an editable install? Name the source folder in `python_path` of "
            "suite.toml; if it is there, the finder of the install comes first: install each side "
            f"in `setup`. Imported: {module_files.in_words(other)}"
        )
    copies = find_copies(todo)
    others = [each for each in copies if each.is_another]
    if others:
        folder, source = others[0].source_folder, others[0].source
        place = f'`python_path = ["{folder}"]`' if folder else "`python_path`"
        raise ForeignCodeError(
            f"expected {f'{source} of' if source else 'only what is in'} {todo.root}, found a copy "
            f"of other code: name its source folder in suite.toml ({place}), or install each side "
            f"with `pip install --upgrade --target` in `setup`. Copied: {name_copies(others)}"
        )
    builds = [each for each in copies if each.is_build]
    if builds and todo.native_source:
        raise ForeignCodeError(
            f"expected modules that were built from {todo.root}, found some that both sides share, "
            f"and {todo.native_source} differs: build each side in `setup` of suite.toml (`python "
            "-m pip install --upgrade --target .deps .`), and name that folder in `python_path`. "
            f"Shared: {name_copies(builds)}"
        )
    # Now, not before: to look, sysconfig has imported a module itself.
    _CHECKED[:] = [os.getpid(), *_list_imports()]


def _list_imports() -> list[object]:
    return [*sys.modules, *sys.path, _has_started_programs()]


@dataclass(frozen=True, slots=True)
class CopiedFile:
    """A file of a package of this repository that lies elsewhere; ``source_folder`` should be used.

    ``source`` is the file of the checkout, "" where it has none. ``is_another`` says that the
    checkout has other code, ``is_build`` that a build for others has made it.
    """

    name: str
    path: Path
    source_folder: str
    source: str
    is_another: bool
    is_build: bool


def name_copies(copies: list[CopiedFile]) -> str:
    """Name the first of some copies."""
    return module_files.in_words([(each.name, each.path) for each in copies])


def find_copies(todo: Task) -> list[CopiedFile]:
    """Return what is used of packages of this repository that lie beyond its checkout.

    All files of such a package count: a module may have gone from `sys.modules`. Nothing is
    imported to find out: what only one side of a pair imports would show in its memory.
    """
    own, *others = (Path(real_path(each)) for each in (todo.root, todo.foreign_root) if each)
    committed = [each for each in todo.source_folders if not (own / each / "__init__.py").exists()]
    sources = [each for each in committed if _VENDORED.isdisjoint(Path(each).parts)]
    folders = [*dict.fromkeys([*_USUAL, *sources])]
    projects = [own / each / name for each in folders for name in _PROJECT_FILES]
    texts = [file.read_text(errors="replace") for file in projects if file.is_file()]
    names = {_normalize(name) for text in texts for name in _NAME.findall(text)}
    # Python's files, ours, and those of a checkout or beside the workload are no copies.
    python = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib"))
    homes = [*map(Path, map(real_path, python)), OURS, own]
    neighbours = {
        Path(todo.workload.file).parent,
        *(Path(real_path(str(own / f))) for f in committed),
    }
    copies: list[CopiedFile] = []
    for entry, modules in _find_modules(todo, own, folders).items():
        left = dict(modules)
        tops = {path.partition("/")[0] for path in left}
        near = [f for f in folders if any(exists(f"{own}/{f}/{top}") for top in tops)]
        is_known = any(_find_file(own, path, near) for path in left)
        for name, origin, listed in _read_distributions(entry, from_anywhere=is_known):
            taken = {path: left.pop(path) for path in [*left] if path in listed}
            if origin or name in names:  # projects vendor packages of others
                copies += _compare(entry, taken, folders, own, others, origin)
        if not is_known:  # the checkout has no module of these packages
            continue
        # What a program that was started may import of the other side nobody else sees.
        unnoted = {
            path: name
            for path, name in (left if entry not in neighbours else {}).items()
            if not _is_below(entry / path, homes if path == name else [*homes, *others])
        }
        for top in sorted({path.partition("/")[0] for path in unnoted}):
            taken = {path: unnoted[path] for path in unnoted if path.partition("/")[0] == top}
            copies += _compare(entry, taken, folders, own, others, None)
    return copies


def _compare(
    entry: Path,
    modules: dict[str, str],
    folders: list[str],
    own: Path,
    others: list[Path],
    origin: Path | None,
) -> Iterator[CopiedFile]:
    """Yield the files of a package, each compared with that of the checkout, if it is a copy.

    That of a side is one. Of any other, the checkout must have more than half of the modules; a
    single module it must have where projects have theirs.
    """
    for side in (own, *others):
        if origin and origin.is_relative_to(side):
            below = str(origin.relative_to(side))
            folders = [*folders, *(f"{below}/{each}" for each in _USUAL)]
    counts = {each: sum(isfile(f"{own}/{each}/{path}") for path in modules) for each in folders}
    best = max(folders, key=lambda each: counts[each])
    sources = [path for path in modules if not path.endswith(_COMPILED)]
    is_single = not any("/" in path for path in sources)
    held = [path for path in sources if _find_file(own, path, folders)]
    has_most = 2 * len(held) > len(sources) and not (is_single and best not in _USUAL)
    is_own, is_of_other = _is_below(origin, [own]), _is_below(origin, others)
    if not modules or not (has_most or is_own or is_of_other):
        return
    # The package of the other side, of which this one has nothing: no file that a build has made.
    is_unknown = is_of_other and not held
    files = dict(modules)
    tops = {path.partition("/")[0] for path in modules}
    for folder in (own / each for each in folders if counts[each]):
        for source in (each for top in tops for each in (folder / top).rglob("*")):
            path = str(source.relative_to(folder))
            if source.is_file() and (entry / path).is_file() and not path.endswith(_COMPILED):
                files.setdefault(path, path)
    for path, name in sorted(files.items()):
        if path.startswith("__editable__") or _GENERATED.fullmatch(path.rpartition("/")[2]):
            continue
        is_build = path.endswith(_COMPILED)
        source_path = f"{path.partition('.')[0]}.py" if is_build else path
        here = _find_file(own, source_path, [best, *folders])
        there = [file for side in others if (file := _find_file(side, source_path, folders))]
        if is_build:
            is_another = bool(here) and not all(_are_equal(here, each) for each in there)
        else:
            is_another = not _are_equal(here, entry / path) if here else bool(there) or is_unknown
        yield CopiedFile(
            name,
            entry / path,
            best,
            source=str(here.relative_to(own)) if here and not is_build else "",
            is_another=is_another and not (is_build and is_own),
            is_build=is_build and not is_own,
        )


def _find_modules(todo: Task, own: Path, folders: list[str]) -> dict[Path, dict[str, str]]:
    """Return what is imported, and what programs that were started may have imported."""
    modules: dict[Path, dict[str, str]] = {}
    make_path = functools.cache(Path)  # of thousands of modules, in some hundred folders
    for name, file in module_files.files(sys.modules):
        for stem in (name.replace(".", "/"), f"{name.replace('.', '/')}/__init__"):
            above, _, suffix = file.rpartition(f"/{stem}.")
            if above and "/" not in suffix:  # else the file has another name than its module
                modules.setdefault(make_path(above), {})[f"{stem}.{suffix}"] = name
    anything: list[object] = [*sys.path] if _has_started_programs() else []
    firsts = [own / each for each in ("", *todo.python_path)]
    for entry in (Path(each) for each in anything if isinstance(each, str)):
        local = _read_distributions(entry, from_anywhere=False)
        paths = {path for _, _, listed in local for path in listed if path.endswith(".py")}
        if INSTALLED.isdisjoint(entry.parts):
            tops = {each.name for folder in folders for each in (own / folder).glob("*")}
            copies = (each for top in tops for each in (entry / top).rglob("*.py"))
            paths |= {str(each.relative_to(entry)) for each in copies}
        for path in paths:
            if not any((first / path.partition("/")[0]).exists() for first in firsts):
                modules.setdefault(entry, {}).setdefault(path, path)
    return modules


def _read_distributions(
    folder: Path, *, from_anywhere: bool
) -> Iterator[tuple[str, Path | None, set[str]]]:
    """Yield name, origin and files of what pip has installed in a folder.

    The origin is a folder of this machine; unless `from_anywhere`, nothing else is of interest.
    """
    for metadata in folder.glob("*.dist-info"):
        with suppress(OSError, ValueError, AttributeError):
            note = metadata / "direct_url.json"
            url = str(json.loads(note.read_text()).get("url")) if note.exists() else ""
            origin = url.removeprefix("file://") if url.startswith("file://") else None
            if origin or from_anywhere:
                lines = (metadata / "RECORD").read_text().splitlines()
                files = {line.partition(",")[0] for line in lines}
                place = Path(real_path(unquote(origin))) if origin else None
                yield _normalize(metadata.name.partition("-")[0]), place, files


def _find_file(side: Path, path: str, folders: list[str]) -> Path | None:
    # Thousands of modules are looked for: to make a Path takes longer than to look.
    return next((side / f / path for f in folders if isfile(f"{side}/{f}/{path}")), None)


def _is_below(file: Path | None, folders: list[Path]) -> bool:
    """Whether a file lies in a folder, and not in packages that are installed there."""
    real = real_path(str(file or "/"))
    return any(
        f"{real}/".startswith(top) and INSTALLED.isdisjoint(real[len(top) :].split("/"))
        for top in (os.path.join(each, "") for each in folders)
    )


def _find_code_of_other_side(todo: Task) -> list[tuple[str, Path]]:
    """Return the modules that are imported from the other side, with their files.

    Its workload file may be launched here, with what lies beside it.
    """
    if not todo.foreign_root:
        return []
    foreign = Path(real_path(todo.foreign_root))
    workloads = Path(real_path(todo.workload.file)).parent
    # Where one lies in the other, the inner one is the more precise.
    places = map(Path, map(real_path, (todo.root, str(OURS), sys.prefix, sys.base_prefix)))
    exempt = [each for each in (*places, workloads) if each != foreign and foreign in each.parents]
    return [
        (name, Path(file))
        for name, file in module_files.list_imported(sys.modules)
        if file.startswith(f"{foreign}/")  # of thousands of modules hardly one is
        and _is_below(Path(file), [foreign])
        and not any(map(Path(file).is_relative_to, exempt))
        and Path(file).parent != workloads
    ]


def _has_started_programs() -> bool:
    """Whether this process has or had children: of what they import nobody tells."""
    if resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss:
        return True
    with suppress(OSError):  # a thread has ended
        return any(file.read_text() for file in Path("/proc/self/task").glob("*/children"))
    return False


def _are_equal(first: Path | None, second: Path) -> bool:
    try:
        return first is not None and first.read_bytes() == second.read_bytes()
    except OSError:  # in an archive
        return False


def _normalize(name: str) -> str:
    """Spell the name of a package as PEP 503 does."""
    return re.sub(r"[-_.]+", "-", name).lower()
