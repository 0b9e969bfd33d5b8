"""A test for a session that is started by test_nothing_is_left.py: it uses everything there is."""

import os
import time
from pathlib import Path

import pytest

from tests.features.containers.helpers import images, roots

pytestmark = pytest.mark.container


def test_a_container_runs_in_each_engine(docker, podman, podman_gpus, registry, shell_image):
    image = images.import_into(podman, roots.of_shell())
    for engine, its in ((docker, shell_image), (podman, image)):
        engine.must("run", "--detach", "--network=none", its, "sleep", os.environ["OCCUPANT_S"])
    begun = Path(os.environ["OCCUPANT_BEGUN"])
    begun.touch()

    while begun.exists():
        time.sleep(0.02)
    assert registry.address
    assert podman_gpus.uuids
