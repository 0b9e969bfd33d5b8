"""A GitHub for every test in this folder, and a job on it."""

import pytest

from tests.fakes.github.fixtures import github
from tests.integration.github.second_stage import SecondStage
from tests.integration.github.stage import PULL, stage

__all__ = ["github", "second", "stage"]


@pytest.fixture
def on_pull(stage):
    """A job of an open pull request."""
    stage.github.add_pull(PULL)
    return stage.on_pull()


@pytest.fixture
def second(stage):
    """The second of two stages: somebody else has measured."""
    return SecondStage(stage)
