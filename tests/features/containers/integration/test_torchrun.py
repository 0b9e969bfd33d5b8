"""Ranks of torchrun in a container without a network, with torch itself."""

import pytest

from ci_perf.model.process import Phase, Ranks
from tests.features.containers.helpers.benches import Bench
from tests.launches import HEAD, failure_of, result_of
from tests.ranks import FEW_STEPS

pytestmark = pytest.mark.container

MEETING = """
import os
import torch
from torch import distributed
def build(context):
    total = torch.ones(4)
    def step():
        {first}
        distributed.all_reduce(total)
    return Workload(step=step)
"""
PROTOCOL = {
    name: FEW_STEPS[name]
    for name in ("warmup_min_steps", "warmup_window", "memory_steps", "phase_steps")
}


@pytest.fixture
def ranks(docker, torch_image, tmp_path):
    """Launch two ranks that meet in each step, after the line `first`."""
    bench = Bench(tmp_path, docker, torch_image)

    def launch(first="pass"):
        source = HEAD + MEETING.format(first=first)
        return bench.launch(source, launch="torchrun", protocol=PROTOCOL, world_size=2)

    return launch


def test_ranks_meet_and_are_measured(ranks):
    found = result_of(ranks()).process.ranks

    assert isinstance(found, Ranks)
    assert (found.world_size, found.restarts, found.backend) == (2, 0, "gloo")


def test_a_rank_that_dies_makes_one_clear_failure(ranks):
    failure = failure_of(ranks("context.rank == 1 and os.kill(os.getpid(), 9)"))

    assert failure.phase is Phase.FIRST_STEP
    assert failure.reason.startswith("rank 1 of 2: the process was ended by SIGKILL")
