"""A repository with two branches, and a git that knows nothing of the user."""

import pytest

from tests import repositories


@pytest.fixture(autouse=True)
def _alone(monkeypatch):
    for name, value in repositories.ALONE.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def forked(tmp_path):
    return repositories.forked(tmp_path / "project")
