"""What keeps a step from being faster: why its device is idle, or where the host's time goes.

The shares are of profiled steps, in which the host is slower than usual: they say what to try
first, and two sides profiled alike can be compared.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from ci_perf.model.explanation import (
    FEWEST_PAIRS,
    MOST_LIMITS,
    Cure,
    DeviceTimes,
    FunctionUse,
    HostTimes,
    LimitReason,
    LoaderKind,
    ProfiledPair,
    StepLimit,
    StepLimits,
    StepProfile,
)

# Of the time: less would not be worth a person's look.
_LEAST_SHARE: Final = 0.05
# By how much of the time a reason must have grown.
_LEAST_GROWTH: Final = 0.03
# A call of an operator on a CPU that costs no more is mostly the cost of calling it: 1 to 5 us.
_SMALL_OPERATOR_S: Final = 10e-6
_DATA_PHASE: Final = "data"
# What a DataLoader calls of a data set.
_LOADS: Final = ("__getitem__", "__getitems__")
# Those that copy from or to the device where they wait.
_COPIES: Final = frozenset({"aten::copy_", "aten::_to_copy", "aten::to"})
_BY_LOADER: Final[dict[LoaderKind, Cure]] = {"process": "workers", "workers": "more_workers"}
_NOTHING: Final = "the profile has no trace of torch's profiler"


def find_limits(profile: StepProfile) -> StepLimits:
    """Return what limits a step, the largest share first."""
    whole = _read_all(profile)
    kept = [limit for limit in whole.limits if limit.share >= _LEAST_SHARE]
    kept.sort(key=lambda limit: (-limit.share, limit.reason))
    return msgspec.structs.replace(whole, limits=tuple(kept))


def find_growth(pairs: Sequence[ProfiledPair]) -> StepLimits | None:
    """Return which reasons grew from base to head, the largest growth first.

    Shares are medians over the pairs, at least three; each of the head is beyond all of the base.
    Where the profiler was refused the GPU, ``absent`` says so: the host alone cannot tell.
    `None` where a side has no trace, or nothing grew.
    """
    sides = (side for pair in pairs for side in (pair.base, pair.head))
    if refused := next((side.missing["device"] for side in sides if "device" in side.missing), ""):
        return StepLimits(absent=refused)
    if len(pairs) < FEWEST_PAIRS:
        return None
    bases = [_read_all(pair.base) for pair in pairs]
    heads = [_read_all(pair.head) for pair in pairs]
    parts = {side.part for side in (*bases, *heads)}
    if len(parts) != 1 or parts == {""}:
        return None
    grown: list[tuple[float, StepLimit]] = []
    for reason in sorted({limit.reason for head in heads for limit in head.limits}):
        before, after = ([_share(side, reason) for side in sides] for sides in (bases, heads))
        if min(after) - max(before) >= _LEAST_GROWTH:
            share, share_base = statistics.median(after), statistics.median(before)
            limit = next(each for each in heads[-1].limits if each.reason == reason)
            limit = msgspec.structs.replace(limit, share=share, share_base=share_base)
            grown.append((share_base - share, limit))
    if not grown:
        return None
    grown.sort(key=lambda each: each[0])
    return StepLimits(
        part=heads[0].part,
        step_s=statistics.median(head.step_s for head in heads),
        busy=statistics.median(head.busy for head in heads),
        busy_base=statistics.median(base.busy for base in bases),
        limits=tuple(limit for _, limit in grown),
    )


def _share(side: StepLimits, reason: LimitReason) -> float:
    return next((limit.share for limit in side.limits if limit.reason == reason), 0.0)


def _read_all(profile: StepProfile) -> StepLimits:
    """Return all reasons, also those that do not limit a step."""
    device, host = profile.device, profile.host
    if device is not None and device.span_s > 0:
        return StepLimits(
            part="device",
            step_s=device.span_s,
            busy=device.busy_s / device.span_s,
            limits=tuple(_read_device(profile, device))[:MOST_LIMITS],
        )
    if "device" in profile.missing:  # the host alone does not say what limits a step of a GPU
        return StepLimits(absent=profile.missing["device"])
    if host is not None and host.step_s > 0:
        return StepLimits(
            part="host",
            step_s=host.step_s,
            busy=host.operators_s / host.step_s,
            limits=tuple(_read_host(profile, host)),
        )
    # No trace tells, as where a step is too long: the functions that load do.
    loading = [use.own_s or 0.0 for use in profile.functions if use.phase == _DATA_PHASE]
    if profile.step_s and math.fsum(loading):
        data_s = math.fsum(loading)
        limit = StepLimit(reason="data", seconds=data_s, share=min(data_s / profile.step_s, 1.0))
        limits = (_with_loading(profile, limit),)
        return StepLimits(part="host", step_s=profile.step_s, limits=limits)
    return StepLimits(absent=profile.missing.get("trace") or profile.absent or _NOTHING)


def _read_device(profile: StepProfile, device: DeviceTimes) -> Iterator[StepLimit]:
    """Yield why the device is idle, and how long it only copies."""
    pinned: tuple[Cure, ...] = ("pin_memory",) if device.pageable_s > 0 else ()
    for idle in device.idle:
        limit = StepLimit(
            reason=idle.reason,
            seconds=idle.idle_s,
            share=idle.idle_s / device.span_s,
            operator=idle.operator,
            call=idle.call,
        )
        match idle.reason:
            case "data":
                yield _with_loading(profile, limit, pinned)
            case "synchronisation":
                is_copy = idle.operator in _COPIES
                uses = [use for use in profile.operators if use.operator == idle.operator]
                most = max(uses, key=lambda use: (bool(use.caller), use.calls), default=None)
                yield msgspec.structs.replace(
                    limit,
                    place=most.caller if most else None,
                    line=most.line if most else 0,
                    cures=pinned if is_copy and pinned else ("no_wait",),
                )
            case "operators":
                yield msgspec.structs.replace(limit, cures=("small_operators", "graphs"))
            case "outside":
                yield _with_python(profile, limit)
            case "device":
                yield msgspec.structs.replace(limit, cures=("graphs",))
            case "unlinked":
                yield limit
    if device.copying_s > 0:
        yield StepLimit(
            reason="copies",
            seconds=device.copying_s,
            share=device.copying_s / device.span_s,
            cures=pinned or ("overlap_copies",),
        )


def _read_host(profile: StepProfile, host: HostTimes) -> Iterator[StepLimit]:
    """Yield where the time of a step goes that runs on the host alone, but in long operators."""

    def limit(reason: LimitReason, seconds: float) -> StepLimit:
        return StepLimit(reason=reason, seconds=seconds, share=seconds / host.step_s)

    outside_s = host.step_s - host.data_s - host.waiting_s - host.operators_s
    yield _with_loading(profile, limit("data", host.data_s))
    yield limit("synchronisation", host.waiting_s)
    yield _with_python(profile, limit("outside", max(outside_s, 0.0)))
    small = [use for use in host.operators if 0 < use.host_s < use.calls * _SMALL_OPERATOR_S]
    if small:
        small_s = min(math.fsum(use.host_s for use in small), host.operators_s)
        most = max(small, key=lambda use: (use.host_s, use.operator))
        yield msgspec.structs.replace(
            limit("operators", small_s), operator=most.operator, cures=("small_operators",)
        )


def _with_loading(
    profile: StepProfile, limit: StepLimit, further: tuple[Cure, ...] = ()
) -> StepLimit:
    """Say who loads the data, and how it may be loaded earlier."""
    loader = profile.host.loader if profile.host else ""
    use = _find_slowest(use for use in profile.functions if use.phase == _DATA_PHASE)
    return msgspec.structs.replace(
        limit,
        loader=loader,
        place=use.function if use else None,
        cures=(_BY_LOADER.get(loader, "load_ahead"), *further),
    )


def _with_python(profile: StepProfile, limit: StepLimit) -> StepLimit:
    """Name the function of the repository whose own time is longest.

    One that loads data is no Python of the step, which somebody could compile.
    """
    use = _find_slowest(use for use in profile.functions if use.phase != _DATA_PHASE)
    if use and use.function.function.endswith(_LOADS):
        return limit
    place = use.function if use else None
    return msgspec.structs.replace(limit, place=place, cures=("python",))


def _find_slowest(uses: Iterable[FunctionUse]) -> FunctionUse | None:
    """Return the function that takes longest; `None` where no function was timed."""
    timed = [use for use in uses if use.own_s is not None]
    return max(timed, key=lambda use: use.own_s or 0.0, default=None)
