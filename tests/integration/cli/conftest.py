"""A project to run commands in, and one with two runs to be judged."""

import pytest

from tests.histories import beside
from tests.projects import Project
from tests.runs import BASE_COMMIT, SLOW, STEADY, a_measured


@pytest.fixture
def project(tmp_path):
    """An empty folder, with a space in its name."""
    found = Project(tmp_path / "a project")
    found.root.mkdir()
    return found


@pytest.fixture
def judged(project):
    """Two runs of which the second is slower, as its pairs prove."""
    project.recorded("a.json", a_measured("w", *STEADY), commit=BASE_COMMIT)
    project.recorded("b.json", a_measured("w", *SLOW), **beside(2.0))
    return project
