"""A GitHub for every test in this folder, and a job on it."""

from tests.fakes.github.fixtures import github
from tests.integration.github.stage import stage

__all__ = ["github", "stage"]
