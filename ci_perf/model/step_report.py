"""What a program that a check runs as a command reports of its own steps: one file of JSON."""

from ci_perf.model.base import Count, Finite, Items, PositiveSeconds, Struct
from ci_perf.model.process import CompileCounts, DeviceMemory

# Names the file, in the environment of the command.
REPORT_VARIABLE = "CI_PERF_REPORT"


class StepReport(Struct, frozen=True, kw_only=True):
    """The steps of a loop: ``ended`` of those ``asked`` for, warm-up and all.

    ``steps_s`` are the times of the steps after the warm-up, empty where the loop ended before.
    Each does ``items_per_step``. ``losses`` are those of the first steps. ``device_memory`` and
    ``compiles`` are those of the process, `None` where it used no GPU, and no torch.compile.
    """

    asked: Count
    ended: Count
    steps_s: tuple[PositiveSeconds, ...]
    items_per_step: Items
    losses: tuple[Finite, ...] = ()
    device_memory: DeviceMemory | None = None
    compiles: CompileCounts | None = None
