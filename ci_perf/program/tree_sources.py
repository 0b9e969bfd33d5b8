"""Where a tree of files comes from: a folder, with what git does not track, or a commit."""

import os
import stat
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path

from ci_perf.errors import CiPerfError
from ci_perf.program.trees import (
    MAX_READ_BYTES,
    EntryKind,
    IncomparableError,
    Tree,
    TreeEntry,
    join_path,
)
from ci_perf.system import files, git

_KINDS_OF_MODES = {stat.S_IFREG: EntryKind.FILE, stat.S_IFDIR: EntryKind.FOLDER}
_KINDS_IN_GIT = {
    "040000": EntryKind.FOLDER,
    "120000": EntryKind.LINK,
    "100644": EntryKind.FILE,
    "100755": EntryKind.FILE,
}


class FolderTree(Tree):
    """The files below a folder, as they are now."""

    def __init__(self, root: Path) -> None:
        self._root = Path(os.path.realpath(root))

    def read_object(self, sha: str) -> bytes:
        """Return what git keeps under this name. Raises IncomparableError."""
        try:
            return git.read(self._root, "cat-file", "blob", sha)
        except CiPerfError as error:
            raise IncomparableError(str(error)) from None

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
            return files.compute_blob(self._root / path)
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from None


def _unreadable(path: str, error: OSError | ValueError) -> IncomparableError:
    return IncomparableError(f"{path} cannot be read: {getattr(error, 'strerror', error)}")


class ListedTree(Tree):
    """A commit of which git has listed all files; `prefix` is the folder that is the root.

    `listing` has the mode, the object and the path of each file and folder, from the root of the
    repository.
    """

    def __init__(self, listing: Iterable[tuple[str, str, str]], *, prefix: str = "") -> None:
        self._prefix = prefix.strip("/")
        self._entries: dict[str, TreeEntry] = {}
        self._folders: dict[str, list[str]] = {"": []}
        for mode, sha, path in listing:
            kind = _KINDS_IN_GIT.get(mode, EntryKind.OTHER)
            self._entries[path] = TreeEntry(kind, blob=sha)
            folder, _, name = path.rpartition("/")
            self._folders.setdefault(folder, []).append(name)

    @abstractmethod
    def _fetch(self, sha: str, path: str) -> bytes:
        """Return what git keeps under this name. Raises IncomparableError."""

    def _entry(self, path: str) -> TreeEntry | None:
        entry = self._entries.get(join_path(self._prefix, path))
        if entry is None or entry.kind is not EntryKind.LINK or entry.target:
            return entry
        followed = TreeEntry(EntryKind.LINK, target=os.fsdecode(self._fetch(entry.blob, path)))
        self._entries[join_path(self._prefix, path)] = followed
        return followed

    def _children(self, folder: str) -> Iterable[str]:
        return self._folders.get(join_path(self._prefix, folder).strip("/"), ())

    def _read(self, path: str, entry: TreeEntry) -> bytes:
        return self._fetch(entry.blob, path)

    def _blob(self, path: str, entry: TreeEntry) -> str:  # noqa: ARG002  other trees need it
        return entry.blob

    def read_object(self, sha: str) -> bytes:
        """Return what git keeps under this name. Raises IncomparableError."""
        return self._fetch(sha, sha)


class GitTree(ListedTree):
    """A commit of a repository on this machine; files of submodules and Git LFS are not known.

    Raises IncomparableError where there is no such commit.
    """

    def __init__(self, repository: Path, commit: str, *, prefix: str = "") -> None:
        self._repository = repository
        if commit.startswith("-"):
            raise IncomparableError(f"{commit} is no commit")
        listed = self._ask("ls-tree", "-r", "-t", "-z", "--full-tree", commit)
        super().__init__(_parse_tree(listed), prefix=prefix)

    def _fetch(self, sha: str, path: str) -> bytes:
        if int(self._ask("cat-file", "-s", sha)) > MAX_READ_BYTES:
            raise IncomparableError(f"{path} is too large to be compared")
        return self._ask("cat-file", "blob", sha)

    def _ask(self, *arguments: str) -> bytes:
        try:
            return git.read(self._repository, *arguments)
        except CiPerfError as error:
            raise IncomparableError(str(error)) from None


def _parse_tree(listed: bytes) -> Iterator[tuple[str, str, str]]:
    """Read lines of `git ls-tree`: mode, type and object, a tab, the path."""
    for line in listed.split(b"\0")[:-1]:
        facts, _, path = line.partition(b"\t")
        mode, _, sha = facts.decode().split()
        yield mode, sha, os.fsdecode(path)
