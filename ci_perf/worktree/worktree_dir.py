"""The folder of the base's worktree: where it lies, and how git forgets it when it is removed.

It lies on the file system of the head, so that files of both sides take the same time. Its path is
as long as the head's: frames and arguments hold paths, so that a longer one moves what is in
memory.
"""

import contextlib
import errno
import functools
import os
import re
import secrets
import string
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from ci_perf.errors import CannotWriteError, CiPerfError
from ci_perf.system import git, scratch
from ci_perf.system.child import Cookie

# git keeps it with the worktree, so that ours are recognized by more than a name.
REASON = "ci-perf: the base of a comparison, removed at its end"

_PREFIX = "ci-perf-base-"
# A folder of ours where git keeps the repository.
_IN_GIT = "ci-perf"
_RANDOM = 8
_LETTERS = string.ascii_lowercase + string.digits
_OURS = re.compile(f"{_PREFIX}[{_LETTERS}]{{{_RANDOM}}}_*")
_LONGEST_NAME = 255
# Enough to find a free name even of a single one of 36 letters.
_TRIES = 100

# The owner of a folder that is gone may run on another host.
_FORGOTTEN_S = 24 * 3600.0


@contextlib.contextmanager
def claim_folder(top: Path) -> Iterator[Path]:
    """Provide an empty folder beside the repository at `top`, with a path of the same length.

    Where there can be none, it lies elsewhere or has another length. The folder is removed
    afterwards, with what git knows of a worktree in it. Raises CannotWriteError.
    """
    candidates = _candidates(top)
    try:
        folder = scratch.claim(lambda: _create_folder(candidates))
    except OSError as error:
        raise CannotWriteError(
            f"{error.filename}: cannot be made: {error.strerror}; TMPDIR names another place for "
            "the base's files"
        ) from None
    try:
        yield folder.path
    finally:
        _remove(top, folder.path)
        os.close(folder.handle)


def cookie(path: Path) -> Cookie:
    """Mark the processes that work on a folder, so that sweeping finds them."""
    return Cookie(variable=scratch.COOKIE, value=str(path))


def sweep(top: Path) -> None:
    """Remove the folders of owners that were killed, as far as possible.

    They are found by name, too: their repository may be gone, as on a cleaned runner.
    """
    named = (path for parent in _list_parents(top) for path in parent.glob(f"{_PREFIX}*"))
    ours = {path for path in named if _OURS.fullmatch(path.name)}
    for path in ours.union(_known_to_git(top)):
        with contextlib.suppress(OSError, CiPerfError):
            try:
                scratch.sweep_folder(path, cookie(path), functools.partial(_remove, top))
            except FileNotFoundError:
                if _is_forgotten(top, path):
                    _forget(top, path)


def _known_to_git(top: Path) -> Iterator[Path]:
    """Yield the worktrees of this repository that are ours."""
    with contextlib.suppress(CiPerfError):
        listed = git.run(top, "worktree", "list", "--porcelain").out
        for entry in listed.split("\n\n"):
            if f"\nlocked {REASON}\n" in f"{entry}\n":
                yield Path(entry.splitlines()[0].removeprefix("worktree "))


def _is_forgotten(top: Path, path: Path) -> bool:
    """Whether git has known the worktree of this folder for long."""
    common = git.run(top, "rev-parse", "--git-common-dir").out
    for note in (top / common).glob("worktrees/*/gitdir"):
        if note.read_text(errors="replace").strip() == str(path / ".git"):
            return time.time() - note.stat().st_mtime > _FORGOTTEN_S
    return False


def _create_folder(candidates: Iterator[Path]) -> Path:
    """Create the first folder that can be created. Raises OSError."""
    reason = OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    for path in candidates:
        try:
            if _is_in_git(path):
                path.parent.mkdir(exist_ok=True)
            path.mkdir(mode=0o700)
        except OSError as error:
            reason = error
        else:
            return path
    raise reason


def _candidates(top: Path) -> Iterator[Path]:
    """Yield paths, best first: on the file system of `top`, then of its length, then near to it."""
    length, least = len(os.fsencode(top)), len(_PREFIX) + _RANDOM
    parents = _list_parents(top)
    near = [parent for parent in parents if _is_same_disk(parent, top)]
    for group in (near, [parent for parent in parents if parent not in near]):
        for parent in group:
            letters = length - len(os.fsencode(parent / "-")) + 1
            if 1 <= letters <= _LONGEST_NAME:
                yield from (parent / _name(letters) for _ in range(_TRIES))
        for parent in group:
            yield from (parent / _name(least) for _ in range(_TRIES))


def _list_parents(top: Path) -> list[Path]:
    """Return the folders in which the base may lie, best first."""
    common = git.run(top, "rev-parse", "--git-common-dir").out
    # Under the name by which git will know it.
    temporary = Path(os.path.realpath(tempfile.gettempdir()))
    return [*([top.parent] if top.parent != top else []), temporary, top / common / _IN_GIT]


def _is_in_git(path: Path) -> bool:
    return path.parent.name == _IN_GIT and (path.parents[1] / "HEAD").is_file()


def _is_same_disk(first: Path, second: Path) -> bool:
    """Whether two folders, which need not be there yet, lie on one file system."""
    places = [
        next(place for place in (path, *path.parents) if place.exists()) for path in (first, second)
    ]
    return places[0].stat().st_dev == places[1].stat().st_dev


def _name(length: int) -> str:
    """Return a random name: with our prefix if that fits, else of letters."""
    letters = [secrets.choice(_LETTERS) for _ in range(length)]
    if length < len(_PREFIX) + _RANDOM:
        return "".join(letters)
    return f"{_PREFIX}{''.join(letters[:_RANDOM])}".ljust(length, "_")


def _remove(top: Path, path: Path) -> None:
    """Remove a folder, whatever its code has done to it, and have git forget it."""
    scratch.remove_tree(path)
    if _is_in_git(path):
        with contextlib.suppress(OSError):  # another base lies there
            path.parent.rmdir()
    _forget(top, path)


def _forget(top: Path, path: Path) -> None:
    """Have git forget this worktree. Only this one: `prune` would forget others' as well."""
    # Twice: also one that is locked.
    with contextlib.suppress(CiPerfError):
        git.run(top, "worktree", "remove", "--force", "--force", str(path))
