"""Which files below the root anybody opens or changes: by Linux inotify, and as mapped memory.

Native code (torch's reader of files, safetensors, a library) opens files without asking Python.
"""

import contextlib
import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

# <sys/inotify.h>
_MODIFY, OPEN, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x2, 0x20, 0x40, 0x80, 0x100, 0x200
_OVERFLOW, IS_FOLDER = 0x4000, 0x40000000
CHANGED, MOVED = _MODIFY | _CREATE, _MOVED_FROM | _MOVED_TO | _DELETE
_EVENT = struct.Struct("iIII")
_BUFFER = 2**16

# Nothing below them is an input of the program, or the installed packages cover it.
_SKIPPED = {".git", "__pycache__", "dist-packages", "node_modules", "site-packages"}
_MOST_FOLDERS = 20_000


class KernelWatch:
    """Watches all folders below a root, without a thread: `read` has to be called in time.

    ``links`` are the symbolic links in them: the kernel tells of the files that they lead to.
    """

    def __init__(self, root: str, *, spared: tuple[str, ...]) -> None:
        """Begin; folders in `spared` hold an environment. Raises OSError."""
        library = ctypes.CDLL(None, use_errno=True)
        self._handle: int = library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._owner = os.getpid()
        self._folders: dict[int, str] = {}
        self.links: list[str] = []
        left, probe = [root], ""
        while left:
            folder = left.pop()
            mask = CHANGED | MOVED | OPEN
            number: int = library.inotify_add_watch(self._handle, os.fsencode(folder), mask)
            if number < 0 or len(self._folders) > _MOST_FOLDERS:
                reason = "inotify cannot watch all folders (fs.inotify.max_user_watches)"
                raise OSError(ctypes.get_errno(), reason)
            self._folders[number] = folder
            with contextlib.suppress(OSError):
                for entry in [*os.scandir(folder)]:
                    if entry.is_symlink():
                        self.links.append(entry.path)
                    elif entry.is_dir():
                        if entry.name not in _SKIPPED and not f"{entry.path}/".startswith(spared):
                            left.append(entry.path)
                    elif not probe and entry.is_file() and os.access(entry.path, os.R_OK):
                        probe = entry.path
        if probe:
            os.close(os.open(probe, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        told = {path for path, _ in self.read()}  # also of the folders that were listed here
        if probe and probe not in told:
            raise OSError("inotify: a file was opened, and no event came")

    def read(self) -> Iterator[tuple[str, int]]:
        """Yield the paths of what happened since the last call. Raises OSError: events were lost.

        In a forked child it yields nothing: the parent hears of the child's files, too.
        """
        while self._owner == os.getpid():
            try:
                data = os.read(self._handle, _BUFFER)
            except BlockingIOError:
                return
            place = 0
            while place < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, place)
                place += _EVENT.size + length
                name = os.fsdecode(data[place - length : place].rstrip(b"\0"))
                if mask & _OVERFLOW:
                    raise OSError("inotify: more files were opened than it could tell")
                folder = self._folders.get(number)
                if folder is not None and name != "__pycache__":
                    yield f"{folder}/{name}".rstrip("/"), mask


def find_mapped_files() -> list[str]:
    """Return the files that are mapped into the memory of this process: libraries, mostly."""
    lines = Path("/proc/self/maps").read_text().splitlines()
    fields = [line.split(maxsplit=5) for line in lines]
    paths = {field[5] for field in fields if len(field) == 6 and field[5].startswith("/")}
    return sorted(path for path in paths if not path.endswith(" (deleted)"))
