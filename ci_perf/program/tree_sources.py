"""Where a tree of files comes from: a folder, with what git does not track, or a commit."""

import hashlib
import os
import stat
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path

from ci_perf.errors import CiPerfError
from ci_perf.program import trees
from ci_perf.program.trees import (
    MAX_READ_BYTES,
    EntryKind,
    IncomparableError,
    LinkedTree,
    TreeEntry,
    joined,
)
from ci_perf.system import git

_KINDS_OF_MODES = {stat.S_IFREG: EntryKind.FILE, stat.S_IFDIR: EntryKind.FOLDER}
# The magic number of the Python, then flags: 0 where date and size of the source are compared.
_PYC_FLAGS = slice(4, 8)
_CHUNK_BYTES = 2**20
_KINDS_IN_GIT = {
    "040000": EntryKind.FOLDER,
    "120000": EntryKind.LINK,
    "100644": EntryKind.FILE,
    "100755": EntryKind.FILE,
}
_LFS = b"version https://git-lfs.github.com/spec/v1\n"
_ATTRIBUTES = ".gitattributes"
_MACRO = "[attr]"
# Names that change the content where they are set, or set to a value. `text` and `eol=lf` change
# nothing in a checkout on Linux.
_CHANGING = ("eol=crlf", "ident", "filter=", "working-tree-encoding=")


