"""A job on a runner, whose steps are run for real, and a GitHub to report to."""

import os
import shutil
import stat
import sys

import pytest

from tests.actions import node
from tests.actions.expressions import Expressions
from tests.actions.runner import Job
from tests.fakes.github.fixtures import github
from tests.integration.actions.recording import bare, recorded
from tests.integration.actions.stage import ROOT, Stage, a_project
from tests.repositories import Repository

__all__ = ["bare", "github", "recorded"]

# Becomes the command line of this very checkout.
CI_PERF = f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -P -m ci_perf "$@"\n'

# What tests/conftest.py says of the busy machine that the tests run on.
OF_THE_TESTS = (
    "CI_PERF_ACCEPT_FORCE",
    "CI_PERF_CHECK_EXPLAIN",
    "CI_PERF_CHECK_WAIT",
    "CI_PERF_RUN_WAIT",
)


@pytest.fixture(scope="session")
def expressions():
    """GitHub's own evaluation of expressions."""
    node.require()
    with Expressions() as found:
        yield found


@pytest.fixture
def job(tmp_path, expressions):
    """Make a job on a runner where a ci-perf is installed: the real one, or a script."""

    def make(*, ci_perf=CI_PERF, workspace=None, github=None, token=None, slowness=1, **machine):
        folder = tmp_path / f"job {len(list(tmp_path.glob('job *')))}"
        (folder / "bin").mkdir(parents=True)
        machine = {name: os.environ[name] for name in OF_THE_TESTS} | machine
        if ci_perf:
            executable(folder / "bin/ci-perf", ci_perf)
            machine["PATH"] = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        if workspace is None:
            workspace = folder / "a workspace"
            workspace.mkdir()
        return Job(
            folder,
            workspace,
            expressions,
            github=github or {},
            token=token,
            machine=machine,
            slowness=slowness,
        )

    return make


def executable(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture(scope="session")
def project(tmp_path_factory):
    """Measure a baseline once: it is the same for all."""
    return a_project(tmp_path_factory.mktemp("measured") / "project")


@pytest.fixture
def stage(project, tmp_path, github, job):
    """A project with a baseline on main, whose branch `feature` is checked out."""
    copy = shutil.copytree(project.root, tmp_path / "project", symlinks=True)
    return Stage(Repository(copy), github, job)
