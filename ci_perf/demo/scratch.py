"""The folder that the demo plays in: empty at first, gone afterwards unless it is kept."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ci_perf.errors import CannotWriteError, UsageError


@contextmanager
def folder(keep: Path | None) -> Iterator[Path]:
    """Give a new folder: `keep`, or one that is removed however the demo ends.

    Raises UsageError when `keep` holds something already, CannotWriteError when it cannot be made.
    """
    if keep is not None:
        yield _made(keep)
        return
    with tempfile.TemporaryDirectory(prefix="ci-perf-demo-", ignore_cleanup_errors=True) as name:
        yield Path(name)


def copy_example(example: Path, target: Path) -> None:
    """Copy the example project, without what Python left in it."""
    shutil.copytree(
        example, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )


def _made(keep: Path) -> Path:
    if keep.exists() and not (keep.is_dir() and not any(keep.iterdir())):
        raise UsageError(
            f"--keep {keep}: expected a folder that is empty or does not exist yet, found "
            "something there; choose another, or remove it"
        )
    try:
        keep.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotWriteError(f"--keep {keep}: cannot be made: {error.strerror}") from None
    return keep.resolve()
