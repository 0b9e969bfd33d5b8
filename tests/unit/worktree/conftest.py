"""A repository with two branches, and a git that knows nothing of the user."""

import pytest

from tests import repositories


@pytest.fixture(autouse=True)
def _alone(lone_git):
    """Each test has it."""


@pytest.fixture
def forked(tmp_path):
    return repositories.forked(tmp_path / "project")
