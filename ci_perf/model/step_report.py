"""What a program that a check runs as a command reports of its own steps: one file of JSON."""

from ci_perf.model.base import Amount, Count, Finite, Items, Name, PositiveSeconds, Struct
from ci_perf.model.process import CompileCounts, DeviceMemory

# Names the file, in the environment of the command.
REPORT_VARIABLE = "CI_PERF_REPORT"
# Beside the file: another process had a report, too.
ANOTHER_PROCESS = "another-process"


class StepReport(Struct, frozen=True, kw_only=True):
    """The steps of a loop: ``ended`` of those ``asked`` for, warm-up and all.

    ``steps_s`` are the times of the steps after the warm-up, empty where the loop ended before.
    Each does ``items_per_step``. ``losses`` are those of the first steps, ``metrics`` the values of
    the user's own by `metrics.name_own`. ``device_memory`` and ``compiles`` are those of the
    process, `None` where it used no GPU, and no torch.compile. A program without a loop has asked
    for no step.
    """

    asked: Count
    ended: Count
    steps_s: tuple[PositiveSeconds, ...]
    items_per_step: Items
    losses: tuple[Finite, ...] = ()
    metrics: dict[Name, tuple[Amount, ...]] = {}
    device_memory: DeviceMemory | None = None
    compiles: CompileCounts | None = None
