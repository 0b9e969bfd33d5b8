"""Where data sets are kept between runs."""

import os
import tempfile
from pathlib import Path


def folder() -> str:
    """Where data sets are kept: CI_PERF_DATA_DIR (a mount, say), else the user's cache."""
    return os.environ.get("CI_PERF_DATA_DIR") or str(Path(_cache(), "ci-perf", "data"))


def _cache() -> Path:
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen)
    try:
        return Path.home() / ".cache"
    except RuntimeError:  # a container runs as a user without a name and without HOME
        return Path(tempfile.gettempdir(), f"ci-perf-cache-{os.getuid()}")
