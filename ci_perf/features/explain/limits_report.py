"""What limits a step, and what may be done about it, in sentences; and its operators as a table."""

from ci_perf.model.explanation import (
    Cure,
    LimitReason,
    StepLimit,
    StepLimits,
    StepProfile,
)
from ci_perf.report import escape, units
from ci_perf.report.escape import Phrase, Words
from ci_perf.report.tables import Table

MOST_SHOWN_OPERATORS = 20
# A device that works as much of its time is not kept waiting.
_BUSY = 0.9
_REASONS: dict[LimitReason, str] = {
    "data": "starved by data",
    "synchronisation": "the host waits for the GPU",
    "operators": "the host is still in operators",
    "outside": "the host is in Python",
    "device": "queued work has not started yet",
    "unlinked": "not linked to what launched the next work",
    "copies": "the GPU copies and computes nothing",
}
_REASONS_OF_HOST: dict[LimitReason, str] = _REASONS | {
    "data": "the step waits for its data",
    "operators": "operators so small that calling them costs more than their work",
    "outside": "Python, outside of operators",
}
_CURES: dict[Cure, str] = {
    "workers": "give the DataLoader `num_workers` and `persistent_workers=True`, for the process "
    "of the step loads its data; or make loading cheaper",
    "more_workers": "raise `num_workers` or `prefetch_factor`, for the workers are too slow; or "
    "make loading cheaper",
    "load_ahead": "load the next batch while the step runs: a DataLoader with `num_workers` and "
    "`persistent_workers=True`, or a thread of its own",
    "pin_memory": "copy from pinned memory, which does not wait: `pin_memory=True` in the "
    "DataLoader, and `.to(device, non_blocking=True)`",
    "overlap_copies": "copy the next batch on a stream of its own while the step computes",
    "no_wait": "read numbers of the GPU (`.item()`, `.cpu()`, `print`, `if tensor`) once in many "
    "steps, or keep them there",
    "small_operators": "fewer and larger operators: `torch.compile`, fused or `foreach` forms, or "
    "a larger batch",
    "python": "take the Python out of the step, or `torch.compile` it",
    "graphs": "CUDA graphs, which launch a whole step at once: "
    "`torch.compile(mode='reduce-overhead')`",
}


def describe_limits(limits: StepLimits) -> list[Phrase]:
    """Return the sentences: how busy the step is, what limits it, and the cures."""
    if limits.absent:
        return [(Words("What limits a step is not known: "), escape.Sentence(limits.absent))]
    lines = [_first(limits)]
    lines += [_limit(limit, limits) for limit in limits.limits]
    if not limits.limits:
        lines.append(_say_nothing_waits(limits))
    return lines


def describe_growth(limits: StepLimits) -> Phrase:
    """Say what has grown most from base to head, and its cures; or why that is not known."""
    first, *further = describe_limits(limits)
    grown = (Words(" "), *further[0]) if further else ()
    end = () if limits.limits and limits.limits[0].cures else (Words("."),)
    return (*first, *grown, *end)


def build_operator_table(profile: StepProfile, *, most: int = MOST_SHOWN_OPERATORS) -> Table:
    """Return the operators that take most time, like the profiler's own table; per step.

    CPU time is the operator's own, without the operators that it calls; the wait is the part of it
    in which the host waits for the GPU. The profiler makes both longer.
    """
    operators = profile.host.operators if profile.host else ()
    longest = sorted(operators, key=lambda use: -max(use.host_s, use.device_s))
    has_device = profile.device is not None
    titles = ("Operator", "Calls", "CPU time", "GPU time", "Host waits")[: 5 if has_device else 3]
    rows: list[tuple[str, ...]] = []
    for use in longest[:most]:
        times = map(units.seconds, (use.host_s, use.device_s, use.wait_s))
        rows.append((use.operator, units.count(use.calls), *times)[: len(titles)])
    if left := len(longest) - len(rows) + (profile.host.cut if profile.host else 0):
        rows.append((Words(f"and {left:,} more"), *[Words("")] * (len(titles) - 1)))
    return Table(heading=tuple(map(Words, titles)), rows=rows)


def _first(limits: StepLimits) -> Phrase:
    if limits.busy_base is not None:
        if limits.part == "device":
            idle, before = 1 - limits.busy, 1 - limits.busy_base
            return (Words(f"GPU idle {units.share(before)} → {units.share(idle)} of its time:"),)
        return (Words("Where the time of a step goes, of the base → of the head:"),)
    step = units.seconds(limits.step_s)
    if limits.part == "device":
        return (Words(f"The GPU works {units.share(limits.busy)} of {step} per profiled step."),)
    if not limits.busy:
        return (Words(f"A step takes {step}; no trace tells what else it does."),)
    return (Words(f"Operators run in {units.share(limits.busy)} of {step} per profiled step."),)


def _say_nothing_waits(limits: StepLimits) -> Phrase:
    if limits.part == "device" and limits.busy >= _BUSY:
        return (Words("Nothing keeps it waiting: only less or faster work makes a step faster."),)
    return (Words("Nothing else takes much of it: only less or faster work makes it faster."),)


def _limit(limit: StepLimit, limits: StepLimits) -> Phrase:
    """Say "62 % (9.3 ms): starved by data, in `load` `data.py:14`. Try: …."."""
    size = units.share(limit.share)
    if limit.share_base is not None:
        size = Words(f"{units.share(limit.share_base)} → {size}")
    else:
        size = Words(f"{size} ({units.seconds(limit.seconds)})")
    reasons = _REASONS if limits.part == "device" else _REASONS_OF_HOST
    said: list[str] = [Words(f"{size}: {reasons[limit.reason]}"), *_where(limit)]
    said += [Words(f". Try: {'; or '.join(_CURES[cure] for cure in limit.cures)}.")] * bool(
        limit.cures
    )
    return tuple(said)


def _where(limit: StepLimit) -> list[str]:
    said: list[str] = []
    if limit.operator:
        said += [Words(", in "), limit.operator]
    if limit.call:
        said += [Words(" by "), limit.call]
    if limit.place:
        line = limit.line or limit.place.line
        said += [Words(", from "), limit.place.function, Words(" "), f"{limit.place.file}:{line}"]
    return said
