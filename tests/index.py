"""The package index that pip is set to, as a user's pip asks it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
_OFFLINE = re.compile("Could not fetch|Failed to establish|Temporary failure|ProxyError")


def install(python, *packages):
    """Install packages and what they require, in the versions that `make setup` takes."""
    done = subprocess.run(
        [python, "-m", "pip", "install", "-c", ROOT / "constraints.txt", *packages],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        skip_if_offline(done.stdout + done.stderr)
    assert done.returncode == 0, done.stderr


def skip_if_offline(printed):
    """Skip a test whose pip could not reach the index; with REQUIRE_INDEX it fails."""
    if _OFFLINE.search(printed) and not os.environ.get("REQUIRE_INDEX"):
        pytest.skip("the package index cannot be reached")
