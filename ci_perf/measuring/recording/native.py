"""Which files below the root are opened by whomever: by Linux inotify, and as mapped memory.

Native code (torch's reader of files, safetensors, a library) opens files without asking Python.
"""

import contextlib
import ctypes
import os
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ci_perf.system import linux

# <sys/inotify.h>
_MODIFY, _MOVED_TO, _CREATE, _OPEN = 0x2, 0x80, 0x100, 0x20
_OVERFLOW, _IS_FOLDER = 0x4000, 0x40000000
_WATCHED = _MODIFY | _MOVED_TO | _CREATE | _OPEN
_EVENT = struct.Struct("iIII")
_BUFFER = 2**16

# Nothing below them is an input of the program, or it is covered by the installed packages.
_SKIPPED = {".git", "__pycache__", "dist-packages", "node_modules", "site-packages"}
_MOST_FOLDERS = 20_000
# How long another rank may take to list them, and how often to look.
_LISTING_S, _LOOK_S = 60.0, 0.01


class CannotWatchError(Exception):
    """The kernel does not tell which files are opened."""


@dataclass(frozen=True, slots=True)
class Opened:
    """One event: what happened to which path, as the kernel knows it."""

    path: str
    was_made: bool
    was_changed: bool
    is_folder: bool


class OpenedFiles:
    """Watches all folders below a root, without a thread: `drain` has to be called in time.

    ``links`` are the symbolic links in them, of which the kernel never tells: it knows the files
    that they lead to.
    """

    def __init__(self, root: str, shared: Path) -> None:
        """Begin. Raises CannotWatchError, OSError.

        One of the ranks of a launch on this kernel lists the folders for all of them, in the folder
        `shared`: each would hear of the folders that another one opens for that.
        """
        self._library = ctypes.CDLL(None, use_errno=True)
        self._handle: int = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._handle < 0:
            raise CannotWatchError(f"inotify: {os.strerror(ctypes.get_errno())}")
        self._owner = os.getpid()
        self._folders: dict[int, str] = {}
        self.links: list[str] = []
        listed = shared / f"folders-{linux.boot_id()}"
        if _is_first(listed):
            self._watch_first(root, listed)
        else:
            for folder in filter(os.path.isdir, _listed_by_another(listed)):
                self._add(folder)

    def drain(self) -> Iterator[Opened]:
        """Yield what happened since the last call. Raises CannotWatchError: events were lost.

        In a forked child it does nothing: the parent hears of the child's files, too.
        """
        while self._owner == os.getpid():
            try:
                data = os.read(self._handle, _BUFFER)
            except BlockingIOError:
                return
            except OSError as error:
                raise CannotWatchError(f"inotify: {error.strerror}") from None
            yield from self._decoded(data)

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(OSError):
            os.close(self._handle)

    def _watch_first(self, root: str, listed: Path) -> None:
        """Watch what there is, then tell the other ranks; where that fails, of what came before."""
        probe = ""
        try:
            for folder, files, links in _folders(root):
                self._add(folder)
                self.links += links
                probe = probe or next((name for name in map(str, files) if name), "")
            self._try(probe)
        finally:
            unfinished = listed.with_suffix(".unfinished")
            unfinished.write_bytes(b"\0".join(map(os.fsencode, self._folders.values())))
            unfinished.rename(listed)

    def _add(self, folder: str) -> None:
        if len(self._folders) >= _MOST_FOLDERS:
            raise CannotWatchError(f"the repository has more than {_MOST_FOLDERS:,} folders")
        number: int = self._library.inotify_add_watch(self._handle, os.fsencode(folder), _WATCHED)
        if number < 0:
            reason = os.strerror(ctypes.get_errno())
            raise CannotWatchError(f"inotify, fs.inotify.max_user_watches: {reason}")
        self._folders[number] = folder

    def _try(self, probe: str) -> None:
        """Open a file and see whether the kernel tells of it; forget all that was told so far."""
        if probe:
            with contextlib.suppress(OSError):
                os.close(os.open(probe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        told = {opened.path for opened in self.drain()}
        if probe and probe not in told:
            raise CannotWatchError("inotify: a file was opened, and no event came")

    def _decoded(self, data: bytes) -> Iterator[Opened]:
        place = 0
        while place < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, place)
            place += _EVENT.size
            name = os.fsdecode(data[place : place + length].rstrip(b"\0"))
            place += length
            if mask & _OVERFLOW:
                raise CannotWatchError("inotify: more files were opened than it could tell")
            folder = self._folders.get(number)
            if folder is None:
                continue
            yield Opened(
                path=f"{folder}/{name}" if name else folder,
                was_made=bool(mask & (_CREATE | _MOVED_TO)),
                was_changed=bool(mask & _MODIFY),
                is_folder=bool(mask & _IS_FOLDER),
            )


def _is_first(listed: Path) -> bool:
    """Whether no rank on this kernel lists the folders yet. Raises OSError."""
    try:
        listed.with_suffix(".begun").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def _listed_by_another(listed: Path) -> list[str]:
    """Wait for what another rank finds. Raises CannotWatchError."""
    end = time.monotonic() + _LISTING_S
    while not listed.exists():
        if time.monotonic() > end:
            raise CannotWatchError(f"no rank has listed the folders within {_LISTING_S:g} s")
        time.sleep(_LOOK_S)
    return list(map(os.fsdecode, filter(None, listed.read_bytes().split(b"\0"))))


def _folders(root: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the folders below the root, and the regular files and the links in each."""
    left = [root]
    while left:
        folder = left.pop()
        files, links = [], []
        with contextlib.suppress(OSError):
            for entry in [*os.scandir(folder)]:
                if entry.is_symlink():
                    links.append(entry.path)
                elif entry.is_dir(follow_symlinks=False):
                    is_environment = os.path.lexists(f"{entry.path}/pyvenv.cfg")
                    if entry.name not in _SKIPPED and not is_environment:
                        left.append(entry.path)
                elif entry.is_file(follow_symlinks=False) and os.access(entry.path, os.R_OK):
                    files.append(entry.path)
        yield folder, files, links


def mapped_files(read: Callable[[Path], str] = Path.read_text) -> list[str]:
    """Return the files that are mapped into the memory of this process: libraries, mostly."""
    try:
        lines = read(Path("/proc/self/maps")).splitlines()
    except OSError:
        return []
    fields = [line.split(maxsplit=5) for line in lines]
    paths = {field[5] for field in fields if len(field) == 6 and field[5].startswith("/")}
    return sorted(path for path in paths if not path.endswith(" (deleted)"))
