"""Locks that the kernel releases when their owner ends, however that ends.

A folder can be locked itself, so that no file is left in it. A device has a lock file in one
folder of the whole host, so that one run at a time measures on it.
"""

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path

from ci_perf.errors import BusyError, CannotWriteError
from ci_perf.system import files

_POLL_S = 0.2
_OWNER_BYTES = 1000


def open_folder(path: Path) -> int:
    """Open a folder to lock it; a link is refused. Raises OSError."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def wait_for(handle: int) -> None:
    """Wait for the lock of an open file or folder. Raises OSError: its file system has no locks."""
    fcntl.flock(handle, fcntl.LOCK_EX)


def try_to_get(handle: int) -> bool:
    """Return whether the lock was free and is held now. Raises OSError as `wait_for` does."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def hold_folder(path: Path) -> Iterator[None]:
    """Wait for the lock of a folder, which is created if need be, and hold it within.

    Raises CannotWriteError.
    """
    files.make_folder(path)
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise CannotWriteError(f"{path}: cannot be locked: {error.strerror}") from None
    try:
        wait_for(handle)
        yield
    finally:
        os.close(handle)


def folder_of_devices() -> Path:
    """Return the folder of the lock files: CI_PERF_LOCK_DIR, else one for all users of the host."""
    chosen = os.environ.get("CI_PERF_LOCK_DIR")
    return Path(chosen) if chosen else Path(tempfile.gettempdir(), "ci-perf-locks")


@contextlib.contextmanager
def hold_devices(
    devices: Sequence[str],
    owner: str,
    *,
    where: Path,
    timeout_s: float,
    waiting: Callable[[str, str, float, float], None],
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Hold the locks of all `devices` for as long as the block lasts.

    They are taken in sorted order, so that two runs that want the same devices never wait for
    each other. `waiting(device, owner, waited_s, timeout_s)` is called again and again while
    somebody else holds one. Raises BusyError after `timeout_s`, and CannotWriteError when there can
    be no lock file.
    """
    start = clock()
    with contextlib.ExitStack() as stack:
        for device in sorted(set(devices)):
            file = stack.enter_context(_open(where, device))
            while not try_to_get(file.fileno()):
                waited_s = clock() - start
                waiting(device, _read(file), waited_s, timeout_s)
                if waited_s >= timeout_s:
                    raise BusyError(_too_late(device, _read(file), where, timeout_s))
                sleep(_POLL_S)
            with contextlib.suppress(OSError):  # for people: on a full disk the lock holds alone
                os.ftruncate(file.fileno(), 0)
                os.pwrite(file.fileno(), f"{owner}\n".encode(), 0)
        yield


def _open(where: Path, device: str) -> TextIOWrapper:
    """Open the lock file of a device for reading and writing; every user may lock it."""
    path = where / f"{device}.lock"
    try:
        if not where.is_dir():
            where.mkdir(parents=True, exist_ok=True)
            where.chmod(0o1777)
        # O_NONBLOCK: whatever lies there, to open it takes no time.
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        handle = os.open(path, flags, 0o666)
        if not stat.S_ISREG(mode := os.fstat(handle).st_mode):
            os.close(handle)
            raise CannotWriteError(
                f"{path}: expected a regular file, found {files.kind(mode)}; remove it, or name "
                "another folder with CI_PERF_LOCK_DIR"
            )
        with contextlib.suppress(PermissionError):  # somebody else's file, as it should be
            os.fchmod(handle, 0o666)
    except OSError as error:
        raise CannotWriteError(
            f"{path}: cannot be locked: {error.strerror}; CI_PERF_LOCK_DIR names another folder"
        ) from None
    # Every user may write there: bytes that are no text must not stop us from naming the owner.
    return os.fdopen(handle, "r+", errors="replace")


def _read(file: TextIOWrapper) -> str:
    file.seek(0)
    return file.read(_OWNER_BYTES).strip() or "somebody who has not said who they are"


def _too_late(device: str, owner: str, where: Path, timeout_s: float) -> str:
    return (
        f"{where / device}.lock: expected {device} to become free within {timeout_s:g} s, found it "
        f"held by {owner}; wait for that run, end it, or give more time with --wait; for "
        "runs that cannot disturb it, CI_PERF_LOCK_DIR names another folder of locks"
    )
