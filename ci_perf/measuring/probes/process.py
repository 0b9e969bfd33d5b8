"""Try one step of a proof, in a process of its own: what hangs or crashes costs only this step.

`python -P -m ci_perf.measuring.probes.process FOLDER PARENT STEP DEVICE THREADS` writes Probed to
FOLDER under the name that task.py has for results; PARENT is the process that waits.
"""

import sys
from pathlib import Path

from ci_perf.measuring import device, knobs, probes
from ci_perf.measuring.probes import Bench, CannotTryError, Probe
from ci_perf.model import task
from ci_perf.model.proof import MOST_DETAIL, Figure, Probed
from ci_perf.system import files, linux


def tried(step: str, name: str, threads: int) -> Probed:
    """Try a step on the device called `name`."""
    try:
        import torch
    except ImportError:
        return Probed(not_tried="torch is not installed here", why="missing")
    torch.set_num_threads(threads)
    bench = Bench(torch=torch, device=device.open_device(name), name=name)
    return probed(probes.of_step(step), bench)


def probed(probe: Probe, bench: Bench) -> Probed:
    """Try a step, and keep what it says."""
    try:
        said = tuple(probe(bench))
    except CannotTryError as reason:
        return Probed(not_tried=str(reason)[:MOST_DETAIL], why="missing")
    return Probed(
        figures=tuple(part for part in said if isinstance(part, Figure)),
        detail="; ".join(part for part in said if isinstance(part, str))[:MOST_DETAIL],
    )


if __name__ == "__main__":
    linux.end_with_parent(int(sys.argv[2]))
    files.write(Path(sys.argv[1]) / task.RESULT, tried(sys.argv[3], sys.argv[4], int(sys.argv[5])))
    knobs.end_process(0)
