"""Which modules are looked for in the repository; their sources, not their bytecode, are read."""

import contextlib
import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from ci_perf.measuring.recording.notes import Fact, Notes
from ci_perf.measuring.recording.places import Owner, Places, absolute

# Python itself looks for these when it starts.
_AT_START = ("sitecustomize", "usercustomize")
METADATA = ("*.dist-info", "*.egg", "*.egg-info")


class Searches:
    """The first finder of sys.meta_path: it finds nothing, and notes what is looked for where."""

    def __init__(self, notes: Notes, places: Places) -> None:
        self._notes = notes
        self._places = places
        self._folders: dict[str, str | None] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Note one search."""
        del target
        with contextlib.suppress(Exception):  # a path of the program's own making
            self.note(sys.path if path is None else path, (name.rpartition(".")[2],))
        return None

    def note(self, folders: Iterable[str], names: Iterable[str]) -> None:
        """Note that modules or metadata of these names are looked for in these folders."""
        names = tuple(names)
        for folder in folders:
            below = self._below(folder)
            if below is None:
                continue
            for name in names:
                # In a checkout of ci_perf this package lies below the root, and is no part of it.
                if self._places.classify(os.path.join(folder, name))[0] is not Owner.INSTALLED:
                    self._notes.add(Fact.SEARCH, below, name)

    def note_loaded(self) -> None:
        """Note what was imported before the recording began."""
        loaded = {name.partition(".")[0] for name in [*sys.modules]}
        self.note(sys.path, sorted({*loaded, *_AT_START}))
        for module in [*sys.modules.values()]:
            file = getattr(module, "__dict__", {}).get("__file__")
            if isinstance(file, str) and (name := self._places.in_repository(file)) is not None:
                self._notes.add(Fact.UNIT, name, _UNKNOWN)

    def _below(self, folder: object) -> str | None:
        if not isinstance(folder, str):  # whatever a program puts on its path
            return None
        if folder in self._folders and folder.startswith("/"):
            return self._folders[folder]
        path = absolute(folder or os.getcwd())
        owner, name = self._places.classify(path or "/")
        self._folders[folder] = below = name if owner is Owner.REPOSITORY else None
        return below


# No unit is called so: the whole file counts.
_UNKNOWN = "?"


def read_sources(places: Places) -> None:
    """Have the import system read each source of the repository, and no bytecode of it.

    A file of bytecode is taken for its source by the time and the length of it.
    """
    machinery: Any = importlib.import_module("importlib._bootstrap_external")
    name_cache = machinery.cache_from_source

    def cache_from_source(path: Any, *more: Any, **options: Any) -> Any:  # noqa: ANN401
        if places.in_repository(os.path.abspath(os.fsdecode(path))) is not None:
            raise NotImplementedError  # the import system then reads the source, and writes nothing
        return name_cache(path, *more, **options)

    machinery.cache_from_source = cache_from_source