def blob_of_file(path: Path) -> str:
    """Return git's name of the content of a file of any size. Raises OSError."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        sha1 = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        while chunk := file.read(_CHUNK_BYTES):
            sha1.update(chunk)
    return sha1.hexdigest()


class FolderTree(LinkedTree):
    """The files below a folder, as they are now."""

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))

    def _entry(self, path: str) -> TreeEntry | None:
        try:
            mode = (self._root / path).lstat().st_mode
            if stat.S_ISLNK(mode):
                return TreeEntry(EntryKind.LINK, target=str((self._root / path).readlink()))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from None
        return TreeEntry(_KINDS_OF_MODES.get(stat.S_IFMT(mode), EntryKind.OTHER))

    def _children(self, folder: str) -> Iterable[str]:
        try:
            return [child.name for child in (self._root / folder).iterdir()]
        except OSError as error:
            raise _unreadable(folder, error) from None

    def _read(self, path: str, entry: TreeEntry) -> bytes:  # noqa: ARG002  other trees need it
        try:
            with (self._root / path).open("rb") as file:
                data = file.read(MAX_READ_BYTES + 1)
        except OSError as error:
            raise _unreadable(path, error) from None
        if len(data) > MAX_READ_BYTES:
            raise IncomparableError(f"{path} is too large to be compared")
        return data

    def _blob(self, path: str, entry: TreeEntry) -> str:  # noqa: ARG002  other trees need it
        try:
            return blob_of_file(self._root / path)
        except OSError as error:
            raise _unreadable(path, error) from None

    def _is_run_unseen(self, path: str) -> bool:
        """Python compares date and size of the source with those in a compiled file of its own."""
        return any(self._read(path, TreeEntry(EntryKind.FILE))[_PYC_FLAGS])


def _unreadable(path: str, error: OSError | ValueError) -> IncomparableError:
    return IncomparableError(f"{path} cannot be read: {getattr(error, 'strerror', error)}")


class ListedTree(LinkedTree):
    """A commit of which git has listed all files; `prefix` is the folder that is the root.

    `listing` has the mode, the object and the path of each file and folder, from the root of the
    repository.
    """

    def __init__(self, listing: Iterable[tuple[str, str, str]], *, prefix: str = "") -> None:
        self._prefix = prefix.strip("/")
        self._entries: dict[str, TreeEntry] = {}
        self._folders: dict[str, list[str]] = {"": []}
        self._attributes: dict[str, str] = {}
        for mode, sha, path in listing:
            kind = _KINDS_IN_GIT.get(mode, EntryKind.OTHER)
            self._entries[path] = TreeEntry(kind, blob=sha)
            folder, _, name = path.rpartition("/")
            self._folders.setdefault(folder, []).append(name)

    @abstractmethod
    def _fetch(self, sha: str, path: str) -> bytes:
        """Return what git keeps under this name. Raises IncomparableError."""

    def _entry(self, path: str) -> TreeEntry | None:
        entry = self._entries.get(joined(self._prefix, path))
        if entry is None or entry.kind is not EntryKind.LINK or entry.target:
            return entry
        followed = TreeEntry(EntryKind.LINK, target=os.fsdecode(self._fetch(entry.blob, path)))
        self._entries[joined(self._prefix, path)] = followed
        return followed

    def _children(self, folder: str) -> Iterable[str]:
        return self._folders.get(joined(self._prefix, folder).strip("/"), ())

    def _read(self, path: str, entry: TreeEntry) -> bytes:
        self._check_attributes(path)
        data = self._fetch(entry.blob, path)
        if data.startswith(_LFS):
            raise IncomparableError(f"{path} is kept by Git LFS, so its content is not known")
        return data

    def _blob(self, path: str, entry: TreeEntry) -> str:
        self._check_attributes(path)
        return entry.blob

    def _is_run_unseen(self, path: str) -> bool:
        """Distrust each: whoever committed a compiled file made it, from whatever source."""
        return bool(path)

    def _check_attributes(self, path: str) -> None:
        """Refuse a file that a checkout does not have as git keeps it."""
        steps = joined(self._prefix, path).split("/")
        for depth in range(len(steps)):
            folder = "/".join(steps[:depth])
            entry = self._entries.get(joined(folder, _ATTRIBUTES))
            if entry is None or entry.kind is not EntryKind.FILE:
                continue
            lines = self._lines(entry, path)
            if attribute := changing_attribute("/".join(steps[depth:]), lines):
                raise IncomparableError(
                    f"{path} is changed by git where it is checked out ({attribute})"
                )

    def _lines(self, entry: TreeEntry, path: str) -> str:
        """Return the lines of a .gitattributes; each is asked for at every file below it."""
        if entry.blob not in self._attributes:
            text = self._fetch(entry.blob, path).decode(errors="replace")
            self._attributes[entry.blob] = text
        return self._attributes[entry.blob]


class GitTree(ListedTree):
    """A commit of a repository on this machine; files of submodules and Git LFS are not known.

    Raises IncomparableError where there is no such commit.
    """

    def __init__(self, repository: Path, commit: str, *, prefix: str = "") -> None:
        self._repository = repository
        if commit.startswith("-"):
            raise IncomparableError(f"{commit} is no commit")
        listed = self._ask("ls-tree", "-r", "-t", "-z", "--full-tree", commit)
        super().__init__(_listing(listed), prefix=prefix)

    def _fetch(self, sha: str, path: str) -> bytes:
        if int(self._ask("cat-file", "-s", sha)) > MAX_READ_BYTES:
            raise IncomparableError(f"{path} is too large to be compared")
        return self._ask("cat-file", "blob", sha)

    def _ask(self, *arguments: str) -> bytes:
        try:
            return git.read(self._repository, *arguments)
        except CiPerfError as error:
            raise IncomparableError(str(error)) from None


def _listing(listed: bytes) -> Iterator[tuple[str, str, str]]:
    """Read lines of `git ls-tree`: mode, type and object, a tab, the path."""
    for line in listed.split(b"\0")[:-1]:
        facts, _, path = line.partition(b"\t")
        mode, _, sha = facts.decode().split()
        yield mode, sha, os.fsdecode(path)


def changing_attribute(path: str, lines: str) -> str:
    """Return the attribute by which git changes the content of a file in a checkout, or "".

    `path` is below the folder of the .gitattributes with these lines. A later line that unsets an
    attribute is not followed: the file then counts as changed.
    """
    for line in lines.splitlines():
        pattern, *named = line.split()[:100] or [""]
        if pattern.startswith("#"):
            continue
        for attribute in named:
            if attribute.startswith(_CHANGING) and _is_for(path, pattern):
                return attribute
    return ""


def _is_for(path: str, pattern: str) -> bool:
    if pattern.startswith((_MACRO, '"')):
        return True  # a macro may be used anywhere; a quoted pattern is not read
    if "/" not in pattern.rstrip("/"):
        return trees.matches_pattern(path.rpartition("/")[2], pattern)
    return trees.matches_pattern(path, pattern.lstrip("/"))
