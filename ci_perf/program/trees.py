"""The files of a commit or of a checkout, by their path below the root and by patterns."""

import fnmatch
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from ci_perf.errors import CiPerfError

# No source is larger; data files are compared by the name that git gives their content.
MAX_READ_BYTES = 8 * 2**20
# As many as Linux follows in one path.
_MAX_LINKS = 40
_MAX_ENTRIES = 200_000
# Git tracks neither; Python makes the second one when it imports.
_UNSEEN = {".git", "__pycache__"}
_ANY_FOLDERS = "**"
_WILD = frozenset("*?[")


class IncomparableError(CiPerfError):
    """What is at a path cannot be known; the message is a sentence that begins with the path."""


class EntryKind(Enum):
    """What is at a path."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "other"  # a submodule, a pipe, a device


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """What is at a path; ``target`` is that of a link, ``blob`` git's name where it is known."""

    kind: EntryKind
    target: str = ""
    blob: str = ""


_ROOT = TreeEntry(EntryKind.FOLDER)


def join_path(folder: str, name: str) -> str:
    """Return the path of a name in a folder."""
    return f"{folder}/{name}" if folder else name


class Tree(ABC):
    """The files below a root. Every method raises IncomparableError.

    Paths have slashes and no ".."; "" is the root. Links within the tree are followed.
    """

    @abstractmethod
    def _entry(self, path: str) -> TreeEntry | None:
        """Return what is at a path whose folders are no links."""

    @abstractmethod
    def _children(self, folder: str) -> Iterable[str]:
        """Return the names in a folder that is there and is no link."""

    @abstractmethod
    def _read(self, path: str, entry: TreeEntry) -> bytes:
        """Return the content of a file whose folders are no links."""

    @abstractmethod
    def _blob(self, path: str, entry: TreeEntry) -> str:
        """Return git's name of the content of a file whose folders are no links."""

    @abstractmethod
    def read_object(self, sha: str) -> bytes:
        """Return what git keeps under this name, in whichever commit. Raises IncomparableError."""

    def find_entry(self, path: str) -> TreeEntry | None:
        """Return what is at a path that leads through no link."""
        entry: TreeEntry | None = _ROOT
        steps = path.split("/") if path else []
        for depth in range(len(steps)):
            _check_known(path, entry)
            if not _is_folder(entry):
                return None
            entry = self._entry("/".join(steps[: depth + 1]))
        return entry

    def read(self, path: str) -> bytes | None:
        """Return the content of a file, `None` where there is none."""
        real, entry = self._file(path)
        return None if entry is None else self._read(real, entry)

    def blob(self, path: str) -> str | None:
        """Return git's name of the content of a file, `None` where there is none."""
        real, entry = self._file(path)
        return None if entry is None else self._blob(real, entry)

    def names(self, folder: str) -> tuple[str, ...] | None:
        """Return the names in a folder in order, `None` where there is none."""
        real, entry = self._resolved(folder)
        if not _is_folder(entry):
            return None
        return tuple(sorted(self._children(real)))

    def glob(self, pattern: str) -> list[str]:
        """Return the paths of all files that match, in order; "**" stands for any folders."""
        return sorted(
            path
            for path, entry in self._walk(find_fixed_folder(pattern))
            if not self._is_beyond(path, entry, pattern) and matches_pattern(path, pattern)
        )

    def _is_beyond(self, path: str, entry: TreeEntry, pattern: str) -> bool:
        """Whether a path is no file. Raises IncomparableError: what lies behind it may match."""
        if entry.kind is EntryKind.LINK:
            entry = self._resolved(path)[1] or entry
            if _is_folder(entry) and may_hold_match(path, pattern):
                raise IncomparableError(f"{path} is a link to a folder, and {pattern} looks there")
        if entry.kind is EntryKind.OTHER and (
            matches_pattern(path, pattern) or may_hold_match(path, pattern)
        ):
            raise IncomparableError(f"{path} is no file or folder, and {pattern} looks there")
        return _is_folder(entry)

    def _walk(self, folder: str) -> Iterator[tuple[str, TreeEntry]]:
        """Yield what is below a folder, behind no further link."""
        real, entry = self._resolved(folder)
        left = [(folder, real)] if _is_folder(entry) else []
        count = 0
        while left:
            path, real = left.pop()
            for name in self._children(real):
                inner = None if name in _UNSEEN else self._entry(join_path(real, name))
                if inner is None:
                    continue
                count += 1
                if count > _MAX_ENTRIES:
                    raise IncomparableError(f"{folder or 'the root'} has over {_MAX_ENTRIES} files")
                yield join_path(path, name), inner
                if _is_folder(inner):
                    left.append((join_path(path, name), join_path(real, name)))

    def _file(self, path: str) -> tuple[str, TreeEntry | None]:
        real, entry = self._resolved(path)
        if entry is not None and entry.kind is EntryKind.OTHER:
            raise IncomparableError(f"{path} is no regular file")
        return real, None if _is_folder(entry) else entry

    def _resolved(self, path: str) -> tuple[str, TreeEntry | None]:
        """Return the path that links lead to, and what is there."""
        left = _steps(path)
        if ".." in left or path.startswith("/"):
            raise IncomparableError(f"{path} leads out of the repository")
        real: list[str] = []
        entry: TreeEntry | None = _ROOT
        links = 0
        while left:
            _check_known(path, entry)
            if not _is_folder(entry):
                return path, None
            step = left.pop()
            if step == "..":
                if not real:
                    raise IncomparableError(f"{path} is a link that leads out of the repository")
                real.pop()
                continue
            entry = self._entry("/".join([*real, step]))
            if entry is None or entry.kind is not EntryKind.LINK:
                real.append(step)
                continue
            links += 1
            if links > _MAX_LINKS or entry.target.startswith("/"):
                raise IncomparableError(f"{path} is a link that leads nowhere in the repository")
            left += _steps(entry.target)
            entry = _ROOT
        return "/".join(real), entry


