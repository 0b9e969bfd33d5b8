"""GitHub's own parts are written for Node: whether they are here, and what to do when not."""

import functools
import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
OLDEST = 20
# Set where nothing may be left out: then a missing part fails instead of skipping.
REQUIRED = "REQUIRE_NODE"


@functools.cache
def missing():
    """Say what keeps us from using Node; nothing, if all is there."""
    node = shutil.which("node")
    if node is None:
        return "no `node` on PATH"
    version = subprocess.run([node, "--version"], check=True, capture_output=True, text=True).stdout
    if int(version.lstrip("v").partition(".")[0]) < OLDEST:
        return f"node {OLDEST} or newer is needed, found {version.strip()}"
    if not (HERE / "node_modules/@actions/expressions").is_dir():
        return "GitHub's parts are not installed; `make node` does it"
    return ""


def require():
    """Skip a test that needs Node where it is missing, or fail where nothing may be skipped."""
    if reason := missing():
        if os.environ.get(REQUIRED):
            pytest.fail(f"{REQUIRED} is set, but {reason}")
        pytest.skip(reason)
