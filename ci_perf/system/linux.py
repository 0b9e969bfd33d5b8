"""Requests to the Linux kernel that Python has no function for; elsewhere they do nothing."""

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterator

# linux/prctl.h
_SET_PDEATHSIG = 1
_SET_DUMPABLE = 4
_SET_CHILD_SUBREAPER = 36
_GET_CHILD_SUBREAPER = 37


def end_with_parent(parent: int) -> None:
    """Have this process killed when its parent dies, however that dies.

    `parent` is the id of the parent: the kernel does not notice one that has died already.
    """
    if _prctl(_SET_PDEATHSIG, signal.SIGKILL) and os.getppid() != parent:
        os._exit(1)


def forbid_inspection() -> None:
    """Keep processes of the same user from reading this one: environment, memory, open files.

    `/proc/PID/environ` keeps what a process was started with, whatever its children are not given.
    A program that this process executes can be read again. Root can read everything (prctl(2)).
    """
    _prctl(_SET_DUMPABLE, 0)


@contextlib.contextmanager
def adopting_orphans() -> Iterator[None]:
    """Within, a descendant whose parent dies becomes our child instead of the system's."""
    before = ctypes.c_int(0)
    _prctl(_GET_CHILD_SUBREAPER, ctypes.byref(before))
    _prctl(_SET_CHILD_SUBREAPER, 1)
    try:
        yield
    finally:
        _prctl(_SET_CHILD_SUBREAPER, before.value)


def _prctl(option: int, argument: object) -> bool:
    """Whether the kernel has accepted the request."""
    try:
        return bool(ctypes.CDLL(None).prctl(option, argument, 0, 0, 0) == 0)
    except (AttributeError, OSError):  # not Linux
        return False
