"""Which files below the root anybody opens or changes: by Linux inotify, and as mapped memory.

Native code (torch's reader of files, safetensors, a library) opens files without asking Python.
"""

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# <sys/inotify.h>
_MODIFY, _OPEN, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x20, 0x40, 0x80, 0x100, 0x200
_OVERFLOW, _IS_FOLDER = 0x4000, 0x40000000
_WATCHED = _MODIFY | _OPEN | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_EVENT = struct.Struct("iIII")
_BUFFER = 2**16

# Nothing below them is an input of the program, or the installed packages cover it.
_SKIPPED = {".git", "__pycache__", "dist-packages", "node_modules", "site-packages"}
_MOST_FOLDERS = 20_000


class CannotWatchError(Exception):
    """The kernel does not tell which files are opened."""


@dataclass(frozen=True, slots=True)
class KernelEvent:
    """What happened to a path; of what was opened and changed, only the change."""

    path: str
    is_made: bool
    is_changed: bool
    is_folder: bool


class KernelWatch:
    """Watches all folders below a root, without a thread: `read` has to be called in time.

    ``links`` are the symbolic links in them: the kernel tells of the files that they lead to.
    """

    def __init__(self, root: str, *, spared: tuple[str, ...]) -> None:
        """Begin; folders in `spared` hold an environment. Raises CannotWatchError, OSError."""
        self._library = ctypes.CDLL(None, use_errno=True)
        self._handle: int = self._library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._handle < 0:
            raise CannotWatchError(f"inotify: {os.strerror(ctypes.get_errno())}")
        self._owner = os.getpid()
        self._folders: dict[int, str] = {}
        self.links: list[str] = []
        probe = self._watch(root, spared)
        if probe:
            with contextlib.suppress(OSError):
                os.close(os.open(probe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        told = {event.path for event in self.read()}  # also of the folders that were listed here
        if probe and probe not in told:
            raise CannotWatchError("inotify: a file was opened, and no event came")

    def read(self) -> Iterator[KernelEvent]:
        """Yield what happened since the last call. Raises CannotWatchError: events were lost.

        In a forked child it yields nothing: the parent hears of the child's files, too.
        """
        while self._owner == os.getpid():
            try:
                data = os.read(self._handle, _BUFFER)
            except BlockingIOError:
                return
            except OSError as error:
                raise CannotWatchError(f"inotify: {error.strerror}") from None
            place = 0
            while place < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, place)
                place += _EVENT.size
                name = os.fsdecode(data[place : place + length].rstrip(b"\0"))
                place += length
                if mask & _OVERFLOW:
                    raise CannotWatchError("inotify: more files were opened than it could tell")
                folder = self._folders.get(number)
                if folder is not None and name != "__pycache__":
                    yield KernelEvent(
                        path=f"{folder}/{name}" if name else folder,
                        is_made=bool(mask & _CREATE),
                        is_changed=bool(mask & (_MODIFY | _MOVED_FROM | _MOVED_TO | _DELETE)),
                        is_folder=bool(mask & _IS_FOLDER),
                    )

    def _watch(self, root: str, spared: tuple[str, ...]) -> str:
        """Watch a folder and all below it; return a file by which that can be tried."""
        left, probe = [root], ""
        while left:
            folder = left.pop()
            if len(self._folders) >= _MOST_FOLDERS:
                raise CannotWatchError(f"the repository has more than {_MOST_FOLDERS:,} folders")
            number: int = self._library.inotify_add_watch(
                self._handle, os.fsencode(folder), _WATCHED
            )
            if number < 0:
                reason = os.strerror(ctypes.get_errno())
                raise CannotWatchError(f"inotify, fs.inotify.max_user_watches: {reason}")
            self._folders[number] = folder
            with contextlib.suppress(OSError):
                for entry in [*os.scandir(folder)]:
                    if entry.is_symlink():
                        self.links.append(entry.path)
                    elif entry.is_dir(follow_symlinks=False):
                        is_spared = f"{entry.path}/".startswith(spared)
                        if entry.name not in _SKIPPED and not is_spared:
                            left.append(entry.path)
                    elif not probe and entry.is_file() and os.access(entry.path, os.R_OK):
                        probe = entry.path
        return probe


def find_mapped_files() -> list[str]:
    """Return the files that are mapped into the memory of this process: libraries, mostly."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    fields = [line.split(maxsplit=5) for line in lines]
    paths = {field[5] for field in fields if len(field) == 6 and field[5].startswith("/")}
    return sorted(path for path in paths if not path.endswith(" (deleted)"))
