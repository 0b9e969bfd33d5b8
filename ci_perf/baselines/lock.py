"""One writer at a time: who reads baselines to write them again holds their folder meanwhile."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from ci_perf.errors import CannotWriteError
from ci_perf.system import files


@contextlib.contextmanager
def held(root: Path) -> Iterator[None]:
    """Wait until nobody else writes below `root`, which is made if need be, and keep others out.

    The kernel guards the folder itself, so that nothing is left in git, nor after a crash.
    """
    files.make_folder(root)
    try:
        folder = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise CannotWriteError(f"{root}: cannot be locked: {error.strerror}") from None
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
