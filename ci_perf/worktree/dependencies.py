"""Which files say what is installed, and differ from a commit: both sides share the packages."""

import contextlib
import os

from ci_perf.errors import CiPerfError
from ci_perf.program import dependencies
from ci_perf.system import git
from ci_perf.worktree.merge_base import Start

# Of a large tree on a slow disk.
_ANSWER_S = 300.0
_MOST = 12
_PATHS = tuple(f":(top,icase,glob)**/{name}" for name in dependencies.NAMES)


def changed(start: Start) -> tuple[str, ...]:
    """Name the files that may ask for other packages than in the commit; the first of many.

    They are as checked out, and named below the top of the repository. Raises CiPerfError.
    """
    names = {
        *_listed(start, "diff", "--name-only", "--no-renames", "-z", start.commit),
        *_listed(start, "ls-files", "--others", "--exclude-standard", "-z"),
    }
    asking = [name for name in sorted(names) if _asks_for_others(start, name)]
    return tuple(os.fsencode(name).decode(errors="replace") for name in asking[:_MOST])


def _listed(start: Start, *command: str) -> list[str]:
    said = git.read(start.top, *command, "--", *_PATHS, timeout_s=_ANSWER_S)
    return [os.fsdecode(name) for name in said.split(b"\0") if name]


def _asks_for_others(start: Start, name: str) -> bool:
    before = after = None
    with contextlib.suppress(CiPerfError):
        before = git.read(start.top, "show", f"{start.commit}:{name}", timeout_s=_ANSWER_S)
    with contextlib.suppress(OSError):
        after = (start.top / name).read_bytes()
    return dependencies.ask_for_others(name, before, after)
