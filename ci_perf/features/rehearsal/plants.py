"""What may be planted, as people write it, and how much work that is on this machine."""

import functools
import math
import re
import time
import timeit
from collections.abc import Sequence
from dataclasses import dataclass

from ci_perf.errors import UsageError
from ci_perf.model import metrics
from ci_perf.model.metrics import Kind, Metric, Unit
from ci_perf.model.plant import Plant, PlantKind, burn
from ci_perf.model.suite import SIZES, PlannedWorkload
from ci_perf.model.summary import Numbers
from ci_perf.report import units

MOST_SHARE = 10.0
# By default so many times the limit of the step time.
_LIMITS = (1.5, 3.0)
_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")
_MEMORY = re.compile(rf"memory=(\d+(?:\.\d+)?) ?({'|'.join(SIZES[Unit.BYTE])})")
_BURNS, _BURN = 20, 200_000
# Of a GPU whose clock nobody could read.
_CYCLES_PER_S = 1.5e9

# The metrics that a plant should move; the first one that is compared counts.
MOVES: dict[PlantKind, tuple[Metric, ...]] = {
    "work": (metrics.STEP_TIME,),
    "wait": (metrics.HOST_WAITS,),
    "memory": (metrics.PEAK_ALLOCATED, metrics.HOST_RSS_PEAK),
    "operator": (metrics.OPERATORS,),
}
# The kinds of metrics that may become red by a plant.
SHOWN_BY: dict[PlantKind, frozenset[Kind]] = {
    "work": frozenset({Kind.TIME, Kind.TAIL}),
    "wait": frozenset({Kind.COUNT, Kind.TIME, Kind.TAIL}),
    "memory": frozenset({Kind.DEVICE_MEMORY, Kind.HOST_MEMORY}),
    "operator": frozenset({Kind.COUNT, Kind.TIME, Kind.TAIL}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedPlant:
    """What a person asks for; work is a ``share`` of each step, memory is ``held_bytes``."""

    kind: PlantKind
    share: float = 0.0
    held_bytes: int = 0


def read_plant(text: str) -> WantedPlant:
    """Read "5%", "wait", "operator" or "memory=64MiB". Raises UsageError."""
    if match := _PERCENT.fullmatch(text):
        share = float(match[1]) / 100
        if not 0 < share <= MOST_SHARE:
            raise UsageError(f"--plant: expected more than 0 % and at most 1000 %, found {text}")
        return WantedPlant(kind="work", share=share)
    if match := _MEMORY.fullmatch(text):
        size = float(match[1]) * SIZES[Unit.BYTE][match[2]]
        if not 1 <= size <= 2**50:
            raise UsageError(f"--plant: expected a size from 1B on, found {text}")
        return WantedPlant(kind="memory", held_bytes=int(size))
    if text == "wait":
        return WantedPlant(kind="wait")
    if text == "operator":
        return WantedPlant(kind="operator")
    raise UsageError(
        f"--plant: expected a share of a step (5%), wait, operator or memory=64MiB, found {text!r}"
    )


def choose_plants(limit: float) -> list[WantedPlant]:
    """Return what is planted by default."""
    shares = (min(round(factor * limit, 6), MOST_SHARE) for factor in _LIMITS)
    return [WantedPlant(kind="work", share=share) for share in dict.fromkeys(shares)]


def make_plant(
    workload: str, want: WantedPlant, numbers: Sequence[Numbers], *, is_gpu: bool
) -> Plant:
    """Return a plant for steps as these launches had them. The work is fixed here, once."""
    if want.kind != "work":
        return Plant(workload=workload, kind=want.kind, held_bytes=want.held_bytes)
    step_s = min(each[metrics.STEP_TIME.name] for each in numbers)
    iteration_s = 1 / _find_clock(numbers) if is_gpu else time_iteration()
    return size_work(workload, want.share, step_s=step_s, iteration_s=iteration_s)


def size_work(workload: str, share: float, *, step_s: float, iteration_s: float) -> Plant:
    """Return work for a step longer by this share."""
    iterations = max(1, round(share * step_s / iteration_s))
    return Plant(workload=workload, share=share, iterations=iterations)


def name_plant(plant: Plant) -> str:
    """Return what people call it: "7.5 %", "memory 64 MiB", "wait"."""
    if plant.kind == "work":
        return units.limit(plant.share)
    return f"memory {units.size(plant.held_bytes)}" if plant.kind == "memory" else plant.kind


def refuse_printed(workload: PlannedWorkload) -> None:
    """Refuse a workload that has no step to slow down. Raises UsageError."""
    if workload.parameters.get("metric"):
        raise UsageError(
            f"{workload.id}: expected a step that ci_perf times, found times that the command "
            "prints, which no planted work makes longer; name it as `-- COMMAND`"
        )


def time_iteration() -> float:
    """Return the CPU seconds of an iteration of `burn`: other programs do not count."""
    work = functools.partial(burn, _BURN)
    return min(timeit.repeat(work, timer=time.thread_time, number=1, repeat=_BURNS)) / _BURN


def _find_clock(numbers: Sequence[Numbers]) -> float:
    """Return the cycles of a GPU in a second, by what the monitor has read while it measured."""
    clocks = [each[metrics.SM_CLOCK.name] for each in numbers if metrics.SM_CLOCK.name in each]
    return 1e6 * math.fsum(clocks) / len(clocks) if clocks else _CYCLES_PER_S
