"""Teaching one clone of a repository to merge baselines with ci-perf instead of line by line.

Half of it is committed (`.gitattributes` says which files), the other half belongs to the clone:
git runs no command that a repository brings along.
"""

import shlex
import subprocess
import sys
from pathlib import Path

from ci_perf.errors import CannotWriteError, UsageError
from ci_perf.system import files

NAME = "ci-perf"
ATTRIBUTES = ".gitattributes"


def install(baselines: Path) -> Path:
    """Configure the clone around the current folder; return the attributes file, to be committed.

    Raises UsageError (not in a repository, baselines outside it) and CannotWriteError.
    """
    root = _root()
    try:
        folder = baselines.resolve().relative_to(root.resolve())
    except ValueError:
        raise UsageError(
            f"--baselines {baselines}: expected a folder in the repository {root}, found one "
            "outside it, which git never merges"
        ) from None
    attributes = root / ATTRIBUTES
    _add(attributes, line(folder))
    _git("config", f"merge.{NAME}.name", "unite the sessions of both sides")
    _git("config", f"merge.{NAME}.driver", f"{_program()} baseline merge %O %A %B --path %P")
    return attributes


def line(folder: Path) -> str:
    """Return the line of `.gitattributes`: the files of workloads, and no other JSON there."""
    pattern = f"/{folder.as_posix()}/*/*/*.json"
    # git reads a pattern with spaces only within quotes.
    return f'"{pattern}" merge={NAME}' if " " in pattern else f"{pattern} merge={NAME}"


def _program() -> str:
    """Name this very installation: git merges where no virtual environment is active."""
    return f"{shlex.quote(sys.executable)} -m ci_perf"


def _root() -> Path:
    return Path(_git("rev-parse", "--show-toplevel").rstrip("\n"))


def _add(attributes: Path, wanted: str) -> None:
    text = files.read_text(attributes) if attributes.exists() else ""
    if wanted in text.splitlines():
        return
    gap = "" if not text or text.endswith("\n") else "\n"
    files.write_text(attributes, f"{text}{gap}{wanted}\n")


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        raise UsageError(f"git: cannot be started: {error.strerror}; install it first") from None
    if done.returncode == 0:
        return done.stdout
    what = f"git {arguments[0]}: {done.stderr.strip()}"
    if arguments[0] == "config":
        raise CannotWriteError(what)
    raise UsageError(f"{what}; run this within the repository that holds the baselines")
