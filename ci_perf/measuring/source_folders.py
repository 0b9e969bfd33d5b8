"""Where a checkout has its packages."""

import configparser
import contextlib
import functools
import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

from ci_perf.measuring.module_files import INSTALLED

# Where a project has its packages; those at the top of the root are imported from there.
_USUAL = ("", "src", "lib", "python")
_PROJECT_FILES = ("pyproject.toml", "setup.cfg", "setup.py")
_NAME_IN_SETUP = re.compile(r"\bname\s*=\s*[\"']([^\"']+)[\"']")
# What a project keeps of others.
_VENDORED = {
    *("_vendor", "extern", "external", "third-party", "third_party", "thirdparty", "vendor"),
    *("vendored", "vendors"),
}


class SourceFolders:
    """The folders of a checkout from which modules may be imported.

    ``root`` is the checkout, ``committed`` are all folders that hold committed modules, relative to
    it; packages are among them. Where they are not known, there is no repository.
    """

    def __init__(self, root: Path, committed: Sequence[str]) -> None:
        self._root = root
        self._committed = [Path(os.path.normpath(root / folder)) for folder in committed]
        self._names = functools.cache(self._listed)
        own = [
            folder
            for folder in committed
            if folder != "."
            and _VENDORED.isdisjoint(PurePath(folder).parts)
            and "__init__.py" not in self._names(folder)
        ]
        self._folders = dict.fromkeys([*_USUAL, *own])

    def hold(self, folder: Path) -> bool:
        """Whether a folder has committed modules; all below the root have, without a repository."""
        if self._committed:
            return folder in self._committed
        is_below = folder.is_relative_to(self._root)
        return is_below and INSTALLED.isdisjoint(folder.relative_to(self._root).parts)

    def has_top(self, name: str, folders: Iterable[str] = ()) -> bool:
        """Whether a source folder, or one of these, has a module or package of that name."""
        names = {name, f"{name}.py"}
        return any(not names.isdisjoint(self._names(each)) for each in folders or self._folders)

    def ranked(self, top: str, paths: Sequence[str], projects: Iterable[str] = ()) -> list[str]:
        """Return the folders that have files of a package, the one with most of them first.

        ``projects`` are folders of projects that were installed, whatever they are called.
        """
        of_projects = (str(PurePath(each, name)) for each in projects for name in _USUAL)
        folders = dict.fromkeys("" if each == "." else each for each in of_projects)
        counts = {
            folder: sum(self.file(folder, path) is not None for path in paths)
            for folder in folders | self._folders
            if not self._names(folder).isdisjoint({top, f"{top}.py"})
        }
        return sorted(filter(counts.get, counts), key=lambda folder: -counts[folder])

    def file(self, folder: str, path: str) -> Path | None:
        """Return a file of a source folder, if it is there."""
        file = Path(os.path.normpath(self._root / folder / path))
        return file if file.is_file() else None

    def files(self, folder: str, top: str) -> list[tuple[str, Path]]:
        """Return all files of a package, with their paths below its source folder."""
        place = self._root / folder
        files = sorted(file for file in (place / top).rglob("*") if file.is_file())
        return [(str(file.relative_to(place)), Path(os.path.normpath(file))) for file in files]

    def copies(self, name: str) -> list[Path]:
        """Return the files of that name that lie where committed modules are."""
        return [folder / name for folder in self._committed if (folder / name).is_file()]

    def has_project(self, folder: str) -> bool:
        """Whether it is the source folder of a project."""
        place = self._root / folder
        places = [place, place.parent] if place.name in _USUAL else [place]
        return folder in _USUAL or any(
            (each / name).is_file() for each in places for name in _PROJECT_FILES
        )

    def is_alike(self, paths: Sequence[str], folders: Sequence[str]) -> bool:
        """Whether a package of which nobody knows the origin is that of these folders.

        The name may be a chance: more than half of the modules are needed. A single module is one
        of the checkout's only in the source folder of a project.
        """
        if not any("/" in path for path in paths):
            return any(map(self.has_project, folders))
        held = [path for path in paths if any(self.file(each, path) for each in folders)]
        return 2 * len(held) > len(paths)

    def is_named(self, folder: str, package: str) -> bool:
        """Whether the project to which a source folder belongs has the name of a package."""
        place = Path(os.path.normpath(self._root / folder))
        for each in (place, *place.parents):
            names = [_normal(name) for name in _project_names(each)]
            if names or each == self._root:
                return _normal(package) in names
        return False

    def _listed(self, folder: str) -> frozenset[str]:
        try:
            return frozenset(each.name for each in (self._root / folder).iterdir())
        except OSError:
            return frozenset()


def _project_names(folder: Path) -> list[str]:
    """Return what a project calls itself; what setup.py computes nobody knows."""
    names: list[object] = []
    with contextlib.suppress(OSError, ValueError):
        document = tomllib.loads((folder / "pyproject.toml").read_text())
        tool = document.get("tool")
        tables = [document.get("project"), tool.get("poetry") if isinstance(tool, dict) else None]
        names += [table.get("name") for table in tables if isinstance(table, dict)]
    with contextlib.suppress(OSError, ValueError, configparser.Error):
        parser = configparser.ConfigParser(interpolation=None)
        parser.read_string((folder / "setup.cfg").read_text())
        names.append(parser.get("metadata", "name"))
    with contextlib.suppress(OSError, ValueError):
        names += _NAME_IN_SETUP.findall((folder / "setup.py").read_text())
    return [name for name in names if isinstance(name, str)]


def _normal(name: str) -> str:
    """Spell the name of a package as PEP 503 does."""
    return re.sub(r"[-_.]+", "-", name).lower()
