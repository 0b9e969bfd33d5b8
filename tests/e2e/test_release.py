"""release.yml up to the upload, and the announcement: its real scripts, in a copy of the checkout.

`make test-all` is not run: it would run this. GitHub's own Actions are not either.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from ci_perf.version import __version__
from tests import index

ROOT = Path(__file__).parents[2]
TAG = f"v{__version__}"
MAKE = '#!/bin/sh\n[ "$1" = test-all ] && exit\nexec {make} PYTHON={python} "$@"\n'
GH = """#!/bin/sh
echo "$@" > said
case $2 in
  view) test -e announced ;;
  create) ! test -e announced && touch announced ;;
esac
"""


@pytest.fixture
def checkout(tmp_path):
    """The files of this checkout, as a person would have prepared them for a release."""
    listed = ("git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listed, check=True, capture_output=True, text=True).stdout
    root = tmp_path / "checkout"
    for name in filter(None, names.split("\0")):
        if (ROOT / name).exists():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, root / name)
    for name, old, new in (
        ("pyproject.toml", "OWNER/", "octo/"),
        ("CHANGELOG.md", "## [Unreleased]\n", f"## [Unreleased]\n\n## [{__version__}] - 2026\n"),
    ):
        text = (root / name).read_text()
        assert old in text
        (root / name).write_text(text.replace(old, new))
    return root


@pytest.fixture
def play(checkout, tmp_path):
    """Return a function that runs the scripts of a job until one fails; it returns them all."""
    tools = tmp_path / "tools"
    tools.mkdir()
    make = MAKE.format(make=shutil.which("make"), python=sys.executable)
    for name, text in (("make", make), ("gh", GH)):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    python = Path(sys.executable).parent
    given = {
        "PATH": f"{tools}:{python}:{os.environ['PATH']}",
        "GITHUB_REF_NAME": TAG,
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "octo/ci_perf",
    }

    def play_job(name, **changed):
        workflow = YAML(typ="safe").load((checkout / ".github/workflows/release.yml").read_text())
        done = []
        for script in [one["run"] for one in workflow["jobs"][name]["steps"] if "run" in one]:
            done.append(
                subprocess.run(
                    ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", script],
                    check=False,
                    capture_output=True,
                    cwd=checkout,
                    env={**os.environ, **given, **changed},
                    text=True,
                )
            )
            if done[-1].returncode:
                break
        if done[-1].returncode:
            index.skip_if_offline(done[-1].stdout + done[-1].stderr)
        return done

    return play_job


def test_a_tag_is_built_and_announced_with_its_notes(checkout, play):
    steps = play("build")

    assert [step.returncode for step in steps] == [0] * 4, steps[-1].stdout + steps[-1].stderr
    assert re.search(rf"^ci-perf.* {re.escape(__version__)}$", steps[2].stdout, re.MULTILINE)
    built = {f"ci_perf-{__version__}.tar.gz", f"ci_perf-{__version__}-py3-none-any.whl"}
    assert {path.name for path in (checkout / "dist").iterdir()} == built
    assert f"](https://github.com/octo/ci_perf/blob/{TAG}/docs/" in (
        (checkout / "notes.md").read_text()
    )

    (announced,) = play("announce")

    assert announced.returncode == 0
    said = (checkout / "said").read_text().split()
    assert said[:3] == ["release", "create", TAG]
    assert {f"dist/{name}" for name in built} < set(said)

    (again,) = play("announce")

    assert again.returncode == 0
    assert (checkout / "said").read_text().startswith(f"release upload {TAG} --clobber dist/")


def test_a_tag_of_another_version_or_place_is_refused_before_anything_is_tested(play):
    for changed in ({"GITHUB_REF_NAME": "v99.0.0"}, {"GITHUB_REPOSITORY": "else/where"}):
        (refused,) = play("build", **changed)

        assert refused.returncode == 1
        assert "expected" in refused.stderr
