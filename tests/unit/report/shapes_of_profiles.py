"""Shapes of report with what is shown beside the verdicts."""

import msgspec

from ci_perf.model.process import BreakEven, GpuUse, Profile
from tests.comparisons import a_comparison
from tests.unit.report.parts import GIB, UNCHANGED

EAGER = Profile(
    workload="resnet18.compile=eager",
    step_time_s=41e-3,
    items_per_step=128,
    item_unit="image",
    epoch_s=16.0,
    gpus=(
        GpuUse(uuid="GPU-0", utilization=0.97, power_w=612.0, memory_peak_bytes=31 * GIB),
        GpuUse(
            uuid="GPU-1",
            utilization=0.96,
            power_w=None,
            memory_peak_bytes=31 * GIB,
            absent={"power_w": "Not Supported"},
        ),
    ),
)
COMPILED = msgspec.structs.replace(
    EAGER,
    workload="resnet18.compile=inductor",
    step_time_s=30e-3,
    epoch_s=11.7,
    break_evens=(
        BreakEven(eager=EAGER.workload, cache="empty", cost_s=58.0, gain_s=11e-3, steps=5274),
    ),
)


def profiled():
    """Two GPUs, of which one hides its power, and a compiled workload beside an eager one."""
    return a_comparison(*UNCHANGED, profiles=(EAGER, COMPILED))


ALL = (profiled,)
