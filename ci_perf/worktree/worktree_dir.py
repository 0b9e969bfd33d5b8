"""The folder of the base's worktree: where it lies, and how git forgets it when it is removed.

Its path is as long as the head's: frames and arguments hold paths, so that a longer one moves what
is in memory.
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

    Where there can be none, the path has another length. The folder is removed afterwards,
    with what git knows of a worktree in it. Raises CannotWriteError.
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
    """Remove the folders of owners that were killed, as far as possible."""
    for path in {*_left_in_temporary(), *_known_to_git(top)}:
        with contextlib.suppress(OSError, CiPerfError):
            _sweep(top, path)


def _sweep(top: Path, path: Path) -> None:
    try:
        scratch.sweep_folder(path, cookie(path), functools.partial(_remove, top))
    except FileNotFoundError:
        if _is_forgotten(top, path):
            _forget(top, path)


def _left_in_temporary() -> Iterator[Path]:
    """Yield folders whose name is ours. Their repository may be gone, as on a cleaned runner."""
    for path in _temporary().glob(f"{_PREFIX}*"):
        if _OURS.fullmatch(path.name):
            yield path


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
            path.mkdir(mode=0o700)
        except OSError as error:
            reason = error
        else:
            return path
    raise reason


def _candidates(top: Path) -> Iterator[Path]:
    """Yield paths, best first: of the right length with a name of ours, a sibling, any."""
    length, temporary = len(os.fsencode(top)), _temporary()
    least = len(_PREFIX) + _RANDOM
    for parent, shortest in ((temporary, least), (top.parent, 1), (temporary, 1)):
        letters = length - len(os.fsencode(parent / "-")) + 1
        if shortest <= letters <= _LONGEST_NAME and parent != top:
            yield from (parent / _name(letters) for _ in range(_TRIES))
    yield from (temporary / _name(least) for _ in range(_TRIES))


def _name(length: int) -> str:
    """Return a random name: with our prefix if that fits, else of letters."""
    letters = [secrets.choice(_LETTERS) for _ in range(length)]
    if length < len(_PREFIX) + _RANDOM:
        return "".join(letters)
    return f"{_PREFIX}{''.join(letters[:_RANDOM])}".ljust(length, "_")


def _temporary() -> Path:
    """Return the place for temporary files, under the name by which git will know it."""
    return Path(os.path.realpath(tempfile.gettempdir()))


def _remove(top: Path, path: Path) -> None:
    """Remove a folder, whatever its code has done to it, and have git forget it."""
    scratch.remove_tree(path)
    _forget(top, path)


def _forget(top: Path, path: Path) -> None:
    """Have git forget this worktree. Only this one: `prune` would forget others' as well."""
    # Twice: also one that is locked.
    with contextlib.suppress(CiPerfError):
        git.run(top, "worktree", "remove", "--force", "--force", str(path))
