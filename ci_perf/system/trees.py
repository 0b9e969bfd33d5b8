"""Remove a folder that strangers could fill: however deep it is, whatever rights are missing."""

import contextlib
import shutil
from pathlib import Path

from ci_perf.system import processes

# Millions of files on a slow disk.
_PATIENCE_S = 600.0


def remove(path: Path) -> None:
    """Remove a folder, a file or a link, as far as possible. No link is followed.

    A tree that Python does not get through, for its depth or for want of rights, is left to the
    tools of the system: they do not recurse, and put the rights right.
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
            processes.capture(["chmod", "-R", "u+rwX", "--", str(path)], timeout_s=_PATIENCE_S)
            processes.capture(["rm", "-rf", "--", str(path)], timeout_s=_PATIENCE_S)
