"""A commit as a tree of files: what git keeps of it, without a checkout."""

import os
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from pathlib import Path

from ci_perf.errors import CiPerfError
from ci_perf.program import patterns
from ci_perf.program.trees import (
    MAX_READ_BYTES,
    EntryKind,
    IncomparableError,
    LinkedTree,
    TreeEntry,
    joined,
)
from ci_perf.system import git

_KINDS = {
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
            kind = _KINDS.get(mode, EntryKind.OTHER)
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
        return patterns.matches(path.rpartition("/")[2], pattern)
    return patterns.matches(path, pattern.lstrip("/"))
