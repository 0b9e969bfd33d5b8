"""Shapes of report with what is shown beside the verdicts."""

import msgspec

from ci_perf.model.process import BreakEven, GpuUse, Profile, SideProfile, StepPhase
from tests.comparisons import a_comparison
from tests.unit.report.parts import GIB, UNCHANGED

EAGER = Profile(
    workload="resnet18.compile=eager",
    items_per_step=128,
    item_unit="image",
    items_per_epoch=50_000,
    head=SideProfile(
        step_time_s=41e-3,
        phases={
            "forward": StepPhase(host_s=4e-3, device_s=14e-3),
            "backward": StepPhase(host_s=5e-3, device_s=25e-3),
        },
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
    ),
    base=SideProfile(
        step_time_s=52e-3,
        phases={
            "forward": StepPhase(host_s=4e-3, device_s=25e-3),
            "backward": StepPhase(host_s=5e-3, device_s=25e-3),
        },
        gpus=(GpuUse(uuid="GPU-0", utilization=0.71, power_w=498.0, memory_peak_bytes=31 * GIB),),
    ),
)
COMPILED = msgspec.structs.replace(
    EAGER,
    workload="resnet18.compile=inductor",
    head=msgspec.structs.replace(EAGER.head, step_time_s=30e-3),
    base=None,
    break_evens=(
        BreakEven(eager=EAGER.workload, cache="empty", cost_s=58.0, gain_s=11e-3, is_faster=True),
    ),
)


def profiled():
    """Two GPUs, of which one hides its power, and a compiled workload beside an eager one."""
    return a_comparison(*UNCHANGED, profiles=(EAGER, COMPILED))
