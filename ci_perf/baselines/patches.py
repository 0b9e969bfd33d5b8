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
    parts = [
        _patch_of(path, text, top) for acceptance in changed for path, text in _files(acceptance)
    ]
    parts = [part for part in parts if part]
    if parts:
        files.write_bytes(file, "".join(parts).encode())
    return bool(parts)


def _files(acceptance: Acceptance) -> Iterator[tuple[Path, str]]:
    yield acceptance.path, layout.render(acceptance.baseline)
    if acceptance.program is not None:
        yield layout.program_file(acceptance.path), layout.render_program(acceptance.program)


def _patch_of(path: Path, text: str, top: Path) -> str:
    """Return the patch that gives a file this text; empty where it has it already."""
    name = _inside(path, top)
    content = path.read_bytes() if path.exists() else b""
    before, after = _lines(content.decode(errors="replace")), _lines(text)
    if before == after:
        return ""
    head = [f"diff --git a/{name} b/{name}\n"]
    head += [] if before else ["new file mode 100644\n"]
    # A name with spaces ends at a tab.
    tab = "\t" if " " in name else ""
    old, new = (f"a/{name}{tab}" if before else "/dev/null"), f"b/{name}{tab}"
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