def _is_folder(entry: TreeEntry | None) -> bool:
    return entry is not None and entry.kind is EntryKind.FOLDER


def _check_known(path: str, folder: TreeEntry | None) -> None:
    if folder is not None and folder.kind is EntryKind.OTHER:
        raise IncomparableError(f"{path} lies in a submodule, whose files are not known")


def _steps(path: str) -> list[str]:
    """Return the names of a path, the last one first."""
    return [step for step in reversed(path.split("/")) if step not in {"", "."}]


def matches_pattern(path: str, pattern: str) -> bool:
    """Whether a path matches; "**" stands for any number of folders, or at the end of names."""
    steps = pattern.split("/")
    return len(steps) in _find_reached(path.split("/"), steps)


def may_hold_match(folder: str, pattern: str) -> bool:
    """Whether a path below `folder` can match."""
    steps = pattern.split("/")
    return any(position < len(steps) for position in _find_reached(folder.split("/"), steps))


def find_fixed_folder(pattern: str) -> str:
    """Return the folder below which all matches lie: "data" of "data/**/*.json"."""
    folders = pattern.split("/")[:-1]
    wild = next((i for i, name in enumerate(folders) if _WILD & {*name}), len(folders))
    return "/".join(folders[:wild])


def _find_reached(names: list[str], steps: list[str]) -> set[int]:
    """Return how many steps of a pattern these names can have used, each possibility."""
    positions = _with_no_folder({0}, steps)
    for name in names:
        after = set()
        for position in positions:
            if position == len(steps):
                continue
            if steps[position] == _ANY_FOLDERS:
                after |= {position, position + 1} if position + 1 == len(steps) else {position}
            elif fnmatch.fnmatchcase(name, steps[position]):
                after.add(position + 1)
        positions = _with_no_folder(after, steps)
    return positions


def _with_no_folder(positions: set[int], steps: list[str]) -> set[int]:
    """Add the steps that are reached where a "**" stands for no folder."""
    reached = set(positions)
    for position in sorted(positions):
        step = position
        while step < len(steps) - 1 and steps[step] == _ANY_FOLDERS:
            step += 1
            reached.add(step)
    return reached
