"""Read the state of the GPUs before a session uses them. Run in a child: a driver may hang.

`python -P -m ci_perf.measuring.gpu_probe FOLDER PARENT UUID...` writes GpuStates to
FOLDER under the name that task.py has for results; PARENT is the id of the process that waits.
"""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from ci_perf.measuring.monitor import nvml
from ci_perf.measuring.monitor.nvml import Gpu
from ci_perf.model import task
from ci_perf.model.task import GpuState, GpuStates
from ci_perf.system import files, linux

# The driver's utilisation is an average over up to a second: what ended before we came is out of
# it after the first, what comes and goes is seen in the second.
_SETTLE_S = 1.0
_LOOKS = 5
_PAUSE_S = 0.25


def look(uuids: Sequence[str], *, sleep: Callable[[float], None] = time.sleep) -> GpuStates:
    """Look at each GPU for a while."""
    with nvml.open_gpus(uuids) as gpus:
        if any(gpu.readings().utilization is not None for gpu in gpus):
            sleep(_SETTLE_S)
        highest: list[float | None] = [None] * len(gpus)
        for _ in range(_LOOKS):
            sleep(_PAUSE_S)
            for index, gpu in enumerate(gpus):
                now = gpu.readings().utilization
                highest[index] = _higher(highest[index], now)
        return GpuStates(gpus=tuple(map(_state, gpus, highest)))


def _higher(first: float | None, second: float | None) -> float | None:
    return max((value for value in (first, second) if value is not None), default=None)


def _state(gpu: Gpu, utilization: float | None) -> GpuState:
    facts, readings, counters = gpu.facts(), gpu.readings(), gpu.counters()
    return GpuState(
        uuid=gpu.uuid,
        utilization=utilization,
        used_bytes=readings.used_bytes,
        processes=readings.processes,
        ecc=facts.ecc,
        ecc_errors=counters.ecc_errors,
        rows_broken=facts.rows_broken,
        mig=facts.mig,
        power_limit_w=facts.power_limit_w,
        power_default_w=facts.power_default_w,
        pcie_width=readings.pcie_width,
        pcie_max_width=facts.pcie_max_width,
        absent=dict(gpu.absent),
        lost=gpu.lost,
        total_bytes=facts.total_bytes,
    )


if __name__ == "__main__":
    linux.end_with_parent(int(sys.argv[2]))
    files.write(Path(sys.argv[1]) / task.RESULT, look(sys.argv[3:]))
