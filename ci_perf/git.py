"""What git says of the code under measure. Reads; never writes."""

import os
import subprocess
from pathlib import Path

from ci_perf.model.run import Source

UNKNOWN = "unknown"


def source(root: Path) -> Source:
    """Describe the commit that is checked out at `root`; "unknown" outside a repository.

    Where git cannot be asked (no git in the container, a folder of another owner), GitHub's own
    variables answer.
    """
    return Source(
        commit=_ask(root, "rev-parse", "HEAD") or os.environ.get("GITHUB_SHA") or UNKNOWN,
        branch=os.environ.get("GITHUB_HEAD_REF")
        or _ask(root, "rev-parse", "--abbrev-ref", "HEAD")
        or UNKNOWN,
        # Untracked files are mostly results of ours; a changed tracked file is another program.
        dirty=bool(_ask(root, "status", "--porcelain", "--untracked-files=no")),
    )


def _ask(root: Path, *arguments: str) -> str:
    """Return what git answers, or nothing when it cannot."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
