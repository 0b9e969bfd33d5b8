"""Digests of what a program reads, taken before it can change it."""

import contextlib
import hashlib
import itertools
import os
import stat
from pathlib import Path

from ci_perf.measuring.recording.notes import Fact, Notes
from ci_perf.measuring.recording.places import Owner, Places
from ci_perf.model import program

# Hashing takes some seconds per GiB.
_LARGEST = 2**30
_CHUNK = 2**20


class Contents:
    """Notes files and folders with what they hold."""

    def __init__(self, notes: Notes, places: Places) -> None:
        self._notes = notes
        self._places = places

    def read(self, path: str, *, by_import: bool = False) -> None:
        """Note that a file is read, or that it is not there."""
        owner, name = self._places.classify(path)
        if owner is Owner.GIT:
            self._notes.add(Fact.OBSTACLE, f"the program reads {name}, which every commit changes")
        elif owner is Owner.REPOSITORY:
            self._read_input(path, name, Fact.SOURCE if by_import else Fact.DATA)
        elif owner is Owner.OUTSIDE and not (self._is_noted(name) or self._is_product(name)):
            try:
                self._notes.add(Fact.OUTSIDE, name, _digest_of(path))
            except ValueError as error:
                self._notes.add(Fact.OBSTACLE, f"{name}: {error}")

    def used_neighbour(self, path: str) -> None:
        """Note that something of the repository beyond the root was looked for."""
        self._notes.add(Fact.OUTSIDE, self._places.classify(path)[1], "")

    def opened(self, path: str) -> None:
        """Note that a file of the repository was opened by whomever."""
        if (name := self._places.in_repository(path)) is not None:
            self._read_input(path, name, Fact.NATIVE)

    def opened_folder(self, path: str, name: str) -> None:
        """Note that a folder of the repository was opened, most likely to be listed."""
        if not self._notes.has(Fact.NATIVE_FOLDER, name):
            with contextlib.suppress(OSError):
                self._notes.add(Fact.NATIVE_FOLDER, name, program.listing(os.listdir(path)))

    def written(self, path: str, *, keeps: bool) -> None:
        """Note that a file is opened to be written; one that keeps what it had is read as well."""
        owner, name = self._places.classify(path)
        if owner not in {Owner.REPOSITORY, Owner.OUTSIDE}:
            return
        is_new = not os.path.lexists(path)
        if keeps and is_new and owner is Owner.REPOSITORY:
            self._notes.add(Fact.ABSENT, name)
        if keeps and not is_new:
            self.read(path)
        elif not self._is_noted(name):
            self._notes.add(Fact.PRODUCT, name)

    def looked_for(self, path: str, *, as_file: bool) -> None:
        """Note that something of the repository is there; `as_file`, what it holds counts, too."""
        if (name := self._places.in_repository(path)) is None:
            return
        if self._notes.has(Fact.EXISTS, name) and not as_file:
            return
        if os.path.isdir(path):
            self._notes.add(Fact.FOLDER, name + "/")
        elif as_file:
            self.read(path)
        elif not self._notes.has(Fact.PRODUCT, name):
            self._notes.add(Fact.EXISTS, name)

    def missed(self, path: str) -> None:
        """Note that something of the repository is not there."""
        if (name := self._places.in_repository(path)) is not None:
            self._notes.add(Fact.ABSENT, name)

    def tried(self, path: str) -> None:
        """Note whether something is there: what the program does to it fails, or not."""
        if os.path.lexists(path):
            self.looked_for(path, as_file=False)
        else:
            self.missed(path)

    def made_folder(self, path: str) -> None:
        """Note that a folder beyond the repository is made: what will be in it is a product."""
        owner, name = self._places.classify(path)
        if owner is Owner.OUTSIDE and not os.path.lexists(path):
            self._notes.add(Fact.PRODUCT, name)

    def listed(self, path: str) -> None:
        """Note the names in a folder."""
        owner, name = self._places.classify(path)
        is_product = owner is Owner.OUTSIDE and self._is_product(name)
        if owner not in {Owner.REPOSITORY, Owner.OUTSIDE} or is_product:
            return
        fact = Fact.FOLDER if owner is Owner.REPOSITORY else Fact.OUTSIDE
        if self._notes.has(fact, name):
            return
        try:
            digest = program.listing(os.listdir(path))
        except OSError:
            self._miss(owner, path)
        else:
            self._notes.add(fact, name, digest)

    def scanned(self, path: str) -> None:
        """Note the names in a folder, and what each stands for: kind and size come with them."""
        self.listed(path)
        if self._places.in_repository(path) is None:
            return
        with contextlib.suppress(OSError):
            for name in program.counted(os.listdir(path)):
                self.looked_for(os.path.join(path, name), as_file=True)

    def listed_by_import(self, path: str) -> None:
        """Note that the import system has listed a folder: its searches say what for."""
        if (name := self._places.in_repository(path)) is not None:
            self._notes.add(Fact.LISTED, name)

    def read_link(self, path: str) -> None:
        """Note that the target of a link is read."""
        if (name := self._places.in_repository(path)) is not None:
            self._notes.add(Fact.LINK, name)

    def _read_input(self, path: str, name: str, fact: Fact) -> None:
        if self._notes.has(fact, name) or self._notes.has(Fact.PRODUCT, name):
            return
        try:
            blob = _blob_of(path)
        except ValueError as error:
            self._notes.add(Fact.OBSTACLE, f"{name}: {error}")
            return
        if blob:
            self._notes.add(fact, name, blob)
        elif os.path.isdir(path):
            self._notes.add(Fact.FOLDER, name + "/")
        elif not os.path.lexists(path):
            self._notes.add(Fact.ABSENT, name)
        else:
            self._notes.add(Fact.OBSTACLE, f"{name}: it is no file that could be compared")

    def _is_noted(self, name: str) -> bool:
        facts = (Fact.SOURCE, Fact.DATA, Fact.OUTSIDE, Fact.PRODUCT)
        return any(self._notes.has(fact, name) for fact in facts)

    def _is_product(self, path: str) -> bool:
        """Whether the program has made this, or a folder above it."""
        places = itertools.accumulate(path.split("/"), lambda folder, name: f"{folder}/{name}")
        return any(self._notes.has(Fact.PRODUCT, place) for place in places)

    def _miss(self, owner: Owner, path: str) -> None:
        if owner is Owner.REPOSITORY:
            self.missed(path)
        else:
            self._notes.add(Fact.OUTSIDE, self._places.classify(path)[1], "")


def _blob_of(path: str) -> str:
    """Return the blob of a file; empty where there is none. Raises ValueError: it is too large."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            return ""
        _check_size(state)
        blob = hashlib.sha1(b"blob %d\0" % state.st_size, usedforsecurity=False)
        while chunk := os.read(handle, _CHUNK):
            blob.update(chunk)
        return blob.hexdigest()
    finally:
        os.close(handle)


def blob_of(path: str) -> str:
    """Return the blob of a file; empty for what is none or is too large."""
    try:
        return _blob_of(path)
    except ValueError:
        return ""


def _digest_of(path: str) -> str:
    """Return the digest of what a file beyond the repository holds; empty where there is none.

    Raises ValueError: it is too large.
    """
    try:
        state = Path(path).stat()
        if not stat.S_ISREG(state.st_mode):
            return ""
        _check_size(state)
        return program.digest(Path(path).read_bytes())
    except OSError:
        return ""


def _check_size(state: os.stat_result) -> None:
    if state.st_size > _LARGEST:
        raise ValueError(f"expected at most {_LARGEST:,} bytes, found {state.st_size:,}")
