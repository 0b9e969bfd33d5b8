"""What launches of a proof show: figures of its steps, from what processes recorded."""

import math
import re
import statistics
from collections.abc import Mapping, Sequence

import msgspec

from ci_perf.judging import calibration, launch_numbers, policy
from ci_perf.judging.calibration import Uniform
from ci_perf.judging.confirm import Call, Confirmation, share_alpha
from ci_perf.judging.policy import MOST_PAIRS, PolicyKind
from ci_perf.model import metrics
from ci_perf.model.metrics import Unit
from ci_perf.model.process import PhaseTimes, Process
from ci_perf.model.proof import Figure
from ci_perf.model.run import Measured, Run
from ci_perf.model.suite import Plan

# What the monitor may add to a step, where launches without it differ by less.
MONITOR_CLAIM = 0.01
# Two launches are never known to be more alike.
_SMALLEST_SPREAD = 1e-4
_KEY_CHARS = 100
_NO_KEY = re.compile(r"[^A-Za-z0-9_-]+")
_PHASES = tuple(PhaseTimes.__struct_fields__)


def key(prefix: str, workload: str) -> str:
    """Name a figure after a workload, in the characters that a figure's name may have."""
    return f"{prefix}_{_NO_KEY.sub('-', workload)}"[:_KEY_CHARS]


def share(name: str, value: float) -> Figure:
    """Return a figure that is a share, in three digits."""
    return Figure(name=name, value=calibration.short(value), unit=Unit.SHARE)


def ratio(name: str, value: float) -> Figure:
    """Return a figure without a unit, in five digits."""
    return Figure(name=name, value=float(f"{value:.5g}"))


def count(name: str, value: int) -> Figure:
    """Return a figure that was counted."""
    return Figure(name=name, value=float(value), unit=Unit.COUNT)


