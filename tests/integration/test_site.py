"""The site of the documents is built strictly: each page has its place, each link a target."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "suite.toml" in (tmp_path / "llms.txt").read_text(encoding="utf-8")
    readme = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "github.com/OWNER/ci_perf/blob/main/CHANGELOG.md" in readme
    # A page loads nothing from elsewhere.
    assert 'src="http' not in readme
