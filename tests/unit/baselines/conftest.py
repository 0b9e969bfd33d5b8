"""A folder for baselines that is not there yet."""

import pytest


@pytest.fixture
def root(tmp_path):
    return tmp_path / "baselines"