def median_interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Bound the median at 95 %, by counting: how many of n coins may show the same side."""
    ordered = sorted(ratios)
    rank = max(0, math.floor((len(ordered) - 1.96 * math.sqrt(len(ordered))) / 2))
    return ordered[rank], ordered[len(ordered) - 1 - rank]


def step_times(measured: Measured) -> list[float]:
    """Return the step time of each launch, in seconds."""
    return [
        launch_numbers.of_process(process)[metrics.STEP_TIME.name] for process in measured.processes
    ]


def of_monitor(off: Measured, on: Measured, off_again: Measured) -> tuple[Figure, ...]:
    """Compare launches with the monitor to those without; `off_over_off` is what chance does.

    `excess` is how far the median ratio lies beyond the claim, and beyond what launches without
    the monitor differ by.
    """
    times = step_times(off)
    with_it, again = (
        [value / base for value, base in zip(step_times(arm), times, strict=True)]
        for arm in (on, off_again)
    )
    by_chance = max(abs(bound - 1) for bound in median_interval(again))
    moved = statistics.median(with_it)
    return (
        ratio("on_over_off", moved),
        ratio("off_over_off", statistics.median(again)),
        share("by_chance", by_chance),
        share("excess", max(0.0, abs(moved - 1) - max(MONITOR_CLAIM, by_chance))),
        count("launches", len(times)),
    )


def of_launch(
    name: str, processes: Sequence[Process], launches_s: Sequence[float]
) -> tuple[Figure, ...]:
    """Say how long a launch takes and its parts, in seconds; `rest_s` is its start and its end."""
    parts = {
        part: statistics.median(getattr(process.phases, part) for process in processes)
        for part in _PHASES
    }
    whole_s = statistics.median(launches_s)
    parts = {"launch_s": whole_s, **parts, "rest_s": max(0.0, whole_s - sum(parts.values()))}
    return tuple(
        Figure(name=f"{name}_{part}", value=calibration.short(seconds), unit=Unit.SECOND)
        for part, seconds in parts.items()
    )


def of_noise(first: Run, second: Run | None, plan: Plan, uniform: Uniform) -> tuple[Figure, ...]:
    """Say how launches of the same code differ, and which change 18 pairs would confirm.

    A session has an even number of rounds: launches count in pairs. `session_ratio` is how far the
    means of two sessions lie apart, at most. Raises CiPerfError where nothing was measured.
    """
    document = calibration.calibrate(_joined(first, second), plan, uniform)
    figures = [
        figure
        for name, workload in document.workloads.items()
        for figure in (
            share(key("spread", name), workload.launches[workload.statistic]),
            share(key("detectable", name), workload.smallest_detectable),
        )
    ]
    detectable = [workload.smallest_detectable for workload in document.workloads.values()]
    apart = [] if second is None else _apart(first, second)
    return (
        share("median_detectable", statistics.median(detectable)),
        *((ratio("session_ratio", max(apart)),) if apart else ()),
        count("workloads", len(detectable)),
        *figures,
    )


def of_planted(
    before: Measured, slower: Mapping[int, Measured], after: Measured
) -> tuple[Figure, ...]:
    """Judge steps that take some percent longer, and none, as pairs of a pull request are judged.

    A round launches `before`, the slower ones by their percent, `after`; in every other pair the
    head comes first, so that what drifts is on no side.
    """
    first, last = ([math.log(value) for value in step_times(arm)] for arm in (before, after))
    same = [
        (end - begin) * (-1 if number % 2 else 1)
        for number, (begin, end) in enumerate(zip(first, last, strict=True))
    ]
    alarm = _called(same, slower)
    figures = [
        count("pairs", min(len(same), MOST_PAIRS)),
        count("false_alarms", int(alarm in {"regressed", "improved"})),
    ]
    for percent, arm in slower.items():
        planted = [
            math.log(value) - (last if number % 2 else first)[number]
            for number, value in enumerate(step_times(arm))
        ]
        figures.append(count(f"found_{percent}", int(_called(planted, slower) == "regressed")))
        figures.append(share(f"measured_{percent}", math.expm1(statistics.fmean(planted))))
    return tuple(figures)


def of_pairs(
    resident: Sequence[tuple[Process, Process]], launched: Sequence[tuple[Process, Process]]
) -> tuple[Figure, ...]:
    """Compare what resident pairs of the same code differ by with pairs of launches."""
    side_by_side = _spread(
        [
            launch_numbers.ratio_of_blocks(base.timed.block_s, head.timed.block_s)
            for base, head in resident
        ]
    )
    launches = _spread([math.log(_step_time(head) / _step_time(base)) for base, head in launched])
    return (
        share("resident_spread", side_by_side),
        share("launch_spread", launches),
        ratio("resident_over_launch", side_by_side / max(launches, _SMALLEST_SPREAD)),
        count("pairs", min(len(resident), len(launched))),
    )


def _step_time(process: Process) -> float:
    return launch_numbers.of_process(process)[metrics.STEP_TIME.name]


def _spread(differences: Sequence[float]) -> float:
    """Return the root mean square: of the same code, the mean is known to be zero."""
    return math.sqrt(statistics.fmean(number * number for number in differences))


def _called(differences: Sequence[float], slower: Mapping[int, Measured]) -> Call:
    """Return what a confirmation of these pairs says; all sizes, and none, are suspects."""
    confirmation = Confirmation(
        policy=policy.policy_of(PolicyKind.TIME),
        alpha=share_alpha(len(slower) + 1),
        prior_variance=0.0,
        prior_df=0.0,
    )
    return calibration.confirmed(confirmation, differences[:MOST_PAIRS]).call


def _joined(first: Run, second: Run | None) -> Run:
    """Return the first session with the launches of the second, of workloads that both have."""
    if second is None:
        return first
    more = {measured.workload: measured for measured in second.measured}
    return msgspec.structs.replace(
        first,
        measured=tuple(
            msgspec.structs.replace(
                measured, processes=measured.processes + more[measured.workload].processes
            )
            for measured in first.measured
            if measured.workload in more
        ),
    )


def _apart(first: Run, second: Run) -> list[float]:
    """Return by how much the mean of a session is larger than that of the other, by workload."""
    more = {measured.workload: measured for measured in second.measured}
    logs = [
        statistics.fmean(map(math.log, step_times(measured)))
        - statistics.fmean(map(math.log, step_times(more[measured.workload])))
        for measured in first.measured
        if measured.workload in more
    ]
    return [math.exp(abs(log)) for log in logs]
