"""`ci-perf bisect --over`: a planted ladder of versions of one package, each in a folder."""

import json
import sys

import pytest

from ci_perf.features.bisect import versions
from tests import repositories
from tests.projects import NAP, NAP_SETTINGS, Project

# What installs a version: the third one and later ones are slow. The fifth is as the fourth.
INSTALL = """
import pathlib, sys
folder, version = sys.argv[1:3]
if version == "broken":
    sys.exit("no such version")
seconds = 0.012 if version >= "1.2" else 0.003
pathlib.Path(folder, "product.py").write_text(f"SECONDS = {seconds}\\n")
info = pathlib.Path(folder, f"product-{version}.dist-info")
info.mkdir()
info.joinpath("METADATA").write_text(f"Name: product\\nVersion: {version}\\n")
"""


@pytest.fixture
def project(tmp_path):
    """A repository of one commit, whose workload needs the package."""
    git = repositories.init(tmp_path / "project")
    Project(git.root).workload("nap", NAP).suite("nap", settings=NAP_SETTINGS, device="cpu")
    git.commit(README="Mine.")
    (tmp_path / "install.py").write_text(INSTALL)
    return Project(git.root)


def bisect(project, versions, *names, setup="{folder} {version}", **environment):
    install = f"{sys.executable} {project.root.parent / 'install.py'} {setup}"
    words = ["--over", f"product={versions}", "--setup", install, "--wait", "0s"]
    return project.run("bisect", *(names or ["nap"]), *words, "--format", "json", **environment)


def test_the_version_that_made_it_slower_is_the_step_of_a_ladder_of_five(project):
    done = bisect(project, "1.0,1.1,1.2,1.3,1.4")

    assert done.code == 0, done.err + done.out
    answer = json.loads(done.out)
    low, high = (answer["commits"][answer[place]]["commit"]["id"] for place in ("low", "high"))
    assert (answer["over"], low, high) == ("product", "1.1", "1.2")
    assert repositories.Repository(project.root).worktrees() == [str(project.root)]


@pytest.mark.parametrize(
    ("versions", "names", "setup", "said"),
    [
        ("1.0", ["nap"], "{folder} {version}", "expected a package and two or more different"),
        ("1.0,1.0", ["nap"], "{folder} {version}", "expected a package and two or more different"),
        ("1.0,1.2; rm", ["nap"], "{folder} {version}", "expected a package and two or more"),
        ("1.0,1.2", ["nap"], "{version}", "expected a command with {folder} and {version}"),
        ("1.0,1.2", ["nap", "main", "it"], "{folder} {version}", "expected WORKLOAD, found nap"),
        ("1.0,broken", ["nap"], "{folder} {version}", "setup of broken: expected"),
        (
            "1.0,1.2",
            ["nap"],
            "{folder} 1.0 {version}",
            "expected it to install product 1.2, found 1.0",
        ),
    ],
)
def test_what_is_no_line_of_versions_is_refused(project, versions, names, setup, said):
    done = bisect(project, versions, *names, setup=setup)

    assert done.code in {2, 3}
    assert said in done.err


@pytest.mark.parametrize(
    ("installed", "asked", "is_same"),
    [
        ("2.12.0", "2.12", True),
        ("2.12.0+cpu", "2.12.0", True),
        ("2.12.0+cpu", "2.12.0+cu130", False),
        ("2.12.1", "2.12", False),
        ("2.10", "2.1", False),
        ("", "2.12", False),
    ],
)
def test_a_version_is_the_one_that_pip_installs_for_it(installed, asked, is_same):
    assert versions.is_version(installed, asked) is is_same
