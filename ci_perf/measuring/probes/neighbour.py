"""A second program on the device, for a step that must notice it.

`python -P -m ci_perf.measuring.probes.neighbour PARENT DEVICE BYTES` holds memory and multiplies
matrices until its input ends. PARENT is the process that waits; it reads a line once all is held.
"""

import select
import sys

from ci_perf.measuring import device
from ci_perf.measuring.probes import Bench
from ci_perf.measuring.probes.steps import product
from ci_perf.system import linux

_STEPS = 10


def main(name: str, size: int) -> None:
    """Hold so many bytes of the device called `name`, and keep it busy."""
    import torch

    torch.set_num_threads(1)
    bench = Bench(torch=torch, device=device.open_device(name), name=name)
    held = torch.zeros(size, dtype=torch.uint8, device=name)
    step = product(bench)
    bench.device.time_block(step, 1)
    print(f"holds {held.nbytes} bytes", flush=True)  # noqa: T201  the parent reads it
    while not select.select([sys.stdin], [], [], 0)[0]:
        bench.device.time_block(step, _STEPS)


if __name__ == "__main__":
    linux.end_with_parent(int(sys.argv[1]))
    main(sys.argv[2], int(sys.argv[3]))
