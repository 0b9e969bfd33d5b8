"""What git says of the code under measure. Reads; never writes."""

import os
import subprocess
from pathlib import Path

from ci_perf.model.run import Source

UNKNOWN = "unknown"
# Longer than any name that a person gives a branch; the environment of a CI may hold more.
_MAX_CHARS = 200


def source(root: Path) -> Source:
    """Describe the commit that is checked out at `root`; "unknown" outside a repository.

    Where git cannot be asked (no git in the container, a folder of another owner), GitHub's own
    variables answer, and nothing is claimed of changed files: ``dirty`` is then false for want of
    knowledge.
    """
    commit = _ask(root, "rev-parse", "HEAD") or os.environ.get("GITHUB_SHA")
    branch = os.environ.get("GITHUB_HEAD_REF") or _ask(root, "rev-parse", "--abbrev-ref", "HEAD")
    return Source(
        commit=_short(commit) or UNKNOWN,
        branch=_short(branch) or UNKNOWN,
        # Untracked files are mostly results of ours; a changed tracked file is another program.
        dirty=bool(_ask(root, "status", "--porcelain", "--untracked-files=no")),
    )


def _short(name: str | None) -> str:
    """Fit a name into a document: some 200 characters of Unicode."""
    whole = (name or "").encode(errors="replace").decode()
    return whole if len(whole) <= _MAX_CHARS else whole[: _MAX_CHARS - 1] + "…"


def _ask(root: Path, *arguments: str) -> str:
    """Return what git answers, or nothing when it cannot."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            encoding="utf-8",
            errors="replace",  # a branch may be called in any encoding
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
