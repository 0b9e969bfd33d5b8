"""Note what a launch does with paths: what it reads, lists, looks for in vain, or makes."""

import os
import stat
import sys
import sysconfig
from enum import Enum
from pathlib import Path

from ci_perf.features.same_program import contents
from ci_perf.features.same_program.notes import NoteKind, Notes
from ci_perf.measuring.module_files import INSTALLED, OURS
from ci_perf.model.task import Task

# The kernel's own files: the facts of the machine stand for them.
_KERNEL = ("/dev", "/proc", "/sys")
_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")  # a run begins with empty ones
_MOST_LINKS = 40
_LISTED = {NoteKind.LISTED, NoteKind.OPENED_FOLDER}


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
        paths = [sys.prefix, sys.base_prefix, sys.exec_prefix, str(OURS), str(folder), *_KERNEL]
        paths += [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
        paths += filter(None, [todo.turns, *map(os.environ.get, _CACHES)])
        both = {*map(os.path.abspath, paths), *map(os.path.realpath, paths)}
        self._installed = tuple(f"{path.rstrip('/')}/" for path in both)
        # Where one lies in the other, the inner one is the more precise.
        self.inside = tuple(path for path in self._installed if path.startswith(f"{self.root}/"))
        self._roots = tuple({f"{self.root}/", f"{os.path.abspath(todo.root)}/"})
        self._sides = [os.path.realpath(each) for each in (todo.top, todo.foreign_root) if each]
        self._workloads = os.path.dirname(os.path.realpath(todo.workload.file))
        self._resolved: dict[str, tuple[str, list[str]]] = {}
        self._rewritten: dict[str, str] = {}
        # Paths as the program spells them of which all is noted: its steps ask for them again.
        self.settled: set[str] = set()
        self._is_beyond = False

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
            names = real[len(self.root) :].split("/")
            return Owner.GIT if ".git" in names else Owner.REPOSITORY
        is_installed = path.startswith(self._installed) or not INSTALLED.isdisjoint(path.split("/"))
        return Owner.INSTALLED if is_installed else Owner.OUTSIDE

    def resolve(self, path: str) -> str:
        """Return a path without links, and note the links of the repository on it."""
        if path not in self._resolved:
            self._resolved[path] = _follow_links(path)
        real, links = self._resolved[path]
        for link in links:
            if self.find_owner(link) is Owner.REPOSITORY:
                self.notes.add(NoteKind.LINK, link)
        return real

    def find_name(self, real: str) -> str | None:
        """Return the path below the root, "" for the root itself; `None` for a path beyond it."""
        if real == self.root:
            return ""
        below = real.removeprefix(f"{self.root}/")
        return None if below == real else below

    def note(self, path: str, kind: NoteKind) -> None:
        """Note that something is read, imported, listed or asked for, or that it is not there."""
        real = self.resolve(path)
        owner = self.find_owner(real)
        if path.startswith("/") and self.notes.has(NoteKind.READ, real):
            self.settled.add(path)
        if owner is Owner.INSTALLED or self.notes.has(kind, real) or self._is_made(real):
            return
        state = contents.find_state(real)
        if owner is Owner.GIT:
            if kind is not NoteKind.EXISTS and state is not None:
                what = f"it reads {self.find_name(real)}, which every commit changes"
                self.notes.add(NoteKind.OBSTACLE, what)
        elif owner is Owner.OUTSIDE and (why := self._find_checkout(real)):
            if not self._is_beyond:
                self.notes.add(NoteKind.OBSTACLE, f"{real} {why}")
            self._is_beyond = True
        elif state is None:
            self._note_missing(real, owner, kind)
        else:
            self._note_there(real, kind, state, owner)

    def _note_there(self, real: str, kind: NoteKind, state: os.stat_result, owner: Owner) -> None:
        if kind is NoteKind.EXISTS or stat.S_ISDIR(state.st_mode) != (kind in _LISTED):
            if owner is Owner.REPOSITORY:
                self.notes.add(NoteKind.EXISTS, real)
        elif kind in _LISTED:
            self.notes.add(kind, real, contents.digest_folder(real))
        elif self._rewritten.get(real, now := contents.describe_state(state)) != now:
            self.notes.add(NoteKind.MADE, real)
        else:
            self.notes.add(kind, real, now)

    def note_below_root(self, path: str) -> None:
        """Note that size and time of something are asked for: of a folder, they show its names."""
        real = self.resolve(path)
        if self.find_owner(real) is Owner.REPOSITORY:
            self.note(path, NoteKind.LISTED if os.path.isdir(real) else NoteKind.READ)
        else:
            self.note(path, NoteKind.EXISTS)

    def note_imports(self, path: str) -> None:
        """Note that the import system has listed a folder: its searches say what for."""
        real = self.resolve(path)
        if self.find_owner(real) is Owner.REPOSITORY:
            self.notes.add(NoteKind.IMPORTED_FROM, real)

    def note_search(self, folder: str, name: str) -> None:
        """Note that a module, or metadata, of this name is looked for in a folder."""
        real = self.resolve(folder)
        if self.find_owner(real) is not Owner.REPOSITORY:
            return
        self.notes.add(NoteKind.SEARCHED, f"{real}/{name}")
        if os.path.isdir(f"{real}/{name}"):
            self.note_search(f"{folder}/{name}", "__init__")

    def note_write(self, path: str, *, empties: bool) -> None:
        """Note that a file is opened to be written: what is there already may be an input."""
        real = self.resolve(path)
        owner = self.find_owner(real)
        if owner in {Owner.INSTALLED, Owner.GIT} or self._is_made(real):
            return
        state = contents.find_state(real)
        if state is None:
            if not empties:  # else what was there before makes no difference
                self._note_missing(real, owner, NoteKind.EXISTS)
            self.notes.add(NoteKind.MADE, real)
        elif empties and not (self.notes.has(NoteKind.READ, real) or real in self._rewritten):
            # The call may fail: whoever reads the file afterwards sees whether it has changed.
            self._rewritten[real] = contents.describe_state(state)
            self.notes.add(NoteKind.REWRITTEN, real)
        elif not empties:
            self.note(path, NoteKind.READ)

    def note_new_name(self, source: str, target: str, *, moves: bool) -> None:
        """Note that a file is moved or linked: to read it by another name shows nothing of it."""
        folder, name = os.path.split(source)
        real = os.path.join(self.resolve(folder or "/"), name)
        is_folder = os.path.isdir(real)
        if not self._is_made(real):
            is_ours = self.find_owner(self.resolve(source)) is Owner.REPOSITORY
            if os.path.lexists(real) and is_ours and (moves or is_folder):
                what = f"it gives {self.find_name(real)} of the repository another name"
                self.notes.add(NoteKind.OBSTACLE, what)
            self.note(source, NoteKind.READ)
        # A folder takes the place of nothing but an empty one.
        self.note_write(target, empties=moves and not is_folder)
        self._resolved.clear()

    def _is_made(self, real: str) -> bool:
        """Whether the program has made it, or a folder above it."""
        while len(real) > 1:
            if self.notes.has(NoteKind.MADE, real):
                return True
            real = os.path.dirname(real)
        return False

    def _find_checkout(self, real: str) -> str:
        """Say that a path beyond the root belongs to a checkout, where it changes with commits."""
        is_workload = f"{real}/".startswith(f"{self._workloads}/")
        if is_workload or f"{self.root}/".startswith(f"{real}/"):
            return ""
        for side in self._sides:
            below = real.removeprefix(f"{side}/")
            if below == real or ".git" in below.split("/"):
                continue
            if side == self._sides[0]:
                return (
                    "belongs to the repository, and lies outside of the folder in which ci-perf "
                    "runs; run it at the top of the repository"
                )
            if os.path.lexists(f"{self._sides[0]}/{below}"):
                return (
                    "is a file of the head, and the base would use it, too: by an editable "
                    "install, or by a path that names one checkout"
                )
        return ""

    def _note_missing(self, real: str, owner: Owner, kind: NoteKind) -> None:
        """Note the first part of a path that is not there."""
        if owner is Owner.REPOSITORY:
            while not os.path.lexists(os.path.dirname(real)):
                real = os.path.dirname(real)
            self.notes.add(NoteKind.MISSING, real)
        elif kind is not NoteKind.EXISTS:
            self.notes.add(NoteKind.MISSING, real)


def _follow_links(path: str) -> tuple[str, list[str]]:
    """Return a path without links, "." and "..", and the links that were on it."""
    left = [*reversed(path.split("/"))]
    real = ""
    links: list[str] = []
    while left:
        step = left.pop()
        if step in {"", "."}:
            continue
        if step == "..":
            real = os.path.dirname(real)
            continue
        try:
            target = os.readlink(f"{real}/{step}")
        except (OSError, ValueError):
            real = f"{real}/{step}"
            continue
        links.append(f"{real}/{step}")
        if len(links) > _MOST_LINKS:
            return path, links
        real = "" if target.startswith("/") else real
        left += reversed(target.split("/"))
    return real or "/", links
