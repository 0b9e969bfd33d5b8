"""Note what a launch does with paths: the first use of a path counts."""

import os
import stat
import sys
from enum import Enum
from pathlib import Path

from ci_perf.measuring.module_files import INSTALLED, OURS
from ci_perf.measuring.recording.notes import NoteKind, Notes
from ci_perf.model.task import Task
from ci_perf.system import contents

# The kernel's own files: the facts of the machine stand for them.
_KERNEL = ("/dev", "/proc", "/sys")
_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")  # a run begins with empty ones


class Owner(Enum):
    """Whose path it is."""

    REPOSITORY = "repository"
    GIT = "git"
    INSTALLED = "installed"
    OUTSIDE = "outside"


class UsedPaths:
    """Notes what a launch does with paths. Links are followed, and noted themselves."""

    def __init__(self, todo: Task, folder: Path, notes: Notes) -> None:
        self.root = os.path.realpath(todo.root)
        self.notes = notes
        paths = [sys.prefix, sys.base_prefix, str(OURS), str(folder), *_KERNEL]
        paths += filter(None, [todo.turns, *map(os.environ.get, _CACHES)])
        both = {*map(os.path.abspath, paths), *map(os.path.realpath, paths)}
        self._installed = tuple(f"{path.rstrip('/')}/" for path in both)
        # Where one lies in the other, the inner one is the more precise.
        self.inside = tuple(path for path in self._installed if path.startswith(f"{self.root}/"))
        self._roots = tuple({f"{self.root}/", f"{os.path.abspath(todo.root)}/"})
        sides = (todo.top, todo.foreign_root)
        self._sides = tuple(f"{os.path.realpath(each)}/" for each in sides if each)
        self._workloads = f"{os.path.dirname(os.path.realpath(todo.workload.file))}/"
        # Paths as the program spells them of which all is noted: its steps ask for them again.
        self.settled: set[str] = set()
        self._resolved = {"": "/"}  # folders

    def is_installed(self, path: object) -> bool:
        """Whether a path is that of an installed package at first sight: most are."""
        if type(path) is not str or "/.." in path:
            return False
        known = self.inside if path.startswith(self._roots) else self._installed
        return path.startswith(known)

    def find_owner(self, real: str) -> Owner:
        """Tell whose path it is; links are resolved already."""
        path = f"{real}/"
        if path.startswith(self.inside):
            return Owner.INSTALLED
        if path.startswith(f"{self.root}/"):
            return Owner.GIT if "/.git/" in path[len(self.root) :] else Owner.REPOSITORY
        is_installed = path.startswith(self._installed) or not INSTALLED.isdisjoint(path.split("/"))
        return Owner.INSTALLED if is_installed else Owner.OUTSIDE

    def find_name(self, real: str) -> str | None:
        """Return the path below the root, "" for the root itself; `None` for a path beyond it."""
        if real == self.root:
            return ""
        below = real.removeprefix(f"{self.root}/")
        return None if below == real else below

    def resolve(self, path: str) -> str:
        """Return a path without links, and note the links of the repository on it."""
        folder, _, step = path.rpartition("/")
        if folder not in self._resolved:
            self._resolved[folder] = self.resolve(folder)
        above = self._resolved[folder]
        if step in {"", "."}:
            return above
        if step == "..":
            return os.path.dirname(above)
        real = os.path.join(above, step)
        if not os.path.islink(real):
            return real
        target = os.readlink(real)
        if self.find_owner(real) is Owner.REPOSITORY:
            self.notes.add(NoteKind.LINK, real, target)
        return self.resolve(os.path.join(above, target))

    def forget_names(self) -> None:
        """Look anew at what is known of paths: one of them leads to another file from now on."""
        self.settled.clear()
        self._resolved = {"": "/"}

    def note(self, path: str, kind: NoteKind) -> None:
        """Note that a path is used. What was not there when it was first used is no input."""
        real = self.resolve(path)
        owner = self.find_owner(real)
        # The import system asks for it before it writes there, and no tree has it.
        is_cache = kind in {NoteKind.ASKED, NoteKind.EXISTS} and real.endswith("/__pycache__")
        if kind is NoteKind.ASKED:
            kind = NoteKind.READ if owner is Owner.REPOSITORY else NoteKind.EXISTS
        if path.startswith("/") and self.notes.has(NoteKind.READ, real):
            self.settled.add(path)
        above = [real]
        while above[-1] != "/":
            above.append(os.path.dirname(above[-1]))
        is_known = is_cache or owner is Owner.INSTALLED or self.notes.has(kind, real)
        if is_known or any(self.notes.has(NoteKind.MISSING, part) for part in above):
            return
        if owner is Owner.GIT:
            if kind is not NoteKind.EXISTS:
                what = f"it reads {self.find_name(real)}, which every commit changes"
                self.notes.add(NoteKind.OBSTACLE, what)
            return
        is_ours = owner is Owner.REPOSITORY
        if not is_ours and self._is_of_checkout(real):
            self.notes.add(
                NoteKind.OBSTACLE,
                f"{real} belongs to a checkout, and lies outside of the folder that is measured; "
                "run ci-perf at the top of the repository, and name no checkout by its path",
            )
        elif (state := contents.find_state(real)) is not None:
            self._note_there(real, kind, state, is_ours=is_ours)
        elif is_ours or kind is not NoteKind.EXISTS:
            first = [part for part in above if not os.path.lexists(part)][-1]
            self.notes.add(NoteKind.MISSING, first, "made" if kind is NoteKind.MADE else "")

    def _note_there(
        self, real: str, kind: NoteKind, state: os.stat_result, *, is_ours: bool
    ) -> None:
        if kind in {NoteKind.EXISTS, NoteKind.MADE}:
            if is_ours:
                self.notes.add(NoteKind.EXISTS, real)
        elif stat.S_ISDIR(state.st_mode):
            kind = kind if kind is NoteKind.OPENED_FOLDER else NoteKind.LISTED
            self.notes.add(kind, real, contents.digest_folder(real))
        else:
            kind = NoteKind.READ if kind is NoteKind.LISTED else kind
            self.notes.add(kind, real, contents.describe_state(state))

    def note_search(self, folder: str, name: str) -> None:
        """Note that a module, or metadata, of this name is looked for in a folder."""
        real = self.resolve(folder)
        if self.find_owner(real) is not Owner.REPOSITORY:
            return
        self.notes.add(NoteKind.SEARCHED, f"{real}/{name}")
        if os.path.isdir(f"{real}/{name}"):
            self.note_search(f"{folder}/{name}", "__init__")

    def _is_of_checkout(self, real: str) -> bool:
        """Whether a path beyond the root belongs to a checkout: it changes with commits."""
        path = f"{real}/"
        is_exempt = path.startswith(self._workloads) or f"{self.root}/".startswith(path)
        return path.startswith(self._sides) and not is_exempt
