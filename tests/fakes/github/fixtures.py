"""The fixture `github`, and the mark for tests that must hold on every flavour of GitHub."""

import contextlib

import pytest

from tests.fakes.github.fake import DIRECTLY, FakeGitHub
from tests.fakes.github.schema import FLAVOURS

on_github_and_ghes = pytest.mark.parametrize("github", FLAVOURS, indirect=True)


@contextlib.contextmanager
def undisputed(flavour):
    """A GitHub whose description nobody has broken, in the end."""
    with FakeGitHub(flavour) as fake:
        yield fake
        assert not fake.violations, "\n".join(fake.violations)


@pytest.fixture
def github(request, monkeypatch):
    """A GitHub that is reached without a proxy."""
    for name, value in DIRECTLY.items():
        monkeypatch.setenv(name, value)
    with undisputed(getattr(request, "param", "github.com")) as fake:
        yield fake
