"""Ranks of torchrun in a container without a network, with torch itself."""

import pytest

from ci_perf.model.process import Ranks
from tests.features.containers.helpers.benches import Bench
from tests.launches import HEAD, result_of
from tests.ranks import FEW_STEPS

pytestmark = pytest.mark.container

MEETING = """
import torch
from torch import distributed
def build(context):
    total = torch.ones(4)
    def step():
        distributed.all_reduce(total)
    return Workload(step=step)
"""
PROTOCOL = {
    name: FEW_STEPS[name]
    for name in ("warmup_min_steps", "warmup_window", "memory_steps", "phase_steps")
}


def test_ranks_meet_and_are_measured(docker, torch_image, tmp_path):
    bench = Bench(tmp_path, docker, torch_image)

    outcome = bench.launch(HEAD + MEETING, launch="torchrun", protocol=PROTOCOL, world_size=2)

    found = result_of(outcome).process.ranks

    assert isinstance(found, Ranks)
    assert (found.world_size, found.restarts, found.backend) == (2, 0, "gloo")
