"""Steps that tests time on a device, and how often."""

import math
import statistics
import time
from dataclasses import dataclass

import torch

from ci_perf.measuring.device import Device

# Of a product that a GPU needs milliseconds for, and a CPU less than one.
SIDE = {"cpu": 256, "cuda:0": 4096}
# On a CPU shorter than the time that a scheduler gives a process at once.
BLOCK_S = {"cpu": 0.002, "cuda:0": 0.02}
BLOCKS = 41


@dataclass(frozen=True)
class Timed:
    """A device of torch, and its name."""

    name: str
    device: Device

    def product(self, dtype=torch.float32, side=None):
        """Return a step that multiplies two matrices of random numbers."""
        left = torch.randn((side or SIDE[self.name],) * 2, device=self.name).to(dtype)
        return lambda: torch.mm(left, left)

    def warm(self, step, seconds=1.0):
        """Repeat a step until it is warm; return how many fill a block."""
        end, shortest_s = time.monotonic() + seconds, math.inf
        while time.monotonic() < end:
            shortest_s = min(shortest_s, self.device.time_block(step, 1).step_s)
        return max(1, round(BLOCK_S[self.name] / shortest_s))

    def median_s(self, step, seconds=1.0, blocks=BLOCKS):
        """Return seconds per step once it is warm, the median of some blocks."""
        count = self.warm(step, seconds)
        return statistics.median(self.device.time_block(step, count).step_s for _ in range(blocks))
