"""What accepting changes, as a patch: for `git apply`, where nobody has ci-perf at hand."""

import difflib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ci_perf.baselines import layout
from ci_perf.baselines.accept import Acceptance, Action
from ci_perf.errors import UsageError
from ci_perf.system import files, git

_NO_END = "\\ No newline at end of file\n"


def write(file: Path, accepted: Iterable[Acceptance], *, root: Path) -> bool:
    """Write a patch of the repository that `root` lies in; return whether there is anything in it.

    Raises UsageError (baselines outside of it) and CannotWriteError.
    """
    top = _top(root)
    changed = [acceptance for acceptance in accepted if acceptance.action is not Action.KEPT]
    parts = [_patch_of(acceptance, top) for acceptance in changed]
    if parts:
        files.write_bytes(file, "".join(parts).encode())
    return bool(parts)


def _patch_of(acceptance: Acceptance, top: Path) -> str:
    path = _inside(acceptance.path, top)
    content = acceptance.path.read_bytes() if acceptance.path.exists() else b""
    before = _lines(content.decode(errors="replace"))
    after = _lines(layout.render(acceptance.baseline))
    head = [f"diff --git a/{path} b/{path}\n"]
    head += [] if before else ["new file mode 100644\n"]
    # A name with spaces ends at a tab.
    tab = "\t" if " " in path else ""
    old, new = (f"a/{path}{tab}" if before else "/dev/null"), f"b/{path}{tab}"
    body = difflib.unified_diff(before, after, old, new)
    return "".join([*head, *_ended(body)])


def _lines(text: str) -> list[str]:
    """Split where git does: at line feeds, and nowhere else."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _ended(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield line if line.endswith("\n") else f"{line}\n{_NO_END}"


def _inside(path: Path, top: Path) -> str:
    try:
        return Path(os.path.realpath(path)).relative_to(os.path.realpath(top)).as_posix()
    except ValueError:
        raise UsageError(
            f"--patch: expected baselines in the repository {top}, found {path} outside of it"
        ) from None


def _top(root: Path) -> Path:
    """Return the top of the repository; outside of one, a patch is of the folder itself."""
    answer = git.run(root, "rev-parse", "--show-toplevel")
    return Path(answer.out) if answer.code == 0 else root
