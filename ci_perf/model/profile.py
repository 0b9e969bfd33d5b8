"""What the head's processes showed of a workload beside the judged metrics. Never judged."""

from typing import Literal

from ci_perf.model.base import Amount, Bytes, Count, Items, Key, Name, Struct, Text


class GpuUse(Struct, frozen=True, kw_only=True):
    """One GPU while the workload was timed.

    ``utilization`` (a share, 0 to 1) and ``power_w`` are means over the processes,
    ``memory_peak_bytes`` is the most that was in use, by whomever. ``absent`` says what the driver
    answered for a value that is `None`.
    """

    uuid: Name
    utilization: Amount | None
    power_w: Amount | None
    memory_peak_bytes: Bytes | None
    absent: dict[Key, Text] = {}


class BreakEven(Struct, frozen=True, kw_only=True):
    """When compiling pays: a compiled workload beside the same one that is not compiled (eager).

    ``cost_s`` is how much longer the first step takes, ``gain_s`` how much shorter each later one
    is, by the medians of the processes. After ``steps`` steps in all, the compiled one is ahead;
    `None` where its step is not faster in every process than in any process of the eager one.
    ``cache`` says whether the folders for compiled code were empty before.
    """

    eager: Name
    cache: Literal["empty", "filled"]
    cost_s: float
    gain_s: float
    steps: Count | None


class Profile(Struct, frozen=True, kw_only=True):
    """One workload; ``epoch_s`` is how long all of its data take, where their number is known."""

    workload: Name
    step_time_s: Amount
    items_per_step: Items
    item_unit: Name
    epoch_s: Amount | None = None
    gpus: tuple[GpuUse, ...] = ()
    break_evens: tuple[BreakEven, ...] = ()
