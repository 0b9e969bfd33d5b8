"""`ci-perf bisect --over`: a planted ladder of versions of one package, each in a folder."""

import json
import sys
from pathlib import Path

import pytest

from ci_perf.features.bisect import versions
from ci_perf.features.bisect.versions import VersionSessions
from ci_perf.gate.options import MeasureOptions
from ci_perf.session import Listener
from tests import repositories
from tests.histories import in_turns, pairs
from tests.projects import NAP, NAP_SETTINGS, Project
from tests.runs import STEADY, a_measured, a_run

# What installs a version: the third one and later ones are slow, or those from another one on.
INSTALL = """
import pathlib, sys
folder, version, slow = (*sys.argv[1:], "1.2")[:3]
if version == "broken":
    sys.exit("no such version")
seconds = 0.012 if version >= slow else 0.003
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
    folders = project.root.parent / "my files"
    folders.mkdir()

    done = bisect(project, "1.0,1.1,1.2,1.3,1.4", TMPDIR=str(folders))

    assert done.code == 0, done.err + done.out
    answer = json.loads(done.out)
    low, high = (answer["commits"][answer[place]]["commit"]["id"] for place in ("low", "high"))
    assert (answer["over"], low, high) == ("product", "1.1", "1.2")
    assert repositories.Repository(project.root).worktrees() == [str(project.root)]


class Recorded(VersionSessions):
    """Answers by what `setup` has put into the folders of both sides; launches nothing."""

    def run(self, commit, base, judge, **more):
        del commit, judge, more
        folders = (base.python.packages[0], self._options.packages[0])
        before, after = (Path(folder, "product.py").read_text().split()[-1] for folder in folders)
        run = a_run(a_measured("nap", *STEADY))
        return in_turns(run, pairs(float(after) / float(before)), workload="nap")


@pytest.mark.parametrize("culprit", [1, 2, 3, 4, 5])
def test_each_step_of_a_ladder_can_be_the_culprit(project, culprit):
    line = [f"1.{number}" for number in range(6)]
    install = f"{sys.executable} {project.root.parent / 'install.py'}"
    setup = f"{install} {{folder}} {{version}} {line[culprit]} https://me:hunter2@it.example"
    said: list[str] = []

    answer = versions.search_versions(
        MeasureOptions(root=project.root, select=("nap",)),
        f"product={','.join(line)}",
        setup,
        metric="",
        notify=said.append,
        listener=Listener,
        sessions=Recorded,
    )

    assert (answer.outcome, answer.low, answer.high) == ("found", culprit - 1, culprit)
    assert answer.commits[culprit].commit.id == line[culprit]
    assert answer.setup == setup.replace("me:hunter2", "***")
    assert f"1.0 {line[culprit]} https://***@it.example" in "".join(said)
    assert "hunter2" not in "".join(said)


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
    done = bisect(project, versions, *names, setup=f"{setup} 1.2 https://me:hunter2@it.example")

    assert done.code in {2, 3}
    assert said in done.err
    assert "hunter2" not in done.err + done.out


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
