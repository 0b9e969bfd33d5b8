"""A real Slurm; without one its tests are skipped and say why, with REQUIRE_SLURM they fail."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests import slurm


@pytest.fixture(scope="module")
def cluster():
    """A Slurm with two nodes, which this process and its children mean."""
    if os.geteuid() != 0:
        pytest.skip("only root may start nodes of Slurm that run jobs")
    # Short, and not below pytest's: the path of a socket ends at 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="slurm-"))
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        try:
            running = stack.enter_context(slurm.running(folder))
        except slurm.NoSlurmError as error:
            if os.environ.get("REQUIRE_SLURM"):
                pytest.fail(f"REQUIRE_SLURM is set: {error}")
            pytest.skip(str(error))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in running.environment.items():
            patch.setenv(name, value)
        yield running
