"""What a launch has noted so far, in a file to which the process and its forked children append."""

from enum import Enum
from pathlib import Path

import msgspec

# Far more than a program has; a recording without end would fill memory and disk.
_MOST_NOTES = 60_000


class NoteKind(Enum):
    """What a note says of its name: a path without links, a variable or a sentence."""

    READ = "read"  # its content counts; with its state
    SOURCE = "source"  # imported: its code counts; with its state
    OPENED = "opened"  # by whomever, as the kernel tells; with its state
    EXISTS = "exists"
    ASKED = "asked"  # for size and times: in the repository like READ, beyond it like EXISTS
    MADE = "made"  # about to be made, which fails where something is there: then like EXISTS
    MISSING = "missing"  # with "made" where the program was about to make it
    CHANGED = "changed"  # by whomever, as the kernel tells
    LISTED = "listed"  # with its entries
    OPENED_FOLDER = "opened_folder"  # with its entries
    SEARCHED = "searched"  # a folder, a slash and the name of a module that was looked for
    IMPORTED_FROM = "imported_from"  # a folder that the import system has listed
    LINK = "link"  # with its target
    VARIABLE = "variable"  # with the digest of its value
    OBSTACLE = "obstacle"


class Notes:
    """Appends notes. Without locks: it works in a child forked at any moment, and in any thread."""

    def __init__(self, path: Path) -> None:
        """Write to a file that the ranks of a launch share."""
        self._path = path
        self._seen: dict[tuple[NoteKind, str], tuple[str, str]] = {}

    def add(self, kind: NoteKind, name: str, value: str = "") -> None:
        """Write a note at once, because a child may be killed; the first value of a name counts."""
        if len(self._seen) >= _MOST_NOTES:
            kind, name = NoteKind.OBSTACLE, f"it uses more than {_MOST_NOTES:,} files and names"
        if (kind, name) in self._seen:
            return
        # Bytes of a name that are no UTF-8 stay apart from other names, in what JSON can hold.
        encoded = (text.encode(errors="surrogateescape") for text in (name, value))
        first, second = (text.decode(errors="backslashreplace") for text in encoded)
        self._seen[kind, name] = first, second
        with self._path.open("ab", buffering=0) as file:
            file.write(msgspec.json.encode((kind.value, first, second)) + b"\n")

    def has(self, kind: NoteKind, name: str) -> bool:
        """Whether this process, or its parent before it was forked, has noted it."""
        return (kind, name) in self._seen

    def read(self) -> dict[NoteKind, dict[str, str]]:
        """Return the notes of all processes by kind and name. Raises OSError, MsgspecError."""
        notes: dict[NoteKind, dict[str, str]] = {kind: {} for kind in NoteKind}
        for line in self._path.read_bytes().splitlines():
            kind, name, value = msgspec.json.decode(line, type=tuple[NoteKind, str, str])
            notes[kind].setdefault(name, value)
        for (noted, _), (name, value) in self._seen.items():  # the file may have been out of reach
            notes[noted].setdefault(name, value)
        return notes
