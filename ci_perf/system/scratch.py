"""The folder in which a launch and its child exchange files: locked, read with suspicion, removed.

The lock ends with its owner, however that dies. So a folder whose lock is free was left by a
launch that was killed, and goes at the start of the next run, with the processes that bear its
name.
"""

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from ci_perf.errors import InvalidFileError
from ci_perf.model import codec
from ci_perf.system import files, processes, trees

T = TypeVar("T", bound=msgspec.Struct)

# Every process of a launch inherits the name of its folder in this variable.
COOKIE = "CI_PERF_LAUNCH"

_PREFIX = "ci-perf-launch-"


@dataclass(frozen=True, slots=True)
class Scratch:
    """An open folder: reading goes through the handle, whatever now stands at the path."""

    path: Path
    handle: int

    def read(self, name: str, kind: type[T]) -> T | None:
        """Return the document that the child left, `None` without one. Raises InvalidFileError."""
        data = self.read_bytes(name, limit=files.MAX_BYTES)
        return None if data is None else codec.decode(data, kind, name=name)

    def read_bytes(self, name: str, *, limit: int) -> bytes | None:
        """Return what the child left, `None` without it. Raises InvalidFileError.

        The measured code may have put anything in its place: a pipe that nobody writes to, a link
        to a device that never ends.
        """
        # A pipe is opened without waiting for its writer, a link is not followed.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            handle = os.open(name, flags, dir_fd=self.handle)
            with os.fdopen(handle, "rb") as file:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise InvalidFileError(f"{name}: expected a regular file, found another kind")
                data = file.read(limit + 1)
        except FileNotFoundError:
            return None
        except OSError as error:  # a link, a folder, a socket, no permission
            raise InvalidFileError(f"{name}: cannot be read: {error.strerror}") from None
        if len(data) > limit:
            raise InvalidFileError(f"{name}: expected at most {limit} bytes, found more")
        return data


@contextlib.contextmanager
def folder() -> Iterator[Scratch]:
    """Make a folder, and remove it afterwards. Raises OSError when none can be made."""
    scratch = _claimed()
    try:
        yield scratch
    finally:
        trees.remove(scratch.path)
        os.close(scratch.handle)


def sweep() -> None:
    """End and remove what launches left that were killed. Raises OSError: no place for folders."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError), _opened(path) as handle:
            if os.fstat(handle).st_uid == os.geteuid():
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                for pid in processes.carrying(COOKIE, path.name):
                    processes.kill(pid)
                trees.remove(path)


def is_ours(name: str) -> bool:
    """Whether a folder of launches may be called so: TMPDIR may lie in the checkout."""
    return name.startswith(_PREFIX)


def _claimed() -> Scratch:
    """Make a folder and lock it; once more when a sweep came in between."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        try:
            handle = _open(path)
        except FileNotFoundError:
            continue
        with contextlib.suppress(OSError):  # a file system without locks is never swept either
            fcntl.flock(handle, fcntl.LOCK_EX)
        if path.exists():
            return Scratch(path, handle)
        os.close(handle)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    handle = _open(path)
    try:
        yield handle
    finally:
        os.close(handle)
