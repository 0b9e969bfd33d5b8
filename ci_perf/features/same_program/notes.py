"""What a launch has noted so far, in a file to which the process and its forked children append."""

import os
from enum import Enum
from pathlib import Path

import msgspec

# Far more than a program has; a recording without end would fill memory and disk.
_MOST_NOTES = 400_000


class NoteKind(Enum):
    """What a note says of its name: a path without links, a variable or a sentence."""

    READ = "read"  # its content counts; with its state
    SOURCE = "source"  # imported: its code counts; with its state
    EXISTS = "exists"
    MISSING = "missing"
    # By whomever: it counts where no process has told how.
    OPENED = "opened"  # with its state
    OPENED_FOLDER = "opened_folder"  # with its entries
    CHANGED = "changed"
    MADE = "made"  # by the program: no input
    REWRITTEN = "rewritten"  # opened to be emptied; with its state before
    LISTED = "listed"  # with its entries
    SEARCHED = "searched"  # a folder, a slash and the name of a module that was looked for
    IMPORTED_FROM = "imported_from"  # a folder that the import system has listed
    LINK = "link"
    VARIABLE = "variable"  # with the digest of its value
    OBSTACLE = "obstacle"


class Notes:
    """Appends notes. Without locks: it works in a child forked at any moment, and in any thread."""

    def __init__(self, path: Path) -> None:
        """Write to a file that the ranks of a launch share. Raises OSError."""
        self._path = path
        self._seen: set[tuple[NoteKind, str]] = set()
        self._open()

    def add(self, kind: NoteKind, name: str, value: str = "") -> None:
        """Write a note at once, because a child may be killed; the first value of a name counts."""
        if (kind, name) in self._seen or len(self._seen) > _MOST_NOTES:
            return
        self._seen.add((kind, name))
        line = msgspec.json.encode((kind.value, _escape(name), _escape(value))) + b"\n"
        try:
            is_ours = os.fstat(self._handle).st_ino == self._inode
        except OSError:
            is_ours = False
        if not is_ours:  # a program may close whatever is open
            self._open()
        os.write(self._handle, line)

    def has(self, kind: NoteKind, name: str) -> bool:
        """Whether this process, or its parent before it was forked, has noted it."""
        return (kind, name) in self._seen

    def read(self) -> dict[NoteKind, dict[str, str]]:
        """Return the notes of all processes by kind and name. Raises OSError, MsgspecError."""
        notes: dict[NoteKind, dict[str, str]] = {kind: {} for kind in NoteKind}
        for line in self._path.read_bytes().splitlines():
            kind, name, value = msgspec.json.decode(line, type=tuple[NoteKind, str, str])
            notes[kind].setdefault(name, value)
        if len(self._seen) > _MOST_NOTES:
            notes[NoteKind.OBSTACLE][f"it uses more than {_MOST_NOTES:,} files and names"] = ""
        return notes

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._handle = os.open(self._path, flags, 0o600)
        self._inode = os.fstat(self._handle).st_ino


def _escape(text: str) -> str:
    """Keep bytes of a name that are no UTF-8 apart from other names, in what JSON can hold."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")
