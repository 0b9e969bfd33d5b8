"""Folders for temporary files: locked by their owner, removed at its end, swept after its death.

The lock ends with its owner, however that dies. So a folder whose lock is free belonged to a
process that was killed: the next run removes it, with the processes that bear its name. What a
child has put into such a folder is read with suspicion.
"""

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from ci_perf.errors import InvalidFileError
from ci_perf.model import codec
from ci_perf.system import files, lock, processes
from ci_perf.system.child import Cookie

T = TypeVar("T", bound=msgspec.Struct)

# Every process that works on a folder inherits the folder's name in this variable.
COOKIE = "CI_PERF_LAUNCH"

_PREFIX = "ci-perf-launch-"

# To remove millions of files on a slow disk.
_REMOVE_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Scratch:
    """A locked folder. Reading goes through the handle, whatever now stands at the path."""

    path: Path
    handle: int

    def read(self, name: str, kind: type[T]) -> T | None:
        """Return the document that a child left, `None` without one. Raises InvalidFileError."""
        data = self.read_bytes(name, limit=files.MAX_BYTES)
        return None if data is None else codec.decode(data, kind, name=name)

    def read_bytes(self, name: str, *, limit: int) -> bytes | None:
        """Return what a child left, `None` without it. Raises InvalidFileError.

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
    """Create a folder of a launch, and remove it afterwards. Raises OSError."""
    scratch = claim(lambda: Path(tempfile.mkdtemp(prefix=_PREFIX)))
    try:
        yield scratch
    finally:
        remove_tree(scratch.path)
        os.close(scratch.handle)


def sweep() -> None:
    """Remove the folders of launches that were killed. Raises OSError: no place for folders."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            sweep_folder(path, cookie_of_launch(path), remove_tree)


def cookie_of_launch(path: Path) -> Cookie:
    """Mark the processes of the launch whose folder this is."""
    return Cookie(variable=COOKIE, value=path.name)


def is_ours(name: str) -> bool:
    """Whether a folder of a launch may have this name: TMPDIR may lie in the checkout."""
    return name.startswith(_PREFIX)


def claim(create: Callable[[], Path]) -> Scratch:
    """Create a folder and lock it; another one if a sweep has removed it in between.

    Raises OSError, and whatever `create` raises.
    """
    while True:
        path = create()
        try:
            handle = lock.open_folder(path)
        except FileNotFoundError:
            continue
        with contextlib.suppress(OSError):  # a file system without locks is never swept either
            lock.wait_for(handle)
        if path.exists():
            return Scratch(path, handle)
        os.close(handle)


def sweep_folder(path: Path, cookie: Cookie, remove: Callable[[Path], None]) -> None:
    """Kill the processes that bear the cookie and remove the folder, unless it has an owner.

    Raises OSError: it is not there, or cannot be looked at.
    """
    handle = lock.open_folder(path)
    try:
        if os.fstat(handle).st_uid == os.geteuid() and lock.try_to_get(handle):
            for pid in processes.find_carrying(cookie.variable, cookie.value):
                processes.kill(pid)
            remove(path)
    finally:
        os.close(handle)


def remove_tree(path: Path) -> None:
    """Remove a folder that strangers could fill, a file or a link; no link is followed.

    It removes as much as it can. If Python cannot get through a tree, for its depth or for want of
    rights, the tools of the system remove it: they do not recurse, and they set the rights first.
    """
    with contextlib.suppress(OSError):
        if path.is_symlink() or path.is_file():
            path.unlink()
            return
        path.chmod(0o700)
    with contextlib.suppress(RecursionError):
        shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        with contextlib.suppress(OSError):  # no such tools, or no end in time
            for command in (["chmod", "-R", "u+rwX", "--"], ["rm", "-rf", "--"]):
                processes.capture([*command, str(path)], timeout_s=_REMOVE_TIMEOUT_S)
