"""Where a checkout has its packages."""

import contextlib
import functools
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath

# Where a project has its packages; those at the top of the root are imported from there.
_USUAL = ("", "src", "lib", "python")
_PROJECT_FILES = ("pyproject.toml", "setup.cfg", "setup.py")


class SourceFolders:
    """The folders of a checkout from which modules may be imported.

    ``root`` is the checkout; ``committed`` are folders below it that hold packages or modules.
    """

    def __init__(self, root: Path, committed: Sequence[str]) -> None:
        self._root = root
        self._committed = committed
        self._names = functools.cache(self._listed)

    def folders(self, projects: Iterable[str] = ()) -> tuple[str, ...]:
        """Return all of them; ``projects`` are folders of projects that were installed."""
        of_projects = (str(PurePath(each, name)) for each in projects for name in _USUAL)
        every = (*of_projects, *_USUAL, *self._committed)
        return tuple(dict.fromkeys("" if folder == "." else folder for folder in every))

    def find(self, top: str, paths: Sequence[str], folders: Sequence[str]) -> str | None:
        """Return the folder that has most of the files of a package; `None` if it has too few.

        One file is enough in the source folder of a project. In any other, the name may be a
        chance: more than half of them are needed there, and none will do for a single module.
        """
        counts = {
            folder: sum((self._root / folder / path).is_file() for path in paths)
            for folder in folders
            if not self._names(folder).isdisjoint({top, f"{top}.py"})
        }
        best = max(counts, key=lambda folder: counts[folder], default=None)
        if best is None or not counts[best]:
            return None
        is_package = any("/" in path for path in paths)
        is_same = is_package and 2 * counts[best] > len(paths)
        return best if is_same or self._is_of_project(best) else None

    def is_named(self, folder: str, package: str) -> bool:
        """Whether the project in a source folder has the name of a package."""
        return any(
            _normal(name) == _normal(package)
            for place in self._projects(folder)
            for name in _names(place / "pyproject.toml")
        )

    def _is_of_project(self, folder: str) -> bool:
        return folder in _USUAL or any(
            (place / name).is_file() for place in self._projects(folder) for name in _PROJECT_FILES
        )

    def _projects(self, folder: str) -> list[Path]:
        place = self._root / folder
        return [place, place.parent] if place.name in _USUAL and folder else [place]

    def _listed(self, folder: str) -> frozenset[str]:
        try:
            return frozenset(each.name for each in (self._root / folder).iterdir())
        except OSError:
            return frozenset()


def _names(pyproject: Path) -> list[str]:
    """Return what a project calls itself."""
    with contextlib.suppress(OSError, ValueError):
        document = tomllib.loads(pyproject.read_text())
        tool = document.get("tool")
        tables = [document.get("project"), tool.get("poetry") if isinstance(tool, dict) else None]
        names = [table.get("name") for table in tables if isinstance(table, dict)]
        return [name for name in names if isinstance(name, str)]
    return []


def _normal(name: str) -> str:
    """Spell the name of a package as PEP 503 does."""
    return re.sub(r"[-_.]+", "-", name).lower()
