"""A checkout that a container may change: a copy, thrown away with the run.

What the measured code leaves in the checkout itself would be met there by programs of this host: by
git, which runs what a folder `.git` in a submodule tells it to, and by whoever writes a report to a
file that has become a link.
"""

import shutil
import stat
from pathlib import Path

from ci_perf.errors import CannotWriteError
from ci_perf.system import scratch


def make(root: Path, target: Path) -> None:
    """Copy a checkout as it is, less git's own files. Raises CannotWriteError."""
    try:
        shutil.copytree(root, target, symlinks=True, ignore=_left_out)
    except RecursionError:
        raise CannotWriteError(
            f"{root}: expected to be copied for `setup`, found folders nested deeper than any tool "
            "of ours goes"
        ) from None
    except (OSError, shutil.Error) as error:
        raise CannotWriteError(
            f"{root}: expected to be copied to {target} for `setup`, found {_first(error)}; TMPDIR "
            "names another place for temporary files"
        ) from None


def _left_out(folder: str, names: list[str]) -> list[str]:
    """Leave out git's files, ours, and what is neither a file nor a folder nor a link."""
    return [
        name
        for name in names
        if name == ".git" or scratch.is_ours(name) or _is_special(Path(folder, name))
    ]


def _is_special(path: Path) -> bool:
    mode = path.lstat().st_mode
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def _first(error: OSError) -> str:
    """Say the first of what went wrong: a tree has many files."""
    if isinstance(error, shutil.Error) and error.args and error.args[0]:
        source, _, why = error.args[0][0]
        return f"{source}: {why}"
    return error.strerror or str(error)
