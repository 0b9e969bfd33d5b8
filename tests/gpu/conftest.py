"""Devices of torch: what can be seen on a CPU is, the rest has the mark gpu."""

import pytest
import torch

from ci_perf.measuring.device import open_device
from tests.gpu.steps import Timed


@pytest.fixture(params=["cpu", pytest.param("cuda:0", marks=pytest.mark.gpu)])
def timed(request):
    """A device, by each name that it may have."""
    torch.set_num_threads(1)
    return Timed(name=request.param, device=open_device(request.param))


@pytest.fixture
def cuda():
    """The first GPU."""
    return Timed(name="cuda:0", device=open_device("cuda:0"))
