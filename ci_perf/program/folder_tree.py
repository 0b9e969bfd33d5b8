"""A checkout as a tree of files, with what git does not track."""

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from ci_perf.program.trees import (
    MAX_READ_BYTES,
    EntryKind,
    IncomparableError,
    LinkedTree,
    TreeEntry,
)

_KINDS = {stat.S_IFREG: EntryKind.FILE, stat.S_IFDIR: EntryKind.FOLDER}
# The magic number of the Python, then flags: 0 where date and size of the source are compared.
_PYC_FLAGS = slice(4, 8)
_CHUNK_BYTES = 2**20


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
        return TreeEntry(_KINDS.get(stat.S_IFMT(mode), EntryKind.OTHER))

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
