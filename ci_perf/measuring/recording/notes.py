"""The facts of a recording, in a file to which the process and its forked children append.

A fact is a kind and some texts. Each process writes a fact once, the moment it becomes known: a
child may be killed at any time.
"""

import os
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import msgspec

# Far more than a program has; a recording without end would fill memory and disk.
_MOST_FACTS = 400_000


class Fact(Enum):
    """What is known of the names that follow."""

    # A path below the root.
    SOURCE = "source"  # its blob: read by the import system
    DATA = "data"  # its blob: read by anybody else
    PRODUCT = "product"  # written by the program before it was read
    EXISTS = "exists"
    ABSENT = "absent"
    FOLDER = "folder"  # its listing; "" for one that only had to exist
    LINK = "link"
    LISTED = "listed"  # by the import system
    NATIVE = "native"  # its blob: opened, by whomever
    NATIVE_FOLDER = "native_folder"  # its listing: opened, by whomever
    MADE = "made"  # by whomever
    # A path below the root, and the name of a unit or module.
    UNIT = "unit"
    SEARCH = "search"
    # A path beyond the root, a variable: with a digest.
    OUTSIDE = "outside"
    VARIABLE = "variable"
    # A sentence.
    OBSTACLE = "obstacle"
    # Why line numbers or docstrings may act.
    SIGHT = "sight"


class Notes:
    """Appends facts. Without locks: it works in a child forked at any moment, and in any thread."""

    def __init__(self, path: Path) -> None:
        """Write to a new file. Raises OSError."""
        self._path = path
        self._seen: set[tuple[str, ...]] = set()
        self._open()

    def add(self, fact: Fact, name: str, value: str = "") -> None:
        """Note a fact. The first value of a name counts, but for units and searches."""
        key = (fact.value, name, value) if fact in _MANY else (fact.value, name)
        if key in self._seen or len(self._seen) > _MOST_FACTS:
            return
        self._seen.add(key)
        line = msgspec.json.encode((fact.value, _spelled(name), _spelled(value))) + b"\n"
        if not self._is_open():
            self._open()
        os.write(self._handle, line)

    def has(self, fact: Fact, name: str) -> bool:
        """Whether this process, or its parent before it was forked, has noted it."""
        return (fact.value, name) in self._seen

    def read(self) -> Iterator[tuple[Fact, str, str]]:
        """Yield all facts of all processes in their order. Raises OSError, MsgspecError."""
        for line in self._path.read_bytes().splitlines():
            fact, name, value = msgspec.json.decode(line, type=tuple[str, str, str])
            yield Fact(fact), name, value
        if len(self._seen) > _MOST_FACTS:
            yield Fact.OBSTACLE, f"more than {_MOST_FACTS:,} facts were recorded", ""

    def _open(self) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        self._handle = os.open(self._path, flags, 0o600)
        self._file = os.fstat(self._handle).st_ino

    def _is_open(self) -> bool:
        """Whether the handle is ours still: a program may close whatever is open."""
        try:
            return os.fstat(self._handle).st_ino == self._file
        except OSError:
            return False


_MANY = {Fact.UNIT, Fact.SEARCH}


def _spelled(text: str) -> str:
    """Keep bytes of a name that are no UTF-8 apart from other names, in what JSON can hold."""
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")
