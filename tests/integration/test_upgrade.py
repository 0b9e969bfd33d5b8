"""`ci-perf check --base-python`: one commit under two environments, by real launches."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from ci_perf.errors import ExitCode
from ci_perf.version import __version__
from tests import repositories
from tests.projects import NAP, NAP_SETTINGS, Project

SITE = f"lib/python{sys.version_info.major}.{sys.version_info.minor}/site-packages"
# What ci_perf was installed with here: a second Python with a link to it has all of it.
OURS = sysconfig.get_path("purelib")


TEST = """
import time, product
def test_nap(benchmark):
    benchmark(time.sleep, product.SECONDS)
"""


def make_python(folder, *, seconds=0.003, version="1.0", has_ours=True):
    """Make a Python with a package `product`, which takes so many seconds a step; return it."""
    venv.create(folder, symlinks=True)
    site = folder / SITE
    (site / "product.py").write_text(f"SECONDS = {seconds}\n")
    info = site / f"product-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: product\nVersion: {version}\n")
    (info / "RECORD").write_text("product.py,,\n")
    if has_ours:
        # A folder that is added so runs its own .pth files, as that of an editable install.
        (site / "ours.pth").write_text(f"import site; site.addsitedir({OURS!r})\n")
    return folder / "bin" / "python"


@pytest.fixture
def project(tmp_path):
    """A repository with a commit: a suite of one workload, which imports `product`."""
    git = repositories.init(tmp_path / "project")
    project = Project(git.root)
    project.workload("nap", NAP).suite("nap", settings=NAP_SETTINGS, device="cpu")
    git.commit(README="Mine.")
    return project


def check(project, head, *arguments, path=os.environ["PATH"], verb="check"):
    """Check the commit beside itself; the Python `head` has ci_perf. Return how it ended."""
    command = [head, "-m", "ci_perf", verb, "--wait", "0s", *arguments]
    return subprocess.run(
        list(map(str, command)),
        cwd=project.root,
        env={
            **os.environ,
            "PATH": path,
            "NO_COLOR": "1",
            "CI_PERF_LOCK_DIR": str(project.root.parent),
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_slower_package_is_red_and_named_first(project, tmp_path):
    base = make_python(tmp_path / "old", version="1.0")
    head = make_python(tmp_path / "new", seconds=0.012, version="2.0")

    done = check(project, head, "--against", "HEAD", "--base-python", base)

    assert done.returncode == ExitCode.REGRESSED, done.stderr + done.stdout
    run = json.loads((project.root / "run.json").read_text())
    differences = run["interleaved"]["environment"]["differences"]
    assert differences == [{"name": "product", "base": "1.0", "head": "2.0"}]
    assert "product 1.0 → 2.0" in done.stdout.replace("`", "")
    # Nothing of it becomes a baseline.
    assert "ci-perf accept" not in done.stdout
    refused = project.run("accept", "run.json", "--reason", "Faster.")
    assert "another Python launched" in refused.err


@pytest.mark.parametrize(
    ("words", "workload", "seconds"),
    [
        (["--pytest", "test_it.py"], "test_it.test_nap", 0.003),
        (["--", "python", "it.py"], "command", 0.02),
    ],
    ids=["pytest", "command"],
)
def test_tests_and_commands_are_launched_by_the_python_of_their_side(
    project, tmp_path, words, workload, seconds
):
    project.root.joinpath("test_it.py").write_text(TEST)
    project.root.joinpath("it.py").write_text("import time, product; time.sleep(product.SECONDS)")
    repositories.Repository(project.root).commit()
    base = make_python(tmp_path / "old", seconds=seconds)
    head = make_python(tmp_path / "new", seconds=10 * seconds, version="2.0")
    named = ["--against", "HEAD", "--base-python", base, *words]

    done = check(project, head, *named, path=f"{head.parent}:{os.environ['PATH']}")

    assert done.returncode == ExitCode.REGRESSED, done.stderr + done.stdout
    assert "product 1.0 → 2.0" in done.stdout.replace("`", "")
    assert workload in done.stdout
    if workload == "command":
        assert "found that the head would run" in check(project, head, *named).stderr
    else:
        named[3] = make_python(tmp_path / "bare", has_ours=False)
        lacking = check(project, head, *named)
        assert lacking.returncode == ExitCode.NO_ANSWER, lacking.stderr + lacking.stdout
        assert "No module named" in lacking.stdout


def test_a_base_without_ci_perf_uses_this_one_and_is_launched(project, tmp_path):
    base = make_python(tmp_path / "old", has_ours=False)

    done = check(project, make_python(tmp_path / "new"), "--against", "HEAD", "--base-python", base)

    how = json.loads((project.root / "run.json").read_text())
    assert how["paired"][0]["pairs"], done.stderr + done.stdout  # the same program is no shortcut
    assert "It lacks ci_perf, so it used this one" in how["interleaved"]["notes"][0]
    names = [each["name"] for each in how["interleaved"]["environment"]["differences"]]
    assert names[0] == "torch"
    assert "msgspec" in names
    assert "product" not in names


def test_a_base_that_lacks_a_package_never_passes(project, tmp_path):
    base = make_python(tmp_path / "old")
    (tmp_path / "old" / SITE / "product.py").unlink()

    done = check(project, make_python(tmp_path / "new"), "--against", "HEAD", "--base-python", base)

    assert done.returncode == ExitCode.NO_ANSWER, done.stderr + done.stdout
    assert "No module named 'product'" in done.stdout


def test_no_baseline_counts_beside_another_environment(project, tmp_path):
    base, head = make_python(tmp_path / "old"), make_python(tmp_path / "new")
    project.workload("new", NAP).suite("nap", "new", settings=NAP_SETTINGS, device="cpu")
    check(project, head, "nap", verb="run")
    project.run("accept", "run.json", "--reason", "First.")
    repositories.Repository(project.root).commit()

    done = check(project, head, "--against", "HEAD", "--base-python", base)

    run = json.loads((project.root / "run.json").read_text())
    launches = {each["workload"]: len(each["processes"]) for each in run["measured"]}
    assert launches == {"nap": 1, "new": 1}, done.stderr  # as where there is no baseline at all
    assert len(run["paired"]) == 2


def test_what_is_no_fitting_python_is_refused(project, tmp_path):
    old = tmp_path / "old"
    make_python(old)
    (old / SITE / "ci_perf").mkdir()
    (old / SITE / "ci_perf/__init__.py").write_text('__version__ = "0.0.9"\n')
    ancient = tmp_path / "ancient"
    ancient.write_text("#!/bin/sh\necho '{\"version\": [3, 10, 4]}'\n")
    ancient.chmod(0o755)
    bare = make_python(tmp_path / "bare", has_ours=False)
    torch = "import torch\n" + NAP
    refusals = [
        (tmp_path / "missing", "No such file"),
        (tmp_path, "Permission denied"),
        (Path("/bin/echo"), "says nothing as Python does"),
        (ancient, "expected Python 3.11 or newer, found 3.10.4"),
        (old / "bin/python", f"expected ci_perf {__version__} as here, found 0.0.9"),
        (bare, "expected torch, which workloads import, found none"),
    ]
    for path, said in refusals:
        if path == bare:
            project.workload("nap", torch)

        done = project.run("check", "--against", "HEAD", "--base-python", str(path), "--wait", "0s")

        assert done.code == ExitCode.USAGE, done.err
        assert said in done.err
    assert "expected --against REF" in project.run("check", "--base-python", str(old)).err
    named = ["--against", "HEAD", "--base-python", str(bare), "--", sys.executable, "train.py"]
    assert "expected a command that finds Python by PATH" in project.run("check", *named).err


def test_what_is_no_fitting_image_is_refused(project):
    pinned = ("--base-image", f"python@sha256:{'0' * 64}")
    against, docker = ("--against", "HEAD"), ("--runner", "docker")
    python = ("--base-python", sys.executable)
    refusals = [
        ((*pinned, *docker), "--base-image: expected --against REF"),
        ((*pinned, *against), "expected --runner docker or podman, found local: add it, and the"),
        ((*pinned, *against, *docker, *python), "--base-image: expected no --base-python"),
        ((*python, *against, *docker), "next: --base-image NAME@sha256:DIGEST"),
        (("--base-image", "python:3", *against, *docker), "`docker image inspect python:3`"),
        (("--base-image", "", *against, *docker), "--base-image: expected NAME:TAG"),
        ((*pinned, *against, *docker, "--add", "run.json"), "--base-image: expected no --add"),
    ]
    for words, said in refusals:
        done = project.run("check", *words)

        assert done.code == ExitCode.USAGE, done.err
        assert said in done.err
