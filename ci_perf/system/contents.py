"""States and digests of files and folders; the worker that records and the parent compare them."""

import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from ci_perf.model.program import digest

# A larger file beyond the repository is known by its length and the time of its last change.
_LARGEST_OUTSIDE = 2**26
_SECTION = re.compile(rb"^\s*\[(.*)\]", re.MULTILINE)


def find_state(path: str) -> os.stat_result | None:
    """Return what the kernel says of a path, links not followed; `None` where nothing is there."""
    try:
        return os.lstat(path)
    except (OSError, ValueError):
        return None


def describe_state(state: os.stat_result) -> str:
    """Return what changes whenever a file is written or replaced."""
    return f"{state.st_ino} {state.st_size} {state.st_mtime_ns}"


def digest_entries(entries: Iterable[str]) -> str:
    """Return the digest of a folder's entries: a slash ends a folder's name, an "@" a link's."""
    counted = (each for each in entries if each not in {"__pycache__/", ".git/", ".git"})
    kept = sorted(each for each in counted if not each.endswith(".pyc"))
    return digest("\0".join(kept).encode(errors="surrogateescape"))


def digest_folder(path: str) -> str:
    """Return the digest of the entries of a folder on this machine. Raises OSError."""
    with os.scandir(path) as entries:
        return digest_entries(
            each.name
            + ("@" if each.is_symlink() else "/" if each.is_dir(follow_symlinks=False) else "")
            for each in entries
        )


def digest_outside(path: str) -> str:
    """Return the digest of a file or a folder beyond the repository, "" where there is neither.

    Raises OSError and ValueError for what cannot be compared.
    """
    if os.path.isdir(path):
        return digest_folder(path)
    if not os.path.lexists(path):
        return ""
    state = os.stat(path)
    if not stat.S_ISREG(state.st_mode):
        raise ValueError("it is no regular file")
    if state.st_size > _LARGEST_OUTSIDE:
        return digest(b"%d %d" % (state.st_size, state.st_mtime_ns))
    return digest(Path(path).read_bytes())


def find_matches(
    names: Iterable[str], entries: Iterable[str], read: Callable[[str], bytes | None]
) -> list[str]:
    """Return the entries of a folder that one of these names of modules and files stands for.

    A name that begins with "*" stands for all entries that end so: "*.dist-info". What an editable
    install leaves beside the sources counts only with plugins, which `read` finds in it: git does
    not know it, and what a program reads of it is recorded by itself.
    """
    asked = set(names)
    endings = tuple(name[1:] for name in asked if name.startswith("*"))
    matches = []
    for entry in sorted(entries):
        is_asked = entry in asked or entry.partition(".")[0] in asked or entry.endswith(endings)
        if not is_asked or entry == "__pycache__":
            continue
        if entry.endswith(".egg-info"):
            points = _SECTION.findall(read(f"{entry}/entry_points.txt") or b"")
            if {*points} <= {b"console_scripts", b"gui_scripts"}:
                continue
        matches.append(entry)
    return matches
